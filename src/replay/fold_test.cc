#include "replay/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/fold_fixture.h"
#include "trace/fold_log.h"

namespace memscope {
namespace {

// The job twice: whole, and as the agent would have it, folded whenever `every` segments more are
// there. Returns how often it was folded.
int expect_folded_is_whole(const FoldJob& job, size_t every, uint64_t keep) {
  TestDirectory test;
  const auto whole = test / "whole", parts = test / "parts";
  const auto cuts = write_job(whole, job);
  const std::string log = read_bytes(whole / kLogName);
  std::filesystem::create_directory(parts);
  int folds = 0;
  size_t there = 0;
  while (there < job.segments) {
    const size_t more = std::min<size_t>(there + every, job.segments);
    put_segments(log, cuts, there + 1, more, parts);
    there = more;
    const auto report = fold_trace(parts, keep);
    EXPECT_TRUE(report.ok()) << (report ? "" : report.error().message);
    folds += report && report.value().folded ? 1 : 0;
  }
  EXPECT_FALSE(std::filesystem::exists(parts / kFoldDraftName));
  const Seen folded = see(parts);
  expect_same(folded, see(whole));
  EXPECT_EQ(folded.folded.folds, static_cast<uint64_t>(folds));
  return folds;
}

// 100 steps are 100 buckets; what is folded is exactly what replay would have known.
TEST(Fold, OnceIsAsIfItHadNotBeen) {
  EXPECT_EQ(expect_folded_is_whole({.steps = 100, .segments = 4}, 4, 0), 1);
}

// 1,000 steps: buckets of 1, 2, then 4 steps, each fold on top of the one before.
TEST(Fold, AgainAndAgainWhileBucketsBecomeWider) {
  EXPECT_GE(expect_folded_is_whole({.steps = 1000, .segments = 20}, 2, 0), 9);
}

TEST(Fold, WhatIsToBeKeptStaysAsItIs) {
  for (const uint64_t keep : {500, 4'000, 16'000}) {
    EXPECT_GT(expect_folded_is_whole({.steps = 600, .segments = 12, .seed = 7}, 3, keep), 0)
        << keep;
  }
}

TEST(Fold, StepsOfRanges) {
  EXPECT_EQ(expect_folded_is_whole({.steps = 700, .segments = 14, .source = StepSource::kMstxStart},
                                   2, 0),
            6);
}

// The one that steps least often is judged; the other's steps are counted, so that it stays so.
TEST(Fold, StepsOfTheRarerOfTwoOptimizers) {
  EXPECT_EQ(expect_folded_is_whole({.steps = 700, .segments = 14, .source = StepSource::kOptimizer},
                                   2, 0),
            6);
}

// Blocks that are not seeded again when recording goes on were freed in between.
TEST(Fold, APauseInTheMiddle) {
  EXPECT_GT(expect_folded_is_whole({.steps = 300, .segments = 9, .pause = true}, 2, 0), 0);
  EXPECT_GT(expect_folded_is_whole({.steps = 300, .segments = 6, .pause = true}, 1, 4'000), 0);
}

}  // namespace
}  // namespace memscope
