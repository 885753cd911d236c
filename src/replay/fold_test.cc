#include "replay/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>

#include "replay/fold_fixture.h"
#include "trace/dead_slabs.h"
#include "trace/fold_log.h"
#include "trace/process_identity.h"

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

// What sampled blocks stand for is not scaled a second time, and how sure the sums are is kept.
TEST(Fold, SampledBlocksStandForWhatTheyDid) {
  for (const uint64_t rate : {2'000, 500'000}) {
    EXPECT_GE(expect_folded_is_whole(
                  {.steps = 300, .segments = 6, .pause = true, .host_sample = rate}, 2, 0),
              2)
        << rate;
  }
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

// A folded trace of `job` in `parts`, and what the whole one says.
Seen fold_most_of(const FoldJob& job, const std::filesystem::path& directory,
                  const std::filesystem::path& parts) {
  const auto whole = directory / "whole";
  const auto cuts = write_job(whole, job);
  std::filesystem::create_directory(parts);
  put_segments(read_bytes(whole / kLogName), cuts, 1, job.segments, parts);
  if (job.killed) std::filesystem::copy_file(whole / kSlabName, parts / kSlabName);
  const auto report = fold_trace(parts, 0);
  EXPECT_TRUE(report && report.value().folded);
  return see(whole);
}

// As after a kill between the rename and the end: the segments that were folded are still there.
TEST(Fold, LeftoversAreNotReadTwice) {
  TestDirectory test;
  const FoldJob job{.steps = 200, .segments = 5};
  const auto parts = test / "parts";
  const Seen whole = fold_most_of(job, test.path(), parts);
  const auto cuts = write_job(test / "again", job);
  TestDirectory segments;
  put_segments(read_bytes(test / "again" / kLogName), cuts, 2, 4, segments.path());
  for (const auto& file : std::filesystem::directory_iterator(segments.path())) {
    std::filesystem::copy_file(file.path(), parts / file.path().filename());
  }
  write_bytes(parts / kFoldDraftName, "a draft that nobody finished");
  expect_same(see(parts), whole);
}

TEST(Fold, AFullDiskLeavesTheTraceAsItIs) {
  TestDirectory test;
  const FoldJob job{.steps = 300, .segments = 6};
  const auto whole = test / "whole", parts = test / "parts";
  const auto cuts = write_job(whole, job);
  std::filesystem::create_directory(parts);
  put_segments(read_bytes(whole / kLogName), cuts, 1, job.segments, parts);
  // A file that may not grow fails as a disk that is full (EFBIG instead of ENOSPC).
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto theirs = signal(SIGXFSZ, SIG_IGN);
  const rlimit little{2000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  const auto report = fold_trace(parts, 0);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, theirs);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, testing::HasSubstr("cannot write"));
  EXPECT_FALSE(std::filesystem::exists(parts / kFoldDraftName));
  const Seen seen = see(parts);
  EXPECT_EQ(seen.folded.folds, 0u);
  expect_same(seen, see(whole));
}

// A process that is gone, as the headers name it.
ProcessIdentity a_dead_process() {
  int tell[2];
  EXPECT_EQ(pipe(tell), 0);
  const pid_t child = fork();
  if (child == 0) {
    const ProcessIdentity own = own_identity();
    _exit(write(tell[1], &own, sizeof(own)) == ssize_t{sizeof(own)} ? 0 : 1);
  }
  ProcessIdentity identity;
  EXPECT_EQ(read(tell[0], &identity, sizeof(identity)), ssize_t{sizeof(identity)});
  close(tell[0]);
  close(tell[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return identity;
}

void patch(const std::filesystem::path& file, size_t offset, uint64_t value) {
  std::string bytes = read_bytes(file);
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  write_bytes(file, bytes);
}

TEST(Fold, TheSlabOfAKilledProcessGoesIntoTheLastSegment) {
  TestDirectory test;
  const auto parts = test / "parts";
  const Seen whole =
      fold_most_of({.steps = 330, .segments = 6, .killed = true}, test.path(), parts);
  expect_same(see(parts), whole);
  const ProcessIdentity owner = a_dead_process();
  patch(parts / kSlabName, offsetof(SlabHeader, pid), owner.pid);
  patch(parts / kSlabName, offsetof(SlabHeader, start_ticks), owner.start_ticks);
  patch(parts / kSlabName, offsetof(SlabHeader, place), owner.place);
  for (const char* log : {"trace.msm", "trace.6.msm"}) {
    patch(parts / log, offsetof(LogHeader, pid), owner.pid);
  }
  EXPECT_EQ(seal_dead_slab(parts.c_str(), false), SealResult::kSealed);
  EXPECT_FALSE(std::filesystem::exists(parts / kSlabName));
  expect_same(see(parts), whole);
}

}  // namespace
}  // namespace memscope
