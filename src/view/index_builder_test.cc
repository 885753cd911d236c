#include "view/index_builder.h"

#include <gtest/gtest.h>

#include "view/test_index.h"

namespace memscope::view {
namespace {

std::vector<uint32_t> live_at(const PoolIndex& pool, uint32_t state) {
  std::vector<uint32_t> blocks;
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    if (pool.alive(block, state)) blocks.push_back(block);
  }
  return blocks;
}

TEST(IndexBuilder, PairsAllocsWithFrees) {
  IndexScript script;
  script.alloc(0, 0xA0, 100);
  script.alloc(10, 0xB0, 50);
  script.free(20, 0xA0);
  script.alloc(30, 0xA0, 7);  // the address again: another block
  const auto input = script.build();
  ASSERT_EQ(input->pools.size(), 1u);
  const PoolIndex& pool = *input->pools[0];
  EXPECT_EQ(pool.where, kTestWhere);
  ASSERT_EQ(pool.blocks(), 3u);
  ASSERT_EQ(pool.events(), 4u);
  EXPECT_EQ(live_at(pool, 0), std::vector<uint32_t>{});
  EXPECT_EQ(live_at(pool, 2), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(live_at(pool, 3), std::vector<uint32_t>{2});
  EXPECT_EQ(live_at(pool, 4), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(pool.end_time(1), 20u);
  EXPECT_EQ(pool.end_time(3), std::nullopt);
  EXPECT_EQ(pool.bytes_in(2), 150u);
  EXPECT_EQ(pool.bytes_in(4), 57u);
  EXPECT_EQ(pool.peak.bytes, 150u);
  EXPECT_EQ(pool.peak.state, 2u);
  EXPECT_EQ(pool.live_blocks, 2u);
  EXPECT_EQ(pool.live_bytes, 57u);
  EXPECT_EQ(input->origin, kTestOrigin);
}

TEST(IndexBuilder, AnAllocOnALiveAddressEndsWhatWasThere) {
  IndexScript script;
  script.alloc(0, 0xA0, 100);
  script.alloc(10'000'000, 0xA0, 30);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  ASSERT_EQ(pool.blocks(), 2u);
  EXPECT_EQ(pool.end_time(1), 10'000'000u);
  EXPECT_NE(pool.sized[1] & kEndUnseen, 0u);
  EXPECT_EQ(pool.live_bytes, 30u);
}

TEST(IndexBuilder, AFreeThatWasUndoneNeverHappened) {
  IndexScript script;
  script.alloc(0, 0xA0, 100);
  script.alloc(1, 0xB0, 10);
  script.free(10, 0xA0);
  script.record(11, UndoRecord{.addr = 0xA0, .where = kTestWhere.packed()});
  script.free(20, 0xB0);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  EXPECT_EQ(pool.end_time(1), std::nullopt);
  EXPECT_EQ(pool.bytes_in(3), 110u);  // after the free that was none
  EXPECT_EQ(pool.live_bytes, 100u);
  EXPECT_EQ(pool.live_blocks, 1u);
}

TEST(IndexBuilder, AccessesAreTheirBlocks) {
  IndexScript script;
  const auto access = [&](uint64_t time, uint64_t addr, uint64_t mode) {
    script.record(time, AccessRecord{.addr = addr, .size = 8, .mode = mode, .op = "aten::mm"});
  };
  script.alloc(0, 0xA0, 100);
  script.alloc(1, 0xB0, 100);
  access(5, 0xA0, 2);
  access(6, 0xB0, 1);
  access(7, 0xC0, 1);  // nobody's
  script.free(10, 0xA0);
  access(11, 0xA0, 1);  // too late
  script.alloc(20, 0xA0, 7);
  access(21, 0xA0, 0);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  const auto of = [&](uint32_t block) {
    std::vector<std::string> found;
    pool.for_each_access(block, [&](size_t at) {
      const uint32_t what = pool.access_what[at];
      found.push_back(std::to_string(pool.access_time[at]) + " " +
                      input->names[what & (PoolIndex::kRead - 1)] +
                      ((what & PoolIndex::kRead) != 0 ? " read" : "") +
                      ((what & PoolIndex::kWritten) != 0 ? " written" : ""));
    });
    return found;
  };
  EXPECT_EQ(of(1), std::vector<std::string>{"5 aten::mm written"});
  EXPECT_EQ(of(2), std::vector<std::string>{"6 aten::mm read"});
  EXPECT_EQ(of(3), std::vector<std::string>{"21 aten::mm"});
}

TEST(IndexBuilder, BlocksThatAreNotSeededAgainEndedInThePause) {
  const auto window = [](uint64_t time, uint64_t action) {
    Event event{.kind = EventKind::kWindow};
    event.time = time;
    event.size = action;
    return event;
  };
  const auto seed = [](uint64_t time, uint64_t addr, uint64_t size, uint64_t birth) {
    Event event{.kind = EventKind::kSeed, .where = kTestWhere};
    event.time = time;
    event.addr = addr;
    event.size = size;
    event.birth = birth;
    return event;
  };
  IndexScript script;
  script.event(window(0, 1));
  script.event(seed(1, 0x10, 5, 0));  // was there before the hooks
  script.alloc(100, 0xA0, 100);
  script.alloc(110, 0xB0, 10);
  script.event(window(200'000, 2));
  script.event(window(900'000, 1));
  script.event(seed(900'001, 0xA0, 100, kTestOrigin + 100));  // still there
  script.event(seed(900'001, 0x10, 5, 0));
  script.alloc(950'000, 0xC0, 1);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  ASSERT_EQ(pool.blocks(), 4u);
  EXPECT_NE(pool.sized[1] & kPreexisting, 0u);
  EXPECT_EQ(pool.end_time(1), std::nullopt);
  EXPECT_EQ(pool.end_time(2), std::nullopt);  // 0xA0
  EXPECT_EQ(pool.end_time(3), 900'000u);      // 0xB0
  EXPECT_EQ(pool.live_bytes, 106u);
  ASSERT_EQ(input->windows.size(), 2u);
  EXPECT_EQ(input->windows[0].end, 200'000u);
}

TEST(IndexBuilder, KeepsWhatAPoolSaysOfItself) {
  IndexScript script;
  Event event{.kind = EventKind::kAlloc, .has_totals = true, .where = kTestWhere};
  event.addr = 0xA0;
  event.size = 512;
  event.allocated = 1512;  // 1,000 bytes from before the trace
  event.reserved = 4096;
  script.event(event);
  event.addr = 0xB0;
  event.time = 5;
  event.allocated = 2024;
  event.reserved = 8192;
  script.event(event);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  EXPECT_EQ(pool.reserved.at(0), std::nullopt);
  EXPECT_EQ(pool.reserved.at(1), 4096);
  EXPECT_EQ(pool.reserved.at(2), 8192);
  ASSERT_EQ(pool.untracked.states.size(), 1u);  // did not change
  EXPECT_EQ(pool.untracked.at(2), 1000);
}

TEST(IndexBuilder, OwnersStepsPhasesAndCountersComeAlong) {
  IndexScript script;
  const StackId stack = script.line(99, "leak");
  script.alloc(0, 0xA0, 100, stack);
  script.record(5, OwnerRecord{.addr = 0xA0, .owner = "PTA@model@weight", .label = "mine"});
  script.record(6, PhaseRecord{.phase = 1, .module = "net"});
  script.record(7, CounterRecord{.name = "rss", .value = 77});
  script.step(1000);
  script.step(2000);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  EXPECT_EQ(input->owners[pool.owner[1]], "PTA@model@weight@mine");
  ASSERT_EQ(input->phases.size(), 1u);
  EXPECT_EQ(input->names[input->phases[0].module], "net");
  ASSERT_EQ(input->counters.size(), 1u);
  EXPECT_EQ(input->counters[0].values, std::vector<int64_t>{77});
  EXPECT_EQ(input->steps.ends, (std::vector<uint64_t>{1000, 2000}));
  EXPECT_EQ(input->step_at(1000), 1u);
  EXPECT_EQ(input->step_at(1001), 2u);
  EXPECT_EQ(input->step_at(2001), 3u);
  EXPECT_EQ(input->site_place(input->site_of_stack(pool.stack[1])), "train.py:99");
}

// The totals of every state, by adding up.
TEST(PoolIndex, ExtremesAreThoseOfEveryStateInTheRange) {
  const auto input = random_index(1, 5000);
  const PoolIndex& pool = *input->pools[0];
  std::vector<uint64_t> bytes{0};
  for (uint32_t event = 0; event < pool.events(); ++event) {
    const uint32_t word = pool.event[event];
    const uint64_t size = pool.size(word & ~kFreeBit);
    bytes.push_back((word & kFreeBit) != 0 ? bytes.back() - size : bytes.back() + size);
  }
  std::mt19937 random(3);
  for (int turn = 0; turn < 500; ++turn) {
    uint32_t first = random() % bytes.size(), last = random() % bytes.size();
    if (first > last) std::swap(first, last);
    const auto [most, least] = pool.extremes(first, last);
    const auto begin = bytes.begin() + first, end = bytes.begin() + last + 1;
    ASSERT_EQ(most.bytes, *std::max_element(begin, end));
    ASSERT_EQ(least.bytes, *std::min_element(begin, end));
    ASSERT_EQ(bytes[most.state], most.bytes);
    ASSERT_EQ(bytes[least.state], least.bytes);
    ASSERT_GE(most.state, first);
    ASSERT_LE(most.state, last);
    ASSERT_EQ(pool.bytes_in(first), bytes[first]);
  }
  EXPECT_EQ(pool.peak.bytes, *std::max_element(bytes.begin(), bytes.end()));
}

TEST(PoolIndex, GroupsMadeAtOnceAreThoseMadeOnTheWay) {
  const auto input = random_index(2, 1000);
  PoolIndex& pool = *input->pools[0];
  std::vector<EventGroup> made(pool.groups.begin(), pool.groups.end());
  const Extreme peak = pool.peak;
  pool.make_groups();
  ASSERT_EQ(pool.groups.size(), made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(pool.groups[i].before, made[i].before);
    EXPECT_EQ(pool.groups[i].most, made[i].most);
    EXPECT_EQ(pool.groups[i].least, made[i].least);
    EXPECT_EQ(pool.groups[i].most_at, made[i].most_at);
    EXPECT_EQ(pool.groups[i].least_at, made[i].least_at);
  }
  EXPECT_EQ(pool.peak.state, peak.state);
}

}  // namespace
}  // namespace memscope::view
