// What a sink is told, event by event: the table at the head of block_tracker.h.
#include "replay/block_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "replay/event_source.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
constexpr uint64_t kStart = 1, kStop = 2;

struct Named : BlockLife {
  char name = '?';
};

// "+a 100" where block a begins at address 100, "-a freed" where it ends, "=a" where it returns,
// "?100" for a free of an unknown address. Blocks are named a, b, c as they begin.
struct Notes {
  BlockTracker<Named> tracker;
  std::vector<std::string> told;
  char next = 'a';
  uint64_t refused = 0;  // an address that is not kept

  bool begins(Named& block, const Event& event) {
    if (event.addr == refused) return false;
    block.name = next++;
    told.push_back(std::string("+") + block.name + " " + std::to_string(event.addr));
    if (block.fate_unknown != 0) told.back() += " fate unknown";
    return true;
  }
  void ends(const Named& block, const BlockEnd& end) {
    constexpr const char* kHow[] = {"freed", "replaced", "reseeded", "unseeded"};
    told.push_back(std::string("-") + block.name + " " + kHow[static_cast<int>(end.how)] + " @" +
                   std::to_string(end.time));
    EXPECT_EQ(block_key(block_addr(end.key, block.place()), block.place()), end.key);
  }
  void returns(Named& block, const Event&) { told.push_back(std::string("=") + block.name); }
  void unknown_free(const Event& event) { told.push_back("?" + std::to_string(event.addr)); }

  void alloc(uint64_t time, uint64_t addr, uint64_t size = 64, uint32_t thread = 1) {
    feed({.kind = EventKind::kAlloc,
          .where = kCpu,
          .thread = ThreadId(thread),
          .time = time,
          .addr = addr,
          .size = size});
  }
  void free(uint64_t time, uint64_t addr, uint32_t thread = 1) {
    feed({.kind = EventKind::kFree,
          .where = kCpu,
          .thread = ThreadId(thread),
          .time = time,
          .addr = addr});
  }
  void seed(uint64_t time, uint64_t addr, uint64_t birth, uint64_t size = 64) {
    feed({.kind = EventKind::kSeed,
          .where = kCpu,
          .time = time,
          .addr = addr,
          .size = size,
          .birth = birth});
  }
  WindowChange window(uint64_t time, uint64_t action) {
    return tracker.window({.kind = EventKind::kWindow, .time = time, .size = action}, *this);
  }
  void undo(uint64_t time, uint64_t addr) {
    VectorSource source;
    source.add_record(time, UndoRecord{.addr = addr, .where = kCpu.packed()});
    std::vector<Event> batch(1);
    ASSERT_EQ(source.next_batch(batch), 1u);
    feed(batch[0]);
  }
  void feed(const Event& event) { tracker.feed(event, *this); }
};

TEST(BlockTracker, AnAddressUsedAgainIsAnotherBlock) {
  Notes notes;
  notes.alloc(10, 100);
  notes.free(20, 100);
  notes.alloc(30, 100);
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "-a freed @20", "+b 100"));
}

TEST(BlockTracker, AnEmptyBlockIsNone) {
  Notes notes;
  notes.alloc(10, 100, 0);
  EXPECT_THAT(notes.told, IsEmpty());
}

TEST(BlockTracker, WhatTheSinkRefusesIsNotKept) {
  Notes notes;
  notes.refused = 100;
  notes.alloc(10, 100);
  EXPECT_TRUE(notes.tracker.live().empty());
  notes.free(20, 100);
  EXPECT_THAT(notes.told, ElementsAre("?100"));
}

// Thread 2's alloc is timed 1 ns before thread 1's free of the old block, which is then swallowed.
TEST(BlockTracker, AFreeWithinTheSkewIsTheReplacedBlocks) {
  Notes notes;
  notes.alloc(10, 100);
  notes.alloc(99, 100, 64, 2);
  notes.free(100, 100, 1);
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "-a replaced @99", "+b 100"));
  EXPECT_EQ(notes.tracker.ambiguous(), 0u);
}

TEST(BlockTracker, AReplacedBlockWhoseFreeNeverComesIsAmbiguous) {
  Notes notes;
  notes.alloc(10, 100);
  notes.alloc(99, 100, 64, 2);
  notes.free(100 + kClockSkewNs, 100, 1);  // too late: the new block's
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "-a replaced @99", "+b 100", "-b freed @3100"));
  EXPECT_EQ(notes.tracker.ambiguous(), 1u);
}

// Thread 1's free comes first and finds nothing; thread 2's alloc of the address follows within the
// skew: it may be the block that was freed.
TEST(BlockTracker, AnAllocJustAfterAnUnknownFreeHasAnUnknownFate) {
  Notes notes;
  notes.free(10, 100, 1);
  notes.alloc(11, 100, 64, 2);
  EXPECT_THAT(notes.told, ElementsAre("?100", "+a 100 fate unknown"));
}

TEST(BlockTracker, AnUndoneFreeBringsTheBlockBack) {
  Notes notes;
  notes.alloc(10, 100);
  notes.free(20, 100);
  notes.undo(21, 100);
  notes.undo(22, 100);  // of nothing
  notes.free(30, 100);
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "-a freed @20", "=a", "-a freed @30"));
}

TEST(BlockTracker, AnUndoneFreeOfAnAddressThatIsTakenIsIgnored) {
  Notes notes;
  notes.alloc(10, 100);
  notes.free(20, 100);
  notes.alloc(21, 100);
  notes.undo(22, 100);
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "-a freed @20", "+b 100"));
}

// a is seeded with its birth and lives on; b is not and was freed in the pause; c was made in it.
TEST(BlockTracker, ASeedSaysWhatLivedThroughAPause) {
  Notes notes;
  notes.window(5, kStart);
  notes.alloc(10, 100);
  notes.alloc(20, 200);
  notes.window(30, kStop);
  EXPECT_EQ(notes.window(50, kStart).paused_at, 30u);
  notes.seed(50, 100, 10);
  notes.seed(50, 300, 40);
  notes.free(60, 100);
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "+b 200", "+c 300 fate unknown", "-b unseeded @50",
                                      "-a freed @60"));
}

// Files whose times are microseconds: the window's first alloc has the window's own time. It takes
// the address of a block that was freed in the pause, and replaces nothing.
TEST(BlockTracker, TheWindowsFirstBlockMayHaveItsTime) {
  Notes notes;
  notes.window(5, kStart);
  notes.alloc(10, 100);
  notes.window(30, kStop);
  notes.window(50, kStart);
  notes.alloc(50, 100);
  EXPECT_THAT(notes.told, ElementsAre("+a 100", "-a unseeded @50", "+b 100"));
  EXPECT_EQ(notes.tracker.ambiguous(), 0u);
}

// Seeds are written while other threads go on.
TEST(BlockTracker, ASeedFreedMeanwhileIsNotAlive) {
  Notes notes;
  notes.window(5, kStart);
  notes.free(6, 100, 2);
  notes.seed(5, 100, 1);
  EXPECT_THAT(notes.told, ElementsAre("?100"));
  EXPECT_TRUE(notes.tracker.live().empty());
}

TEST(BlockTracker, ASeedOfAnotherBlockEndsTheOneThatWasThere) {
  Notes notes;
  notes.window(5, kStart);
  notes.alloc(10, 100);
  notes.window(30, kStop);
  notes.window(10'000, kStart);
  notes.seed(10'000, 100, 9'000);  // not a, whose birth is 10
  notes.alloc(10'001, 200);
  EXPECT_THAT(notes.told,
              ElementsAre("+a 100", "-a reseeded @10000", "+b 100 fate unknown", "+c 200"));
}

TEST(BlockTracker, ASeedOlderThanTheBlockOfThisWindowIsIgnored) {
  Notes notes;
  notes.window(10'000, kStart);
  notes.alloc(10'001, 100);
  notes.seed(10'000, 100, 1'000);
  EXPECT_THAT(notes.told, ElementsAre("+a 100"));
}

}  // namespace
}  // namespace memscope
