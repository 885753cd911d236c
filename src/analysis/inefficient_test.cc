#include "analysis/inefficient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/operators_fixture.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "1000 early_allocation", by time of the allocation.
std::vector<std::string> found(OperatorProgram& program, const InefficientOptions& options = {}) {
  program.source.rewind();
  std::vector<std::string> list;
  for (const InefficientBlock& block : find_inefficient(program.source, options)) {
    list.push_back(std::to_string(block.addr) + " " + inefficiency_text(block.types));
  }
  return list;
}

TEST(Inefficient, EarlyIsAllocatedBeforeAFreeAndFirstUsedAfterIt) {
  OperatorProgram p;
  p.alloc(2000, 8);  // call 1
  p.alloc(1000, 8);  // call 2: M
  p.free(2000);      // call 3: L
  p.access(1000);    // call 4: F. 2 < 3 < 4
  EXPECT_THAT(found(p), ElementsAre("1000 early_allocation"));
}

TEST(Inefficient, NotEarlyWhereNothingWasFreedInBetween) {
  OperatorProgram p;
  p.alloc(2000, 8);  // 1
  p.free(2000);      // 2
  p.alloc(1000, 8);  // 3: M, after the free
  p.access(1000);    // 4
  p.alloc(3000, 8);  // 5
  p.free(3000);      // 6: after the first use
  p.access(1000);    // 7
  EXPECT_THAT(found(p), IsEmpty());
}

TEST(Inefficient, AUseInTheAllocatingOperatorIsNotTheFirst) {
  // The operator allocates its output and writes it in the same call; the first use by another
  // call comes after a free.
  OperatorProgram p;
  p.alloc(2000, 8);  // 1
  p.start("mm");     // 2
  p.alloc(1000, 8);  //   M = 2
  p.access(1000);
  p.end("mm");
  p.free(2000);    // 3: L
  p.start("add");  // 4
  p.access(1000);  //   F = 4
  p.end("add");
  EXPECT_THAT(found(p), ElementsAre("1000 early_allocation"));
}

TEST(Inefficient, AFreeInsideAnOperatorCountsWhenTheOperatorIsOver) {
  OperatorProgram p;
  p.alloc(2000, 8);  // 1
  p.alloc(1000, 8);  // 2
  p.start("mm");     // 3
  p.free(2000);
  p.access(1000);  // F = 3, the operator is not over: latest free is none
  p.end("mm");
  EXPECT_THAT(found(p), IsEmpty());
}

TEST(Inefficient, LateIsFreedAfterAnAllocationThatFollowedTheLastUse) {
  OperatorProgram p;
  p.alloc(1000, 8);  // 1
  p.access(1000);    // 2: A
  p.alloc(2000, 8);  // 3: latest allocation
  p.free(1000);      // 4: N. 2 < 3 < 4
  EXPECT_THAT(found(p), ElementsAre("1000 late_deallocation"));
}

TEST(Inefficient, NotLateWhereNothingWasAllocatedSinceOrItWasNeverUsed) {
  OperatorProgram p;
  p.alloc(1000, 8);  // 1
  p.alloc(2000, 8);  // 2
  p.access(1000);    // 3
  p.free(1000);      // 4: the latest allocation, 2, is before the use
  p.alloc(3000, 8);  // 5
  p.free(2000);      // 6: never used
  EXPECT_THAT(found(p), IsEmpty());
}

TEST(Inefficient, IdleIsAPauseOfMoreCallsThanTheThreshold) {
  const auto program = [](int calls) {
    OperatorProgram p;
    p.alloc(1000, 8);
    p.access(1000);
    for (int i = 0; i < calls; ++i) {
      p.start("other");
      p.end("other");
    }
    p.access(1000);
    return p;
  };
  // Nine calls between two uses are a distance of ten.
  OperatorProgram ten = program(9), eleven = program(10);
  EXPECT_THAT(found(ten, {.idle_threshold = 10}), IsEmpty());
  EXPECT_THAT(found(eleven, {.idle_threshold = 10}), ElementsAre("1000 temporary_idleness"));
}

TEST(Inefficient, OneBlockMayBeAllThree) {
  OperatorProgram p;
  p.alloc(2000, 8);                            // 1
  p.alloc(1000, 8);                            // 2
  p.free(2000);                                // 3
  p.access(1000);                              // 4: early
  for (int i = 0; i < 5; ++i) p.access(9000);  // 5 to 9: of a block that was there before
  p.access(1000);                              // 10: idle, 6 calls
  p.alloc(3000, 8);                            // 11
  p.free(1000);                                // 12: late
  EXPECT_THAT(found(p, {.idle_threshold = 5}),
              ElementsAre("1000 early_allocation,late_deallocation,temporary_idleness"));
  EXPECT_THAT(found(p, {.types = Inefficiency::kLateDeallocation, .idle_threshold = 5}),
              ElementsAre("1000 late_deallocation"));
}

TEST(Inefficient, SmallBlocksAreLeftOut) {
  OperatorProgram p;
  p.alloc(1000, 8);
  p.alloc(5000, 4096);
  p.access(1000);
  p.access(5000);
  p.alloc(2000, 8);
  p.free(1000);
  p.free(5000);
  EXPECT_THAT(found(p), ElementsAre("1000 late_deallocation", "5000 late_deallocation"));
  EXPECT_THAT(found(p, {.least_size = 4096}), ElementsAre("5000 late_deallocation"));
  EXPECT_THAT(found(p, {.least_size = 4097}), IsEmpty());
}

TEST(Inefficient, AViewIsAUseOfItsBlock) {
  OperatorProgram p;
  p.alloc(1000, 512);  // 1
  p.access(1000);      // 2
  p.alloc(2000, 8);    // 3
  p.access(1256);      // 4: in the middle of it
  p.free(1000);        // 5: the latest allocation, 3, is before that use
  EXPECT_THAT(found(p), IsEmpty());
  OperatorProgram q;
  q.alloc(1000, 512);
  q.access(1000);
  q.alloc(2000, 8);
  q.access(1512);  // the first byte after it
  q.free(1000);
  EXPECT_THAT(found(q), ElementsAre("1000 late_deallocation"));
}

TEST(Inefficient, AtbAndAtenCountTheirOwnCalls) {
  // ATB's operators are no calls of ATen: the pause of the ATen block is one call long.
  OperatorProgram p;
  p.alloc(1000, 8);
  p.access(1000);
  for (int i = 0; i < 100; ++i) {
    p.start("atb", 2);
    p.end("atb", 2);
  }
  p.access(1000);
  EXPECT_THAT(found(p, {.idle_threshold = 5}), IsEmpty());
  OperatorProgram q;
  q.where.layer = Layer::kPoolAtb;
  q.alloc(1000, 8);
  q.access(1000);
  for (int i = 0; i < 100; ++i) {
    q.start("atb", 2);
    q.end("atb", 2);
  }
  q.access(1000);
  EXPECT_THAT(found(q, {.idle_threshold = 5}), ElementsAre("1000 temporary_idleness"));
}

TEST(Inefficient, BlocksThatWereThereBeforeAreNotLookedAt) {
  OperatorProgram p;
  p.access(1000);
  p.alloc(2000, 8);
  p.free(1000);
  EXPECT_THAT(found(p), IsEmpty());
}

TEST(Inefficient, BlocksThatAreNeverFreedAreLookedAtToo) {
  OperatorProgram p;
  p.alloc(2000, 8);
  p.alloc(1000, 8);
  p.free(2000);
  p.access(1000);
  p.alloc(2000, 8);
  EXPECT_THAT(found(p), ElementsAre("1000 early_allocation"));
}

}  // namespace
}  // namespace memscope
