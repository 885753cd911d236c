#include "import/snapshot_events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/test_dumps.h"
#include "import/test_snapshots.h"
#include "replay/replay.h"

namespace memscope {
namespace {

using Lines = std::vector<std::string>;
constexpr uint64_t kBase = 0x7f0000000000;

OpenedFile opened(const SnapshotJson& snapshot) {
  return OpenedFile(pickled(snapshot), "memory.pickle");
}

// Blocks, in order: A (700 bytes, 1,024 rounded) was there before the history, with its stack, as
// it is alive at the end; B was there and is freed; C comes and stays; D comes and goes.
SnapshotJson four_blocks() {
  const SnapshotJson stack = {frame("/t/train.py", 7, "step")};
  return {{"segments",
           {segment(kBase, "small",
                    {block(1024, 700, "active_allocated", stack), block(512, 0, "inactive"),
                     block(1024, 1000, "active_allocated", stack),
                     block(2 * kMiB - 2560, 0, "inactive")})}},
          {"device_traces",
           {{trace_entry("free_requested", kBase + 1024, 300, 1000),
             trace_entry("free_completed", kBase + 1024, 300, 1001),
             trace_entry("alloc", kBase + 1536, 1000, 1002, stack),
             trace_entry("alloc", kBase + 1024, 10, 1003, stack),
             trace_entry("free_requested", kBase + 1024, 10, 1004),
             trace_entry("free_completed", kBase + 1024, 10, 1005)}}}};
}

TEST(SnapshotEvents, BlocksBeginAndEndAsTheProgramSawIt) {
  OpenedFile file = opened(four_blocks());
  ASSERT_EQ(file.error(), "");
  EXPECT_EQ(file.input().info().kind, InputKind::kSnapshot);
  EXPECT_EQ(block_events(file), (Lines{
                                    "alloc 7f0000000000+1024 @1000000 pool cuda:0",
                                    "seed 7f0000000400+512 @1000000 pool cuda:0",
                                    "free 7f0000000400+0 @1000000 pool cuda:0",
                                    "alloc 7f0000000600+1024 @1002000 pool cuda:0",
                                    "alloc 7f0000000400+512 @1003000 pool cuda:0",
                                    "free 7f0000000400+0 @1004000 pool cuda:0",
                                }));
  // Again from the beginning, as often as wanted.
  EXPECT_EQ(block_events(file).size(), 6u);
}

// Allocated: 1,024 + 512 at the beginning; less B, plus C, plus D (512), less D: 2,048 at the end,
// which is what the segment says.
TEST(SnapshotEvents, TotalsAreThoseOfThePool) {
  OpenedFile file = opened(four_blocks());
  std::vector<uint64_t> allocated;
  for (const auto& [event, words] : file.events()) {
    if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) continue;
    ASSERT_TRUE(event.has_totals);
    EXPECT_EQ(event.reserved, 2 * kMiB);
    allocated.push_back(event.allocated);
  }
  EXPECT_EQ(allocated, (std::vector<uint64_t>{1536, 1024, 2048, 2560, 2048}));
  const auto sums = file.records<PoolSnapshotRecord>();
  ASSERT_EQ(sums.size(), 1u);
  const auto record = decode_record<PoolSnapshotRecord>(sums[0].second);
  EXPECT_EQ(record->allocated, 2048u);
  EXPECT_EQ(record->reserved, 2 * kMiB);
  EXPECT_EQ(record->requested, 1700u);
}

TEST(SnapshotEvents, AReplayEndsWithTheSnapshotsBlocks) {
  OpenedFile file = opened(four_blocks());
  const ReplayResult result =
      file.input().visit([](auto& source) { return replay(source, ReplayOptions{}); });
  ASSERT_EQ(result.pools.size(), 1u);
  EXPECT_EQ(result.pools[0].allocated.end, 2048u);
  EXPECT_EQ(result.pools[0].reserved.end, 2 * kMiB);
  EXPECT_EQ(result.live.size(), 2u);
  EXPECT_EQ(result.unknown_frees, 0u);
  EXPECT_EQ(result.ambiguous, 0u);
  EXPECT_FALSE(file.input().info().complete);  // two blocks are older than the history
}

// Freed while another stream uses it: gone for the program at 1,000, for the pool at 2,000 only, so
// that its place is not used before.
TEST(SnapshotEvents, AFreeIsWhenTheProgramAsks) {
  const SnapshotJson snapshot{
      {"segments",
       {segment(kBase, "small", {block(512, 512), block(2 * kMiB - 512, 0, "inactive")})}},
      {"device_traces",
       {{trace_entry("alloc", kBase, 300, 900), trace_entry("free_requested", kBase, 300, 1000),
         trace_entry("free_completed", kBase, 300, 2000),
         trace_entry("alloc", kBase, 512, 2001)}}}};
  OpenedFile file = opened(snapshot);
  EXPECT_EQ(block_events(file), (Lines{
                                    "alloc 7f0000000000+512 @900000 pool cuda:0",
                                    "free 7f0000000000+0 @1000000 pool cuda:0",
                                    "alloc 7f0000000000+512 @2001000 pool cuda:0",
                                }));
}

// The ring's oldest entry is a free that completes: its block was freed before, and is none.
TEST(SnapshotEvents, WhatWasFreedBeforeTheHistoryIsNoBlock) {
  const SnapshotJson snapshot{
      {"segments",
       {segment(kBase, "small", SnapshotJson::array({block(2 * kMiB, 0, "inactive")}))}},
      {"device_traces", SnapshotJson::array({SnapshotJson::array(
                            {trace_entry("free_completed", kBase, 300, 1000)})})}};
  OpenedFile file = opened(snapshot);
  ASSERT_EQ(file.error(), "");
  EXPECT_TRUE(block_events(file).empty());
}

// A snapshot without a history is a state: what is in it counts as allocated, and nothing is said
// to be older than anything.
TEST(SnapshotEvents, AStateAloneIsItsBlocks) {
  SnapshotJson snapshot = four_blocks();
  snapshot["device_traces"] = SnapshotJson::array({SnapshotJson::array()});
  OpenedFile file = opened(snapshot);
  EXPECT_EQ(block_events(file), (Lines{
                                    "alloc 7f0000000000+1024 @1 pool cuda:0",
                                    "alloc 7f0000000600+1024 @1 pool cuda:0",
                                }));
  EXPECT_FALSE(file.input().info().complete);
}

TEST(SnapshotEvents, DevicesAreMergedByTime) {
  const auto device = [](uint64_t addr, int index) {
    return segment(addr, "small", {block(512, 512), block(2 * kMiB - 512, 0, "inactive")}, false,
                   index);
  };
  const SnapshotJson snapshot{
      {"segments", {device(kBase, 0), device(kBase + 4 * kMiB, 1)}},
      {"device_traces",
       {{trace_entry("alloc", kBase, 512, 2000), trace_entry("snapshot", 0, 512, 2003)},
        {trace_entry("alloc", kBase + 4 * kMiB, 512, 1500),
         trace_entry("snapshot", 0, 512, 2004)}}}};
  OpenedFile file = opened(snapshot);
  EXPECT_EQ(block_events(file), (Lines{
                                    "alloc 7f0000400000+512 @1500000 pool cuda:1",
                                    "alloc 7f0000000000+512 @2000000 pool cuda:0",
                                }));
  EXPECT_EQ(file.records<MarkRecord>().size(), 2u);
}

// Without a clock an entry's time is its place, in microseconds.
TEST(SnapshotEvents, WithoutAClockOrderIsTheTime) {
  SnapshotJson snapshot = four_blocks();
  for (SnapshotJson& entry : snapshot["device_traces"][0]) entry.erase("time_us");
  OpenedFile file = opened(snapshot);
  const Lines lines = block_events(file);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], "alloc 7f0000000000+1024 @1000 pool cuda:0");
  EXPECT_EQ(lines[3], "alloc 7f0000000600+1024 @3000 pool cuda:0");
}

TEST(SnapshotEvents, SegmentsAndFailuresAreRecords) {
  const SnapshotJson stack = {frame("/t/train.py", 7, "step")};
  SnapshotJson oom{{"action", "oom"}, {"device_free", 77}, {"size", 4096},
                   {"stream", 0},     {"time_us", 1002},   {"frames", stack}};
  const SnapshotJson snapshot{
      {"segments",
       {segment(kBase, "small", SnapshotJson::array({block(2 * kMiB, 0, "inactive")}))}},
      {"device_traces",
       {{trace_entry("segment_alloc", kBase, 2 * kMiB, 1000, stack),
         trace_entry("segment_alloc", kBase + 4 * kMiB, 20 * kMiB, 1001, stack), oom,
         trace_entry("segment_free", kBase + 4 * kMiB, 20 * kMiB, 1003, stack)}}}};
  OpenedFile file = opened(snapshot);
  const auto segments = file.records<SegmentRecord>();
  ASSERT_EQ(segments.size(), 3u);
  const auto first = decode_record<SegmentRecord>(segments[0].second);
  EXPECT_EQ(first->action, 0u);
  EXPECT_EQ(first->sized & kSizeMask, 2 * kMiB);
  EXPECT_NE(segments[0].first.stack, StackId());
  EXPECT_EQ(decode_record<SegmentRecord>(segments[2].second)->action, 1u);
  const auto ooms = file.records<OomRecord>();
  ASSERT_EQ(ooms.size(), 1u);
  const auto record = decode_record<OomRecord>(ooms[0].second);
  EXPECT_EQ(record->size, 4096u);
  EXPECT_EQ(record->reserved, 22 * kMiB);
}

// torch's own ranges: the end of an optimizer's step ends a step.
TEST(SnapshotEvents, AnOptimizersRangesAreSteps) {
  SnapshotJson snapshot = four_blocks();
  snapshot["external_annotations"] = SnapshotJson::array();
  for (int i = 0; i < 3; ++i) {
    snapshot["external_annotations"].push_back({{"stage", "START"},
                                                {"name", "Optimizer.step#AdamW.step"},
                                                {"device", 0},
                                                {"time_us", 1000 + 2 * i}});
    snapshot["external_annotations"].push_back({{"stage", "END"},
                                                {"name", "Optimizer.step#AdamW.step"},
                                                {"device", 0},
                                                {"time_us", 1001 + 2 * i}});
  }
  OpenedFile file = opened(snapshot);
  const auto steps = file.records<StepRecord>();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].first.time, 1'003'000u);
  EXPECT_EQ(decode_record<StepRecord>(steps[0].second)->name, "AdamW.step");
  const auto marks = file.records<MarkRecord>();
  ASSERT_EQ(marks.size(), 6u);
  // A begin and its end have the same number.
  EXPECT_EQ(decode_record<MarkRecord>(marks[2].second)->range,
            decode_record<MarkRecord>(marks[3].second)->range);
}

TEST(SnapshotEvents, WhatTheUserSaidOfABlockIsItsLabel) {
  SnapshotJson snapshot = four_blocks();
  snapshot["device_traces"][0][2]["user_metadata"] = "kv cache";
  OpenedFile file = opened(snapshot);
  const auto owners = file.records<OwnerRecord>();
  ASSERT_EQ(owners.size(), 1u);
  const auto owner = decode_record<OwnerRecord>(owners[0].second);
  EXPECT_EQ(owner->addr, kBase + 1536);
  EXPECT_EQ(owner->label, "kv cache");
}

}  // namespace
}  // namespace memscope
