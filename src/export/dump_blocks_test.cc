#include "export/dump_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "export/dump_story.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;

// "+id addr size" for a begin, "-" for an end, a trailing "s" for shadow; "@time" first.
std::vector<std::string> changes(DumpStory& story, DumpBlocks& blocks) {
  std::vector<std::string> all;
  const auto take = [&](std::span<const BlockChange> some) {
    for (const BlockChange& change : some) {
      all.push_back("@" + std::to_string(change.time) + (change.alloc ? " +" : " -") +
                    std::to_string(change.block.id) + " " + std::to_string(change.addr) + " " +
                    std::to_string(change.block.size) + (change.shadow ? " s" : ""));
    }
  };
  story.visit([&](auto& source) {
    for_each_event(source, [&](const Event& event) {
      take(blocks.feed(event));
      return true;
    });
  });
  take(blocks.finish());
  return all;
}

TEST(DumpBlocks, AFreeHasItsBlocksIdAndSize) {
  DumpStory story;
  story.alloc(10, 100, 64);
  story.alloc(20, 200, 32);
  story.free(30, 100);
  story.alloc(40, 100, 8);  // the address again: another block
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks),
              ElementsAre("@10 +1 100 64", "@20 +2 200 32", "@30 -1 100 64", "@40 +3 100 8"));
}

TEST(DumpBlocks, LayersWithTheSameAddressAreDifferentBlocks) {
  DumpStory story;
  const Where driver{Layer::kDriver, kCuda.device};
  story.alloc(10, 100, 4096, driver);
  story.alloc(20, 100, 64, kCuda);
  story.free(30, 100, kCuda);
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks),
              ElementsAre("@10 +1 100 4096", "@20 +2 100 64", "@30 -2 100 64"));
}

TEST(DumpBlocks, WhatIsAliveAtStartIsAShadowAlloc) {
  DumpStory story;
  story.window(10, kStartWindow);
  story.seed(10, 100, 64, 0);
  story.free(20, 100);
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks), ElementsAre("@10 +1 100 64 s", "@20 -1 100 64"));
}

// stop at 30, start at 50: block 100 lived on (seeded with its birth), 200 did not, 300 was made in
// between and is told as alive from the start on.
TEST(DumpBlocks, FreedWhileNotRecordingEndsAtTheNextStart) {
  DumpStory story;
  story.window(5, kStartWindow);
  story.alloc(10, 100, 64);
  story.alloc(20, 200, 32);
  story.window(30, kStopWindow);
  story.window(50, kStartWindow);
  story.seed(50, 100, 64, 10);
  story.seed(50, 300, 16, 40);
  story.free(60, 100);
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks),
              ElementsAre("@10 +1 100 64", "@20 +2 200 32", "@50 +3 300 16 s", "@50 -2 200 32 s",
                          "@60 -1 100 64"));
}

TEST(DumpBlocks, WhatIsAliveAtTheEndHasNoFree) {
  DumpStory story;
  story.window(5, kStartWindow);
  story.alloc(10, 100, 64);
  story.window(30, kStopWindow);
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks), ElementsAre("@10 +1 100 64"));
  EXPECT_EQ(blocks.live(99).size(), 1u);
}

// Thread 2's alloc is timed 1 ns before thread 1's free of the old block: within the clocks' skew.
TEST(DumpBlocks, AnAllocOnALiveAddressEndsTheOldBlockFirst) {
  DumpStory story;
  story.alloc(10, 100, 64, kCpu, 1);
  story.alloc(99, 100, 32, kCpu, 2);
  story.free(100, 100, kCpu, 1);  // the old block's
  story.free(200, 100, kCpu, 2);
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks),
              ElementsAre("@10 +1 100 64", "@99 -1 100 64 s", "@99 +2 100 32", "@200 -2 100 32"));
}

TEST(DumpBlocks, AnUndoneFreeBringsTheBlockBack) {
  DumpStory story;
  story.alloc(10, 100, 64);
  story.free(20, 100);
  story.record(21, UndoRecord{.addr = 100, .where = kCpu.packed()});
  story.free(30, 100);
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks),
              ElementsAre("@10 +1 100 64", "@20 -1 100 64", "@21 +1 100 64 s", "@30 -1 100 64"));
}

TEST(DumpBlocks, AFreeOfAnUnknownAddressCountsUnlessItsSizeIsKnown) {
  DumpStory story;
  story.free(10, 100);
  story.source().add(
      {.kind = EventKind::kFree, .where = kCpu, .time = 20, .addr = 200, .size = 48});
  DumpBlocks blocks;
  EXPECT_THAT(changes(story, blocks), ElementsAre("@20 -1 200 48"));
  EXPECT_EQ(blocks.frees_left_out(), 1u);
}

}  // namespace
}  // namespace memscope
