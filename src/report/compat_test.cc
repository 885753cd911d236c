#include "report/compat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

PoolReport npu_pool() {
  PoolReport pool;
  pool.where = {Layer::kPool, {Device::kNpu, 3}};
  // Step 2: least 16,384 B, most 36,864 B; step 4: least 40,960 B, most 61,440 B.
  pool.min_gap = {.step = 2, .ratio = 16384.0 / 36864, .min_allocated = 16384};
  pool.max_gap = {.step = 4, .ratio = 40960.0 / 61440, .min_allocated = 40960};
  return pool;
}

TEST(CompatReport, GapAnalysisIsTheOriginalsLetterForLetter) {
  const std::vector<PoolReport> pools = {npu_pool()};
  EXPECT_EQ(compat_report(pools),
            "======= Pytorch Caching memory pool Gap Analysis of Device 3 =======\n"
            "\tMinAlloc/MaxAlloc(%)     MinAllocMem(MB)          StepId\n"
            "MinGap\t44.4444                  0.0156                   2\n"
            "MaxGap\t66.6667                  0.0391                   4\n");
}

TEST(CompatReport, LeaksComeByStepBeforeTheGaps) {
  PoolReport pool = npu_pool();
  pool.leaked = {{.where = pool.where, .addr = 0x12c0, .size = 1 << 20, .step = 3},
                 {.where = pool.where, .addr = 0x12c1, .size = 1 << 19, .step = 2}};
  pool.leaked_bytes = (1 << 20) + (1 << 19);
  pool.leaked_blocks = 2;
  const std::vector<PoolReport> pools = {pool};
  EXPECT_THAT(
      compat_report(pools),
      testing::StartsWith(
          "====== ERROR: Detected memory leaks on device 3 ======\n"
          "Direct Pytorch Caching memory pool leak of 0.500000 Mb(s) at 0x12c1 in kernel_0 at "
          "step 2.\n"
          "Direct Pytorch Caching memory pool leak of 1.000000 Mb(s) at 0x12c0 in kernel_0 at "
          "step 3.\n"
          "====== SUMMARY: 1.500000 Mb(s) leaked in 2 allocation(s) ======\n"
          "======= Pytorch Caching memory pool Gap"));
}

TEST(CompatReport, TheSummaryCountsBlocksThatHaveNoLine) {
  PoolReport pool = npu_pool();
  pool.leaked_bytes = 5 << 20;
  pool.leaked_blocks = 5;
  const std::vector<PoolReport> pools = {pool};
  EXPECT_THAT(compat_report(pools), testing::HasSubstr("(5 more allocation(s)"));
  EXPECT_THAT(compat_report(pools),
              testing::HasSubstr("SUMMARY: 5.000000 Mb(s) leaked in 5 allocation(s)"));
}

TEST(CompatReport, AScreenGetsTheOldestBlocksAndTheNumberOfTheOthers) {
  PoolReport pool = npu_pool();
  for (uint32_t step = 1; step <= 9; ++step) {
    pool.leaked.push_back({.where = pool.where, .addr = step, .size = 1 << 20, .step = step});
  }
  pool.leaked_bytes = 9 << 20;
  pool.leaked_blocks = 9;
  const std::string text = compat_report(std::vector{pool}, 2);
  EXPECT_THAT(text, testing::HasSubstr("at step 2.\n(7 more allocation(s)"));
  EXPECT_THAT(text, testing::HasSubstr("SUMMARY: 9.000000 Mb(s) leaked in 9 allocation(s)"));
}

TEST(CompatReport, WithoutStepsTheGapsAreZero) {
  PoolReport pool;
  pool.where = {Layer::kTensor, {}};
  const std::vector<PoolReport> pools = {pool};
  EXPECT_EQ(compat_report(pools),
            "======= Pytorch CPU memory Gap Analysis of Device cpu =======\n"
            "\tMinAlloc/MaxAlloc(%)     MinAllocMem(MB)          StepId\n"
            "MinGap\t0.0000                   0.0000                   0\n"
            "MaxGap\t0.0000                   0.0000                   0\n");
  EXPECT_EQ(compat_report({}), "");
}

}  // namespace
}  // namespace memscope
