#include "replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::ElementsAre;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
constexpr Where kCuda{Layer::kPool, {Device::kCuda, 0}};
constexpr Where kCudaDriver{Layer::kDriver, {Device::kCuda, 0}};

// Events written by hand, and what replay makes of them.
struct Story {
  VectorSource source;
  StackId a, b;

  Story() {
    StackTable& stacks = source.stacks();
    StringTable& strings = source.strings();
    const auto frame = [&](const char* function, uint32_t line) {
      return stacks.intern_frame({.file = strings.intern("/home/me/train.py"),
                                  .function = strings.intern(function),
                                  .line = line});
    };
    a = stacks.intern({}, frame("a", 10));
    b = stacks.intern({}, frame("b", 20));
  }
  void alloc(uint64_t time, uint64_t addr, uint64_t size, StackId stack, uint32_t thread = 1,
             Where where = kCpu) {
    source.add({.kind = EventKind::kAlloc,
                .where = where,
                .thread = ThreadId(thread),
                .stack = stack,
                .time = time,
                .addr = addr,
                .size = size});
  }
  void free(uint64_t time, uint64_t addr, uint32_t thread = 1, Where where = kCpu) {
    source.add({.kind = EventKind::kFree,
                .where = where,
                .thread = ThreadId(thread),
                .time = time,
                .addr = addr});
  }
  void window(uint64_t time, uint64_t action) {
    source.add({.kind = EventKind::kWindow, .time = time, .size = action});
  }
  void seed(uint64_t time, uint64_t addr, uint64_t size, uint64_t birth) {
    source.add({.kind = EventKind::kSeed,
                .where = kCpu,
                .time = time,
                .addr = addr,
                .size = size,
                .birth = birth});
  }
  void step(uint64_t time) {
    source.add_record(time, StepRecord{.source = static_cast<uint64_t>(StepSource::kApi)});
  }
  ReplayResult run(ReplayOptions options = {}) { return replay(source, options); }
};

const Group* group_of(const ReplayResult& result, StackId stack) {
  for (size_t i = 1; i < result.groups.size(); ++i) {
    if (result.groups[i].stack == stack && !result.groups[i].seeded) return &result.groups[i];
  }
  return nullptr;
}

MATCHER_P3(IsPoint, bucket, blocks, bytes, "") {
  return arg.bucket == static_cast<uint32_t>(bucket) &&
         arg.blocks == static_cast<uint32_t>(blocks) && arg.bytes == static_cast<uint64_t>(bytes);
}

constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};

// As the reader of a trace gives them: 1,000 B of which one in 525 was taken stand for 524,788.
struct SampledStory : Story {
  static constexpr uint64_t kRate = 524288, kSize = 1000, kScaled = 524788;
  void sampled(uint64_t time, uint64_t addr) {
    source.add({.kind = EventKind::kAlloc,
                .where = kHost,
                .thread = ThreadId(1),
                .stack = a,
                .time = time,
                .addr = addr,
                .size = kScaled,
                .sampled_size = kSize});
  }
};

TEST(Replay, SampledBlocksCountAsWhatTheyStandFor) {
  SampledStory story;
  story.sampled(1, 0x10);
  story.sampled(2, 0x20);
  story.step(3);
  story.free(4, 0x10, 1, kHost);
  story.step(5);
  const ReplayResult result = story.run();
  const Group* group = group_of(result, story.a);
  ASSERT_NE(group, nullptr);
  EXPECT_THAT(group->live,
              ElementsAre(IsPoint(0, 2, 2 * story.kScaled), IsPoint(1, 1, story.kScaled)));
  // 524,788 * 523,788 / 2^20, and twice that.
  EXPECT_EQ(group->live[0].noise, 2 * 262144u);
  EXPECT_EQ(group->live[1].noise, 262144u);
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].sampled_size, story.kSize);
  EXPECT_DOUBLE_EQ(result.live[0].count(), 524.788);
  ASSERT_EQ(result.pools.size(), 1u);
  EXPECT_EQ(result.pools[0].allocated.peak, 2 * story.kScaled);
  EXPECT_EQ(result.pools[0].peak_noise, 2 * 262144u);
  EXPECT_EQ(result.pools[0].live_noise, 262144u);
  EXPECT_NEAR(static_cast<double>(result.host_sample), story.kRate, 1);
}

TEST(Replay, ASampledBlockWhoseFreeIsUndoneIsSampledStill) {
  SampledStory story;
  story.sampled(1, 0x10);
  story.free(2, 0x10, 1, kHost);
  story.source.add_record(3, UndoRecord{.addr = 0x10, .where = kHost.packed()});
  story.step(4);
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].sampled_size, story.kSize);
  EXPECT_EQ(result.pools[0].live_noise, 262144u);
  EXPECT_EQ(group_of(result, story.a)->survivors[0].noise, 262144u);
}

TEST(Replay, CurvesAreTheLiveBytesAtStepEnds) {
  Story story;
  story.alloc(1, 0x10, 100, story.a);
  story.alloc(2, 0x20, 50, story.b);
  story.free(3, 0x20);
  story.step(10);  // step 1 ends: a 100
  story.step(20);  // step 2: unchanged
  story.alloc(21, 0x30, 7, story.a);
  story.step(30);                     // step 3: a 107
  story.alloc(31, 0x40, 1, story.a);  // open: not counted
  const ReplayResult result = story.run();
  EXPECT_EQ(result.plan.count(), 3u);
  const Group* a = group_of(result, story.a);
  ASSERT_NE(a, nullptr);
  EXPECT_THAT(a->live, ElementsAre(IsPoint(0, 1, 100), IsPoint(2, 2, 107)));
  EXPECT_THAT(a->survivors, ElementsAre(IsPoint(0, 1, 100), IsPoint(2, 1, 7)));
  EXPECT_TRUE(group_of(result, story.b)->live.empty()) << "freed within its step";
  // Alive at the end: all three of a; the last one was born in the open tail, "step 4".
  ASSERT_EQ(result.live.size(), 3u);
  ASSERT_EQ(result.pools.size(), 1u);
  EXPECT_EQ(result.pools[0].allocated.peak, 150u);
  EXPECT_EQ(result.pools[0].allocated.end, 108u);
  EXPECT_EQ(result.pools[0].buckets[0].max, 150u);
  EXPECT_EQ(result.pools[0].buckets[2].end, 107u);
}

TEST(Replay, LayersAtOneAddressAreTwoBlocks) {
  Story story;
  story.alloc(1, 0x1000, 2048, story.a, 1, kCudaDriver);
  story.alloc(2, 0x1000, 512, story.b, 1, kCuda);
  story.free(3, 0x1000, 1, kCuda);
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].size, 2048u);
  EXPECT_EQ(result.live[0].addr, 0x1000u);
  EXPECT_EQ(result.unknown_frees, 0u);
}

TEST(Replay, AllocOnALiveAddressTakesTheLateFree) {
  Story story;
  story.alloc(100, 0x10, 1, story.a, 1);
  story.alloc(199, 0x10, 2, story.b, 2);  // the clock of thread 2 is behind by a few ns
  story.free(200, 0x10, 1);               // of the first block
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].size, 2u);
  EXPECT_EQ(result.ambiguous, 0u);
}

TEST(Replay, AllocOnALiveAddressWithoutAFreeIsAmbiguous) {
  Story story;
  story.alloc(100, 0x10, 1, story.a, 1);
  story.alloc(199, 0x10, 2, story.b, 2);
  story.free(1'000'000, 0x10, 1);  // far beyond the skew: of the second block
  const ReplayResult result = story.run();
  EXPECT_TRUE(result.live.empty());
  EXPECT_EQ(result.ambiguous, 1u);
}

TEST(Replay, FreesOfUnknownAddressesAreCounted) {
  Story story;
  story.free(1, 0x10);
  story.free(2, 0x20);
  EXPECT_EQ(story.run().unknown_frees, 2u);
}

TEST(Replay, OverStopAndStartASeededBlockIsTheSameBlock) {
  Story story;
  story.window(1, 1);
  story.alloc(5, 0x10, 100, story.a);  // survives the gap
  story.alloc(6, 0x20, 100, story.a);  // freed in the gap
  story.alloc(7, 0x30, 100, story.a);  // freed in the gap, its address used again there
  story.window(10, 2);
  story.window(100'000, 1);
  story.seed(100'000, 0x10, 100, 5);
  story.seed(100'000, 0x30, 100, 50'000);
  story.step(200'000);
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 2u);
  for (const LiveBlock& block : result.live) {
    if (block.addr == 0x10) {
      EXPECT_EQ(result.groups[block.group].stack, story.a);
      EXPECT_FALSE(block.fate_unknown);
    } else {
      EXPECT_EQ(block.addr, 0x30u);
      EXPECT_TRUE(result.groups[block.group].seeded) << "its stack was never seen";
      EXPECT_TRUE(block.fate_unknown);
    }
  }
  ASSERT_EQ(result.side.gaps.size(), 1u);
  EXPECT_TRUE(result.side.gaps[0].healed);
  EXPECT_EQ(result.side.gaps[0].from, 10u);
}

TEST(Replay, WhatWasThereBeforeTheHooksIsPreexistingInStepZero) {
  Story story;
  story.window(1, 1);
  story.seed(1, 0x10, 100, 0);
  story.step(10);
  const ReplayResult result = story.run();
  EXPECT_EQ(result.preexisting, 1u);
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].step, 0u);
  EXPECT_TRUE(result.live[0].preexisting);
  EXPECT_EQ(result.pools[0].allocated.start, 100u);
}

TEST(Replay, ASeedWrittenAfterItsBlockWasFreedIsNotAlive) {
  Story story;
  story.window(1, 1);
  story.free(2, 0x10);  // another thread, while the seeds are being written
  story.seed(3, 0x10, 100, 0);
  EXPECT_TRUE(story.run().live.empty());
}

TEST(Replay, ASeedOlderThanTheLiveBlockIsStale) {
  Story story;
  story.window(10, 1);
  story.free(11, 0x10);
  story.alloc(12, 0x10, 7, story.a);
  story.seed(13, 0x10, 100, 5);
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].size, 7u);
}

TEST(Replay, AThousandWindowsLeaveNothingBehind) {
  Story story;
  uint64_t t = 1;
  for (int i = 0; i < 1000; ++i, t += 10'000) {
    story.window(t, 1);
    story.alloc(t + 1, 0x10 + t, 100, story.a);
    story.window(t + 2, 2);  // freed while nobody looked
  }
  story.window(t, 1);
  const ReplayResult result = story.run();
  EXPECT_TRUE(result.live.empty());
}

TEST(Replay, AnAddressUsedAgainAfterAGapIsNotAmbiguous) {
  Story story;
  story.window(1, 1);
  story.alloc(5, 0x10, 100, story.a);  // freed while nobody looked
  story.alloc(6, 0x20, 100, story.a);  // survives
  story.window(10, 2);
  story.window(100'000, 1);
  story.seed(100'000, 0x20, 100, 6);
  story.alloc(100'001, 0x10, 7, story.b);  // no step since: the seeds alone tell
  story.free(100'050, 0x20);
  const ReplayResult result = story.run();
  EXPECT_EQ(result.ambiguous, 0u);
  EXPECT_EQ(result.unknown_frees, 0u);
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].size, 7u);
  EXPECT_EQ(result.pools[0].allocated.peak, 200u) << "never 100 + 100 + 7: the first is gone";
}

TEST(Replay, ARaceRightAfterAGapIsStillPutInOrder) {
  // The seeded block is freed by thread 1 and its address taken by thread 2, whose clock is behind.
  Story story;
  story.window(1, 1);
  story.alloc(5, 0x10, 100, story.a, 1);
  story.window(10, 2);
  story.window(100'000, 1);
  story.seed(100'000, 0x10, 100, 5);
  story.alloc(100'009, 0x10, 7, story.b, 2);
  story.free(100'010, 0x10, 1);
  const ReplayResult result = story.run();
  EXPECT_EQ(result.ambiguous, 0u);
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].size, 7u);
}

TEST(Replay, ASeededBlockWhoseAddressIsTakenWithoutAFreeIsAmbiguous) {
  Story story;
  story.window(1, 1);
  story.alloc(5, 0x10, 100, story.a);
  story.window(10, 2);
  story.window(100'000, 1);
  story.seed(100'000, 0x10, 100, 5);
  story.alloc(100'009, 0x10, 7, story.b);
  EXPECT_EQ(story.run().ambiguous, 1u);
}

TEST(Replay, AGapMakesOlderBlocksFateUnknown) {
  Story story;
  story.alloc(5, 0x10, 100, story.a);
  story.source.add_record(20, GapRecord{.from_ticks = 10, .to_ticks = 20, .reason = "damaged"});
  story.alloc(25, 0x20, 100, story.a);
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 2u);
  for (const LiveBlock& block : result.live) EXPECT_EQ(block.fate_unknown, block.addr == 0x10);
}

TEST(Replay, UndoBringsTheBlockBack) {
  Story story;
  story.alloc(5, 0x10, 100, story.a);
  story.free(6, 0x10);
  story.source.add_record(7, UndoRecord{.addr = 0x10, .where = kCpu.packed()});
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].birth, 5u);
  EXPECT_EQ(result.pools[0].live_bytes, 100u);
}

TEST(Replay, PoolTotalsArePreferred) {
  Story story;
  story.source.add({.kind = EventKind::kAlloc,
                    .has_totals = true,
                    .where = kCuda,
                    .stack = story.a,
                    .time = 1,
                    .addr = 0x10,
                    .size = 512,
                    .allocated = 1512,
                    .reserved = 4096});
  story.source.add({.kind = EventKind::kFree,
                    .has_totals = true,
                    .where = kCuda,
                    .time = 2,
                    .addr = 0x10,
                    .allocated = 1000,
                    .reserved = 4096});
  const ReplayResult result = story.run();
  ASSERT_EQ(result.pools.size(), 1u);
  EXPECT_EQ(result.pools[0].allocated.start, 1000u) << "before the first event";
  EXPECT_EQ(result.pools[0].allocated.peak, 1512u);
  EXPECT_EQ(result.pools[0].allocated.end, 1000u);
  EXPECT_EQ(result.pools[0].reserved.peak, 4096u);
}

TEST(Replay, StepsBeyondTheBucketsFold) {
  Story story;
  uint64_t t = 0;
  for (uint32_t step = 1; step <= 1000; ++step) {
    story.alloc(++t, 0x100 + step * 16, 10, story.a);
    story.step(++t);
  }
  const ReplayResult result = story.run();
  // 1000 steps in buckets of 4: 250 points, the k-th at step 4k with 40 k bytes.
  EXPECT_EQ(result.buckets.width, 4u);
  const Group* a = group_of(result, story.a);
  ASSERT_EQ(a->live.size(), 250u);
  EXPECT_EQ(a->live[0].bytes, 40u);
  EXPECT_EQ(a->live[249].bytes, 10'000u);
  EXPECT_EQ(a->survivors[3].bytes, 40u);
}

TEST(Buckets, TheStepsBeforeTheFirstAreOne) {
  const Buckets some(5000, 1001);  // 4000 steps in at most 255 buckets: 16 each, 250 of them
  EXPECT_EQ(some.width, 16u);
  EXPECT_EQ(some.count(), 251u);
  EXPECT_EQ(some.of_step(1), 0u);
  EXPECT_EQ(some.of_step(1000), 0u);
  EXPECT_EQ(some.last_step(0), 1000u);
  EXPECT_EQ(some.of_step(1001), 1u);
  EXPECT_EQ(some.first_step(1), 1001u);
  EXPECT_EQ(some.last_step(1), 1016u);
  EXPECT_EQ(some.of_step(5000), 250u);
  EXPECT_EQ(some.last_step(250), 5000u);
  const Buckets all(1000);  // 4 each
  EXPECT_EQ(all.first_step(1), 5u);
  EXPECT_EQ(all.last_step(1), 8u);
  const Buckets none(10, 20);  // no such step
  EXPECT_EQ(none.count(), 1u);
}

TEST(Replay, TheStepsFromAToBAreSeenFinelyHoweverLongTheRun) {
  Story story;
  uint64_t t = 0;
  for (uint32_t step = 1; step <= 5000; ++step) {
    story.alloc(++t, 0x100 + step * 16, 10, story.a);
    story.step(++t);
  }
  const ReplayResult result = story.run({.first_step = 1001, .last_step = 1020});
  EXPECT_EQ(result.buckets.width, 1u);
  const Group* a = group_of(result, story.a);
  ASSERT_EQ(a->live.size(), 21u);
  EXPECT_EQ(a->live[0].bytes, 10'000u) << "at the end of step 1000";
  EXPECT_EQ(a->live[1].bytes, 10'010u);
  EXPECT_EQ(result.live.size(), 1020u);
  // Levels are those of the steps asked for.
  EXPECT_EQ(result.pools[0].allocated.start, 10'000u);
  EXPECT_EQ(result.pools[0].allocated.peak, 10'200u);
  EXPECT_EQ(result.pools[0].allocated.end, 10'200u);
}

TEST(Replay, LastStepCutsTheRun) {
  Story story;
  story.alloc(1, 0x10, 1, story.a);
  story.step(10);
  story.alloc(11, 0x20, 2, story.a);
  story.step(20);
  story.alloc(21, 0x30, 4, story.a);
  story.step(30);
  const ReplayResult result = story.run({.last_step = 2});
  EXPECT_EQ(result.last_step, 2u);
  ASSERT_EQ(result.live.size(), 2u) << "alive at the end of step 2";
}

TEST(Replay, HoldersAreJoinedWithTheLiveBlock) {
  Story story;
  story.alloc(5, 0x10, 100, story.a);
  story.source.add_record(
      9, HolderRecord{
             .addr = 0x10, .birth = 0, .root = "module", .file = "/home/me/train.py", .line = 3});
  story.source.add_record(9, HolderRecord{.addr = 0x10, .birth = 900'000, .root = "frame"});
  story.source.add_record(9, HolderRecord{.addr = 0x99, .root = "frame"});
  const ReplayResult result = story.run();
  ASSERT_EQ(result.side.holders.size(), 1u) << "another birth or address is another block";
  EXPECT_EQ(result.side.holders[0].birth, 5u);
  EXPECT_EQ(result.side.holders[0].size, 100u);
}

TEST(Replay, AHolderMayComeBeforeItsBlock) {
  Story story;
  story.source.add_record(5, HolderRecord{.addr = 0x10, .birth = 5, .root = "module"});
  story.alloc(5, 0x10, 100, story.a);
  EXPECT_EQ(story.run().side.holders.size(), 1u);
}

TEST(Replay, ABlockHasTheOwnerThatWasToldLast) {
  Story story;
  story.source.add_record(5, OwnerRecord{.addr = 0x10, .birth = 5, .owner = "PTA@early"});
  story.alloc(5, 0x10, 100, story.a);  // its record came first, at the same time
  story.alloc(6, 0x20, 100, story.a);
  story.source.add_record(7, OwnerRecord{.addr = 0x20, .owner = "PTA@model@weight"});
  story.source.add_record(8, OwnerRecord{.addr = 0x20, .birth = 6, .label = "mine"});
  story.alloc(9, 0x30, 100, story.a);
  // Half of it: a view, not the block. And one of another birth.
  story.source.add_record(10, OwnerRecord{.addr = 0x30, .owner = "PTA@view", .size = 50});
  story.source.add_record(10, OwnerRecord{.addr = 0x30, .birth = 900'000, .owner = "PTA@other"});
  const ReplayResult result = story.run();
  ASSERT_EQ(result.live.size(), 3u);
  for (const LiveBlock& block : result.live) {
    const BlockOwner expected = block.addr == 0x10   ? BlockOwner{"PTA@early", ""}
                                : block.addr == 0x20 ? BlockOwner{"PTA@model@weight", "mine"}
                                                     : BlockOwner{};
    EXPECT_EQ(result.side.owners[block.owner], expected) << block.addr;
  }
}

TEST(Replay, DeviceFilter) {
  Story story;
  story.alloc(5, 0x10, 100, story.a);
  story.alloc(6, 0x10, 7, story.a, 1, kCuda);
  const ReplayResult result = story.run({.device = Device{Device::kCuda, 0}});
  ASSERT_EQ(result.live.size(), 1u);
  EXPECT_EQ(result.live[0].size, 7u);
}

// The cache is emptied after the last block: only the pool's own state says so.
TEST(Replay, APoolsStateIsItsLevelFromThenOn) {
  const Where pool{Layer::kPool, {Device::kCuda, 0}};
  VectorSource source;
  source.add({.kind = EventKind::kAlloc,
              .has_totals = true,
              .where = pool,
              .time = 10,
              .addr = 0x1000,
              .size = 100,
              .allocated = 100,
              .reserved = 900});
  source.add_record(20,
                    PoolSnapshotRecord{.where = pool.packed(), .allocated = 100, .reserved = 500});
  // One that does not say what is reserved says nothing.
  source.add_record(30, PoolSnapshotRecord{.where = pool.packed(), .allocated = 7});
  const ReplayResult result = replay(source, {});
  ASSERT_EQ(result.pools.size(), 1u);
  EXPECT_EQ(result.pools[0].reserved.peak, 900u);
  EXPECT_EQ(result.pools[0].reserved.end, 500u);
  EXPECT_EQ(result.pools[0].allocated.end, 100u);
}

}  // namespace
}  // namespace memscope
