#include "analysis/mark_leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/operators_fixture.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<MarkedDevice> found(OperatorProgram& program, MarkLeaksOptions options) {
  program.source.rewind();
  return find_mark_leaks(program.source, std::move(options));
}

std::vector<uint64_t> addresses(const MarkWindow& window) {
  std::vector<uint64_t> list;
  for (const MarkLeak& leak : window.leaks) list.push_back(leak.addr);
  return list;
}

// Rounds between marks; the letter is the address.
//
//   before   A             B             C             D            E
//   alloc 1  alloc 2,3,4   free 2        free 3        free 4,5     alloc 7
//                          alloc 5       alloc 6
//
//   A B C    2 is freed before C; 3 and 4 leak (3 is freed after C)
//   B C D    5 leaks
//   C D E    6 leaks
OperatorProgram rounds() {
  OperatorProgram p;
  p.alloc(1, 100);
  p.mark("round");
  for (uint64_t address : {2, 3, 4}) p.alloc(address, 100 + address);
  p.mark("round");
  p.free(2);
  p.alloc(5, 105);
  p.mark("round");
  p.free(3);
  p.alloc(6, 106);
  p.mark("round");
  p.free(4);
  p.free(5);
  p.mark("round");
  p.alloc(7, 107);
  return p;
}

TEST(MarkLeaks, WhatIsAllocatedFromAToBAndAliveAtC) {
  OperatorProgram p = rounds();
  const auto devices = found(p, {.mark = "round"});
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(device_name(devices[0].device), "npu:0");
  EXPECT_EQ(devices[0].marks, 5u);
  ASSERT_THAT(devices[0].windows, SizeIs(1));
  const MarkWindow& window = devices[0].windows[0];
  EXPECT_THAT(addresses(window), ElementsAre(3, 4));
  EXPECT_EQ(window.bytes, 103u + 104u);
  EXPECT_EQ(window.blocks, 2u);
  EXPECT_FALSE(window.at_end);
}

TEST(MarkLeaks, TheIndexSaysWhichMarkIsA) {
  OperatorProgram p = rounds();
  EXPECT_THAT(addresses(found(p, {.mark = "round", .start_index = 1})[0].windows[0]),
              ElementsAre(5));
  EXPECT_THAT(addresses(found(p, {.mark = "round", .start_index = 2})[0].windows[0]),
              ElementsAre(6));
  // Marks 3, 4 and none: no third one.
  EXPECT_THAT(found(p, {.mark = "round", .start_index = 3})[0].windows, IsEmpty());
  EXPECT_THAT(found(p, {.mark = "round", .start_index = 99})[0].windows, IsEmpty());
}

TEST(MarkLeaks, WithAllEveryMarkIsAnAAndTheEndStandsForMissingOnes) {
  // From D: nothing was allocated between D and E. From E: 7, alive at the end.
  OperatorProgram p = rounds();
  const auto devices = found(p, {.mark = "round", .all = true});
  ASSERT_THAT(devices[0].windows, SizeIs(5));
  EXPECT_THAT(addresses(devices[0].windows[0]), ElementsAre(3, 4));
  EXPECT_THAT(addresses(devices[0].windows[1]), ElementsAre(5));
  EXPECT_THAT(addresses(devices[0].windows[2]), ElementsAre(6));
  EXPECT_FALSE(devices[0].windows[2].at_end);
  EXPECT_THAT(addresses(devices[0].windows[3]), IsEmpty());
  EXPECT_TRUE(devices[0].windows[3].at_end);
  EXPECT_THAT(addresses(devices[0].windows[4]), ElementsAre(7));
  EXPECT_TRUE(devices[0].windows[4].at_end);
  EXPECT_EQ(devices[0].windows[4].index, 4u);
}

TEST(MarkLeaks, TooFewMarksAreNoWindow) {
  OperatorProgram p;
  p.mark("round");
  p.alloc(1, 100);
  p.mark("round");
  const auto devices = found(p, {.mark = "round"});
  EXPECT_EQ(devices[0].marks, 2u);
  EXPECT_THAT(devices[0].windows, IsEmpty());
  // Unless the end may stand for the third.
  EXPECT_THAT(addresses(found(p, {.mark = "round", .all = true})[0].windows[0]), ElementsAre(1));
}

TEST(MarkLeaks, OnlyMarksOfThatTextCount) {
  OperatorProgram p;
  p.mark("round");
  p.alloc(1, 100);
  p.mark("other");
  p.mark("round 2");
  p.mark("round");
  p.mark("round");
  EXPECT_THAT(addresses(found(p, {.mark = "round"})[0].windows[0]), ElementsAre(1));
}

TEST(MarkLeaks, EachDeviceHasItsOwnMarks) {
  OperatorProgram p;
  const Where other{Layer::kDriver, {Device::kNpu, 1}};
  for (int i = 0; i < 3; ++i) {
    p.mark("round");  // npu:0
    p.alloc(0x100 + static_cast<uint64_t>(i), 8);
    if (i != 0) continue;
    p.where = other;
    p.mark("round");
    p.alloc(0x900, 16);
    p.where = OperatorProgram::kNpuPool;
  }
  const auto devices = found(p, {.mark = "round"});
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_THAT(addresses(devices[0].windows[0]), ElementsAre(0x100));
  EXPECT_EQ(devices[1].marks, 1u);
  EXPECT_THAT(devices[1].windows, IsEmpty());
}

TEST(MarkLeaks, AMarkWithoutADeviceCountsForAll) {
  // As a trace has them: also for a device that is seen only later.
  OperatorProgram p;
  for (int i = 0; i < 3; ++i) {
    p.source.add_record(p.now(), MarkRecord{.text = "round"});
    p.alloc(0x100 + static_cast<uint64_t>(i), 8);
  }
  const auto devices = found(p, {.mark = "round"});
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_THAT(addresses(devices[0].windows[0]), ElementsAre(0x100));
}

TEST(MarkLeaks, AnAddressUsedAgainIsAnotherBlock) {
  OperatorProgram p;
  p.mark("round");
  p.alloc(1, 100);
  p.free(1);
  p.alloc(1, 200);  // leaks
  p.alloc(2, 300);
  p.mark("round");
  p.free(2);
  p.alloc(2, 400);  // born after B
  p.mark("round");
  const MarkWindow window = found(p, {.mark = "round"})[0].windows[0];
  EXPECT_THAT(addresses(window), ElementsAre(1));
  EXPECT_EQ(window.bytes, 200u);
}

TEST(MarkLeaks, BlocksThatDiedOnTheWayAreForgotten) {
  // 100,000 blocks that live for a moment, one that stays.
  OperatorProgram p;
  p.mark("round");
  p.alloc(1, 8);
  for (uint64_t i = 0; i < 100'000; ++i) {
    p.alloc(0x1000, 64);
    p.free(0x1000);
  }
  p.mark("round");
  p.mark("round");
  const MarkWindow window = found(p, {.mark = "round"})[0].windows[0];
  EXPECT_THAT(addresses(window), ElementsAre(1));
}

}  // namespace
}  // namespace memscope
