#include "replay/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::ElementsAre;

struct Steps {
  VectorSource source;
  StepFinder finder;

  void step(uint64_t time, StepSource from, uint64_t optimizer = 0) {
    source.add_record(time,
                      StepRecord{.source = static_cast<uint64_t>(from), .optimizer = optimizer});
  }
  StepPlan plan(TimeRange range) {
    source.scan(StepFinder::kKinds, [&](const Event& event) { finder.add(event); });
    return finder.plan(range);
  }
};

TEST(StepFinder, ApiBoundariesEndTheSteps) {
  Steps steps;
  steps.step(100, StepSource::kApi);
  steps.step(150, StepSource::kOptimizer, 1);
  steps.step(200, StepSource::kApi);
  const StepPlan plan = steps.plan({0, 300});
  EXPECT_EQ(plan.from, StepsFrom::kApi);
  EXPECT_THAT(plan.ends, ElementsAre(100, 200));
}

TEST(StepFinder, AnMstxRangeIsAStepWithTheGapAfterIt) {
  Steps steps;
  // ranges [100, 140] and [200, 250]; step 1 = 100..199, step 2 = 200..250
  steps.step(100, StepSource::kMstxStart);
  steps.step(140, StepSource::kMstxEnd);
  steps.step(200, StepSource::kMstxStart);
  steps.step(250, StepSource::kMstxEnd);
  const StepPlan plan = steps.plan({0, 300});
  EXPECT_EQ(plan.from, StepsFrom::kMstx);
  EXPECT_EQ(plan.begin, 100u);
  EXPECT_THAT(plan.ends, ElementsAre(199, 250));
}

TEST(StepFinder, AnotherRangesEndDoesNotEndTheStep) {
  Steps steps;
  steps.source.add_record(100, MarkRecord{.action = 1, .range = 1, .text = "step start"});
  steps.source.add_record(110, MarkRecord{.action = 1, .range = 2, .text = "forward"});
  steps.source.add_record(120, MarkRecord{.action = 2, .range = 2});
  steps.source.add_record(200, MarkRecord{.action = 1, .range = 3, .text = "step start"});
  const StepPlan plan = steps.plan({0, 300});
  EXPECT_THAT(plan.ends, ElementsAre(199)) << "the last range is still open";
}

TEST(StepFinder, OfTheOptimizersTheRarestThatStillSteps) {
  Steps steps;
  for (uint64_t t = 10; t <= 1000; t += 10) steps.step(t, StepSource::kOptimizer, 1);  // 100 steps
  for (uint64_t t = 50; t <= 1000; t += 50) steps.step(t, StepSource::kOptimizer, 2);  // 20 steps
  for (uint64_t t = 10; t <= 90; t += 10)
    steps.step(t, StepSource::kOptimizer, 3);  // stopped early
  for (uint64_t t = 300; t <= 900; t += 300) steps.step(t, StepSource::kOptimizer, 4);  // 3 steps
  const StepPlan plan = steps.plan({0, 1000});
  EXPECT_EQ(plan.from, StepsFrom::kOptimizer);
  EXPECT_EQ(plan.count(), 20u);
}

TEST(StepFinder, WithoutASourceThirtyTwoWindows) {
  const StepPlan plan = Steps().plan({1'000'000'000, 65'000'000'000});  // 64 s
  EXPECT_EQ(plan.from, StepsFrom::kTime);
  ASSERT_EQ(plan.count(), 32u);
  EXPECT_EQ(plan.ends[0], 3'000'000'000u);
  EXPECT_EQ(plan.ends[31], 65'000'000'000u);
}

TEST(StepFinder, ShorterThanThirtySecondsHasNone) {
  const StepPlan plan = Steps().plan({0, 29'000'000'000});
  EXPECT_EQ(plan.from, StepsFrom::kNone);
  EXPECT_EQ(plan.count(), 0u);
}

}  // namespace
}  // namespace memscope
