#include "replay/pool_state.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;
constexpr uint64_t kBase = uint64_t{1} << 40;

PoolEntry entry(PoolAction action, uint64_t addr, uint64_t size) {
  return {.addr = addr, .size = size, .action = action};
}

// -- rounding -------------------------------------------------------------------------------------

TEST(PoolRules, RequestsAreRoundedTo512) {
  const PoolRounding plain;
  EXPECT_EQ(rounded_request(0, plain), 512u);
  EXPECT_EQ(rounded_request(1, plain), 512u);
  EXPECT_EQ(rounded_request(512, plain), 512u);
  EXPECT_EQ(rounded_request(513, plain), 1024u);
}

// torch_npu asks for 32 bytes more: 480 just fit, 481 do not.
TEST(PoolRules, AnNpusRequestsArePaddedFirst) {
  const PoolRounding npu{.pad = 32, .divisions = {}};
  EXPECT_EQ(rounded_request(480, npu), 512u);
  EXPECT_EQ(rounded_request(481, npu), 1024u);
  EXPECT_EQ(rounded_request(512, npu), 1024u);
  EXPECT_EQ(rounded_request(kMi, npu), kMi + 512);
}

// Four divisions of 1 to 2 MiB: steps of 256 KiB. A power of two stays as it is.
TEST(PoolRules, DivisionsRoundToPartsOfAPowerOfTwo) {
  PoolRounding four;
  four.divisions.fill(4);
  EXPECT_EQ(rounded_request(kMi, four), kMi);
  EXPECT_EQ(rounded_request(kMi + 1, four), kMi + 256 * 1024);
  EXPECT_EQ(rounded_request(1200 * 1024, four), 1280u * 1024);
  // Below 512 * divisions nothing changes.
  EXPECT_EQ(rounded_request(2048, four), 2048u);
  EXPECT_EQ(rounded_request(2049, four), 2560u);
  // Of 1 to 2 MiB only: 3 MiB + 1 are rounded as ever.
  PoolRounding first;
  first.divisions[0] = 4;
  EXPECT_EQ(rounded_request(3 * kMi + 1, first), 3 * kMi + 512);
}

// -- working back ---------------------------------------------------------------------------------

TEST(PoolState, WithoutAHistoryTheBeginningIsTheEnd) {
  PoolHistory history;
  history.segments = {{.addr = kBase, .size = 2 * kMi}};
  history.blocks = {{.addr = kBase, .size = 512, .requested = 100}};
  const PoolStart start = work_back(history, {});
  ASSERT_EQ(start.segments.size(), 1u);
  ASSERT_EQ(start.blocks.size(), 1u);
  EXPECT_EQ(start.blocks[0].size, 512u);
  EXPECT_EQ(start.odd, 0u);
}

// segment_alloc, alloc A, alloc B, free A: at the end B; at the beginning nothing.
TEST(PoolState, WhatBeganInTheHistoryWasNotThereBefore) {
  PoolHistory history;
  history.segments = {{.addr = kBase, .size = 2 * kMi}};
  history.blocks = {{.addr = kBase + 512, .size = 1024, .requested = 700}};
  history.entries = {
      entry(PoolAction::kSegmentAlloc, kBase, 2 * kMi), entry(PoolAction::kAlloc, kBase, 10),
      entry(PoolAction::kAlloc, kBase + 512, 700), entry(PoolAction::kFreeRequested, kBase, 10),
      entry(PoolAction::kFreeCompleted, kBase, 10)};
  const PoolStart start = work_back(history, {});
  EXPECT_TRUE(start.segments.empty());
  EXPECT_TRUE(start.blocks.empty());
  EXPECT_EQ(start.odd, 0u);
  // What the one that is alive got: entry 2.
  ASSERT_EQ(start.got.size(), 1u);
  EXPECT_EQ(start.got[0].entry, 2u);
  EXPECT_EQ(start.got[0].size, 1024u);
}

TEST(PoolState, AFreeWithoutAnAllocIsABlockFromBefore) {
  PoolHistory history;
  history.entries = {entry(PoolAction::kFreeRequested, kBase, 1000),
                     entry(PoolAction::kFreeCompleted, kBase, 1000),
                     // Its request to be freed came before the history.
                     entry(PoolAction::kFreeCompleted, kBase + 4096, 600),
                     entry(PoolAction::kSegmentFree, kBase, 2 * kMi)};
  const PoolStart start = work_back(history, {});
  ASSERT_EQ(start.segments.size(), 1u);
  EXPECT_FALSE(start.segments[0].large);
  ASSERT_EQ(start.blocks.size(), 2u);
  EXPECT_EQ(start.blocks[0].size, 1024u);
  EXPECT_EQ(start.blocks[0].requested, 1000u);
  EXPECT_FALSE(start.blocks[0].exact);
  EXPECT_EQ(start.blocks[0].state, PoolBlockState::kAllocated);
  EXPECT_EQ(start.blocks[1].state, PoolBlockState::kPendingFree);
}

// A range of 6 MiB at the end; 2 to 4 were mapped, and 8 to 10 unmapped, in the history:
//
//   beginning  | 0  2 |      | 4  6 |      | 8 10 |
//   end        | 0            6 |
TEST(PoolState, MappedRangesAreCutAndJoined) {
  PoolHistory history;
  history.segments = {{.addr = kBase, .size = 6 * kMi, .large = true, .expandable = true}};
  history.entries = {entry(PoolAction::kSegmentUnmap, kBase + 8 * kMi, 2 * kMi),
                     entry(PoolAction::kSegmentMap, kBase + 2 * kMi, 2 * kMi)};
  const PoolStart start = work_back(history, {});
  ASSERT_EQ(start.segments.size(), 3u);
  EXPECT_EQ(start.segments[0].size, 2 * kMi);
  EXPECT_EQ(start.segments[1].addr, kBase + 4 * kMi);
  EXPECT_EQ(start.segments[1].size, 2 * kMi);
  EXPECT_EQ(start.segments[2].addr, kBase + 8 * kMi);
  EXPECT_TRUE(start.segments[2].large);
  EXPECT_EQ(start.odd, 0u);
  // Unmapped between two ranges: one range before.
  history.segments = {
      {.addr = kBase, .size = 2 * kMi, .large = true, .expandable = true},
      {.addr = kBase + 4 * kMi, .size = 2 * kMi, .large = true, .expandable = true}};
  history.entries = {entry(PoolAction::kSegmentUnmap, kBase + 2 * kMi, 2 * kMi)};
  const PoolStart joined = work_back(history, {});
  ASSERT_EQ(joined.segments.size(), 1u);
  EXPECT_EQ(joined.segments[0].size, 6 * kMi);
}

// Of a block from before only the request is known, 3 MiB; in the large pool up to 1 MiB may have
// been left to it.
TEST(PoolState, HowFarABlockFromBeforeReaches) {
  PoolHistory history;
  history.segments = {{.addr = kBase, .size = 20 * kMi, .large = true}};
  history.blocks = {{.addr = kBase + 3 * kMi + kMi / 2, .size = 2 * kMi, .requested = 2 * kMi}};
  history.entries = {entry(PoolAction::kFreeRequested, kBase, 3 * kMi),
                     entry(PoolAction::kFreeCompleted, kBase, 3 * kMi)};
  // The next block is half a MiB behind: that was too little to be split off.
  EXPECT_EQ(work_back(history, {}).blocks.at(0).size, 3 * kMi + kMi / 2);
  // More than 1 MiB behind: it was split off.
  history.blocks[0].addr = kBase + 5 * kMi;
  EXPECT_EQ(work_back(history, {}).blocks.at(0).size, 3 * kMi);
  // But another block was put 3.5 MiB behind its beginning while it lived.
  history.entries.push_front(entry(PoolAction::kFreeCompleted, kBase + 3 * kMi + kMi / 2, kMi));
  history.entries.push_front(entry(PoolAction::kFreeRequested, kBase + 3 * kMi + kMi / 2, kMi));
  history.entries.push_front(entry(PoolAction::kAlloc, kBase + 3 * kMi + kMi / 2, kMi));
  EXPECT_EQ(work_back(history, {}).blocks.at(0).size, 3 * kMi + kMi / 2);
}

TEST(PoolState, WhatDoesNotFitIsCounted) {
  PoolHistory history;
  history.entries = {entry(PoolAction::kAlloc, kBase, 512),
                     entry(PoolAction::kSegmentAlloc, kBase, 2 * kMi),
                     entry(PoolAction::kSegmentMap, kBase, 2 * kMi),
                     entry(PoolAction::kFreeCompleted, kBase, ~uint64_t{0})};
  EXPECT_EQ(work_back(history, {}).odd, 4u);
}

TEST(PoolState, PaddingShowsInTheBlocks) {
  PoolHistory history;
  history.blocks = {{.addr = kBase, .size = 1024, .requested = 512}};
  EXPECT_TRUE(pads_requests(history, {}));
  history.blocks = {{.addr = kBase, .size = 512, .requested = 512}};
  EXPECT_FALSE(pads_requests(history, {}));
  // 600 take 1,024 either way.
  history.blocks = {{.addr = kBase, .size = 1024, .requested = 600}};
  EXPECT_FALSE(pads_requests(history, {}));
}

}  // namespace
}  // namespace memscope
