#include "analysis/holdings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/operators_fixture.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A program of two lines in a loop, four steps:
//
//   step     1        2        3        4
//   line 5   +100     +100     +100     +100    kept
//   line 9   +10      -10 +10  -10 +10  -10 +10 the last one is kept
//
// at the end of step k: line 5 has k * 100 in k blocks, line 9 has 10 in one.
class TwoLines : public OperatorProgram {
 public:
  explicit TwoLines(const char* file = "/me/train.py") : file_(file) {
    source.add_record(1, SourceRecord{.path = file_, .text = kText});
    for (uint64_t k = 1; k <= 4; ++k) {
      start("aten.randn");
      alloc(0x10000 * k, 100, at(5, "leak"));
      end("aten.randn");
      if (k > 1) free(0x9000);
      alloc(0x9000, 10, at(9, "train"));
      source.add_record(now(), OwnerRecord{.addr = 0x10000 * k, .owner = "PTA@model@weight"}, where,
                        thread);
      step(k);
    }
  }
  StackId at(uint32_t line, const char* function) {
    StringTable& strings = source.strings();
    const FrameId frame = source.stacks().intern_frame(
        {.file = strings.intern(file_), .function = strings.intern(function), .line = line});
    return source.stacks().intern({}, frame);
  }

 private:
  static constexpr const char* kText =
      "import torch\n"             // 1
      "store = []\n"               // 2
      "\n"                         // 3
      "def leak():\n"              // 4
      "    x = torch.randn(25)\n"  // 5
      "    store.append(x)\n"      // 6
      "\n"                         // 7
      "def train():\n"             // 8
      "    y = net(batch)\n";      // 9
  const char* file_;
};

Holdings held(OperatorProgram& program, const HoldingsOptions& options = {}) {
  program.source.rewind();
  auto result = holdings_of(program.source, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(result).value() : Holdings{};
}

// "x = torch.randn(25) 400 in 4".
std::vector<std::string> sites(const Holdings& holdings) {
  std::vector<std::string> list;
  for (const HeldAtSite& row : holdings.sites) {
    list.push_back((row.site ? row.site->text.value_or("?") : "none") + " " +
                   std::to_string(row.held.bytes) + " in " + std::to_string(row.held.blocks));
  }
  return list;
}

std::vector<std::string> names(const std::vector<HeldByName>& rows) {
  std::vector<std::string> list;
  for (const HeldByName& row : rows) {
    list.push_back(row.name.value_or("none") + " " + std::to_string(row.held.bytes) + " in " +
                   std::to_string(row.held.blocks));
  }
  return list;
}

TEST(Holdings, AtTheEndByLineOwnerAndOperator) {
  TwoLines program;
  const Holdings holdings = held(program);
  EXPECT_THAT(sites(holdings),
              UnorderedElementsAre("x = torch.randn(25) 400 in 4", "y = net(batch) 10 in 1"));
  EXPECT_THAT(names(holdings.owners),
              UnorderedElementsAre("PTA@model@weight 400 in 4", "none 10 in 1"));
  EXPECT_THAT(names(holdings.operators),
              UnorderedElementsAre("aten.randn 400 in 4", "none 10 in 1"));
  ASSERT_EQ(holdings.layers.size(), 1u);
  EXPECT_EQ(holdings.layers[0].held, (Held{410, 5}));
  EXPECT_EQ(holdings.layers[0].peak, 410);
  EXPECT_EQ(holdings.steps, 4u);
  EXPECT_EQ(holdings.steps_from, StepsFrom::kApi);
}

TEST(Holdings, AtTheEndOfAStep) {
  TwoLines program;
  EXPECT_THAT(sites(held(program, {.at_step = 2})),
              UnorderedElementsAre("x = torch.randn(25) 200 in 2", "y = net(batch) 10 in 1"));
  // The last step ends before the input does.
  EXPECT_THAT(sites(held(program, {.at_step = 4})),
              UnorderedElementsAre("x = torch.randn(25) 400 in 4", "y = net(batch) 10 in 1"));
}

TEST(Holdings, KnowsASourceThatWasRecordedAfterTheStep) {
  OperatorProgram program;
  const FrameId frame =
      program.source.stacks().intern_frame({.file = program.source.strings().intern("/me/late.py"),
                                            .function = program.source.strings().intern("f"),
                                            .line = 1});
  program.alloc(0x1000, 8, program.source.stacks().intern({}, frame));
  program.step(1);
  program.step(2);
  program.source.add_record(program.now() + 1,
                            SourceRecord{.path = "/me/late.py", .text = "x = f()\n"});
  EXPECT_THAT(sites(held(program, {.at_step = 1})), ElementsAre("x = f() 8 in 1"));
}

TEST(Holdings, OnlyWhatWasBornInSomeSteps) {
  // Born in steps 2 and 3 and held when 3 ends: two of line 5, and line 9's of step 3.
  TwoLines program;
  EXPECT_THAT(sites(held(program, {.first_step = 2, .last_step = 3})),
              UnorderedElementsAre("x = torch.randn(25) 200 in 2", "y = net(batch) 10 in 1"));
}

TEST(Holdings, OnlyOneDevice) {
  TwoLines program;
  program.where = {Layer::kPool, {Device::kNpu, 1}};
  program.alloc(0x1000, 77);
  const Holdings holdings = held(program, {.device = Device{Device::kNpu, 1}});
  EXPECT_THAT(sites(holdings), ElementsAre("none 77 in 1"));
}

TEST(Holdings, AStepThatIsFoldedIsAnError) {
  const StepPlan plan{.from = StepsFrom::kApi, .ends = {10, 20, 30, 40}, .folded = 2};
  const auto folded = HoldingsBuilder::check(plan, {.at_step = 2});
  ASSERT_FALSE(folded);
  EXPECT_EQ(folded.error().message,
            "has its steps 1 to 2 folded (disk budget): what was held when step 2 ended is not "
            "known any more; ask for a step from 3 on");
  EXPECT_TRUE(HoldingsBuilder::check(plan, {.at_step = 3}));
  // Born in a folded step, held when a later one ends: known.
  EXPECT_TRUE(HoldingsBuilder::check(plan, {.first_step = 1, .last_step = 4}));
}

TEST(Holdings, AStepThatIsNotThereIsAnError) {
  TwoLines program;
  const auto late = holdings_of(program.source, {.at_step = 5});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "has steps 1 to 4, no step 5");
  OperatorProgram without;
  without.alloc(0x1000, 8);
  const auto none = holdings_of(without.source, {.at_step = 1});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("has no steps"));
}

TEST(Holdings, TheSegmentAroundABlockIsNotWhatTheBlockIsFor) {
  OperatorProgram program;
  program.where = {Layer::kDriver, {Device::kNpu, 0}};
  program.alloc(0x1000, 1 << 21);
  program.where = OperatorProgram::kNpuPool;
  program.alloc(0x1000, 512);
  program.source.add_record(program.now(), OwnerRecord{.addr = 0x1000, .owner = "PTA@ops"},
                            program.where, program.thread);
  EXPECT_THAT(names(held(program).owners),
              UnorderedElementsAre("none 2097152 in 1", "PTA@ops 512 in 1"));
  // Unless it is said of the segment.
  program.source.add_record(program.now(), OwnerRecord{.addr = 0x1000, .owner = "CANN@RUNTIME"},
                            {Layer::kDriver, {Device::kNpu, 0}}, program.thread);
  EXPECT_THAT(names(held(program).owners),
              UnorderedElementsAre("CANN@RUNTIME 2097152 in 1", "PTA@ops 512 in 1"));
}

TEST(Holdings, ANewBlockAtAnOldAddressHasNoneOfTheOldOnesNames) {
  OperatorProgram program;
  program.start("mm");
  program.alloc(0x1000, 512);
  program.end("mm");
  program.source.add_record(program.now(), OwnerRecord{.addr = 0x1000, .owner = "PTA@ops"},
                            program.where, program.thread);
  program.free(0x1000);
  program.alloc(0x1000, 64);
  const Holdings holdings = held(program);
  EXPECT_THAT(names(holdings.owners), ElementsAre("none 64 in 1"));
  EXPECT_THAT(names(holdings.operators), ElementsAre("none 64 in 1"));
}

TEST(Holdings, ProcessesAddUp) {
  TwoLines one, other;
  Holdings sum = held(one);
  sum.add(held(other, {.at_step = 1}));
  EXPECT_EQ(sum.processes, 2u);
  EXPECT_THAT(sites(sum),
              UnorderedElementsAre("x = torch.randn(25) 400 in 4", "y = net(batch) 10 in 1",
                                   "x = torch.randn(25) 100 in 1", "y = net(batch) 10 in 1"));
}

}  // namespace
}  // namespace memscope
