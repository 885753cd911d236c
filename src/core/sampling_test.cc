#include "core/sampling.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

TEST(ByteSampling, ABlockStandsForItsSizeOverTheProbabilityToBeTaken) {
  const ByteSampling sampling{.rate = 65536};
  // p = 1 - e^-1 = 0.632121; 65536 / p = 103676.3
  EXPECT_EQ(sampling.stands_for(65536), 103676u);
  // A small one stands for R + s / 2, next to nothing off: 65536 + 8.
  EXPECT_EQ(sampling.stands_for(16), 65544u);
  EXPECT_NEAR(sampled_count(65544, 16), 4096.5, 1e-9);
  // 4 R: p = 0.981684; a hundredth is missed. 262144 / p = 267035.0
  EXPECT_EQ(sampling.stands_for(262144), 267035u);
}

// None of 64 R is ever missed, of more a double could not even hold the size.
TEST(ByteSampling, ALargeBlockStandsForItselfToTheByte) {
  const ByteSampling sampling{.rate = 65536};
  EXPECT_EQ(sampling.stands_for((uint64_t{1} << 22) + 1), (uint64_t{1} << 22) + 1);
  EXPECT_EQ(sampling.stands_for((uint64_t{1} << 48) - 1), (uint64_t{1} << 48) - 1);
  EXPECT_EQ(sampling_noise(1 << 22, 1 << 22), 0u);
}

TEST(ByteSampling, WithoutARateEveryBlockStandsForItself) {
  EXPECT_EQ(ByteSampling{}.stands_for(12345), 12345u);
  EXPECT_EQ(sampled_count(12345, 0), 1);
  EXPECT_EQ(sampling_noise(12345, 0), 0u);
  EXPECT_EQ(sampling_rate(12345, 0), 0u);
}

// n small blocks are known to 1 / sqrt(n): each has R^2, in KiB^2.
TEST(SamplingNoise, OfASmallBlockIsTheDistanceOfTheSamples) {
  const ByteSampling sampling{.rate = 524288};
  EXPECT_NEAR(static_cast<double>(sampling_noise(sampling.stands_for(100), 100)), 512 * 512, 1);
  EXPECT_NEAR(standard_error(100 * uint64_t{512} * 512), 10 * 524288.0, 1e-6);
  // s = R: w (w - s) = 1.5820 * 0.5820 R^2 = 0.92067 R^2
  EXPECT_NEAR(static_cast<double>(sampling_noise(sampling.stands_for(524288), 524288)),
              0.92067 * 512 * 512, 5);
}

TEST(SamplingRate, IsToldByAnyBlockThatIsNotLarge) {
  for (const uint64_t rate : {4096u, 524288u, 1u << 30}) {
    const ByteSampling sampling{.rate = rate};
    for (const uint64_t size : {1u, 16u, 1000u, 4096u}) {
      EXPECT_NEAR(static_cast<double>(sampling_rate(sampling.stands_for(size), size)),
                  static_cast<double>(rate), static_cast<double>(rate) / 1000)
          << rate << " " << size;
    }
  }
}

}  // namespace
}  // namespace memscope
