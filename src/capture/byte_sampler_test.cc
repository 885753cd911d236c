#include "capture/byte_sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/sampling.h"

namespace memscope::capture {
namespace {

// What p(size) says of `count` blocks of `size` bytes, within five standard errors: five in two
// million tests fall outside. The sampler's seed is the time and its address.
void expect_share(uint64_t size, uint64_t rate, size_t count) {
  ByteSampler sampler;
  size_t taken = 0;
  for (size_t i = 0; i < count; ++i) taken += sampler.take(size, rate) ? 1 : 0;
  const double p = 1 - std::exp(-static_cast<double>(size) / static_cast<double>(rate));
  const double n = static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(taken) / n, p, 5 * std::sqrt(p * (1 - p) / n) + 1 / n)
      << size << " of " << rate;
}

TEST(ByteSampler, TakesABlockWithTheProbabilityThatItsBytesGiveIt) {
  expect_share(16, 1 << 16, 4'000'000);     // p = 0.000244
  expect_share(4096, 1 << 16, 400'000);     // p = 0.0606
  expect_share(1 << 16, 1 << 16, 100'000);  // p = 0.632
  expect_share(1 << 20, 1 << 16, 10'000);   // p = 0.99999989
}

// Sums of size / p over the taken ones are unbiased whatever the mix: a thousand small ones to a
// large one, and the small ones' share is not the large one's doing.
TEST(ByteSampler, SumsAreRightWhateverIsMixed) {
  constexpr uint64_t kRate = 8192;
  constexpr size_t kRounds = 2000, kSmall = 1000, kSmallBytes = 32, kLargeBytes = 20000;
  ByteSampler sampler;
  const auto weight = [](double size) { return 1 / (1 - std::exp(-size / kRate)); };
  double small = 0, large = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kSmall; ++i) {
      if (sampler.take(kSmallBytes, kRate)) small += weight(kSmallBytes);
    }
    if (sampler.take(kLargeBytes, kRate)) large += weight(kLargeBytes);
  }
  // 2,000,000 with a standard error of sqrt(2e6 * (1 - p) / p) = 22,583; 2,000 with one of 13.
  EXPECT_NEAR(small, 2e6, 5 * 22'583);
  EXPECT_NEAR(large, 2e3, 5 * 13.7);
}

// A thousand programs, each with a seed of its own: 4,000 blocks of 24 B to 1 MiB, mixed.
//
// Unbiased: the mean of the estimates is the truth, within five of its standard errors, in bytes
// and in blocks. What a sum says of its own error is right, too: the truth lies within 1.96 of it
// in 95 % of the programs.
TEST(ByteSampler, WhatIsTakenIsUnbiasedOverManySeeds) {
  constexpr uint64_t kRate = 1 << 18;
  constexpr size_t kSeeds = 1000, kBlocks = 4000;
  constexpr std::array<uint64_t, 5> kSizes = {24, 200, 1500, 10'000, 1 << 20};
  const auto size_of = [&](size_t i) {
    return i % 400 == 0 ? kSizes[4] : kSizes[i % 4];  // ten large ones
  };
  double truth = 0;
  for (size_t i = 0; i < kBlocks; ++i) truth += static_cast<double>(size_of(i));
  const ByteSampling sampling{.rate = kRate};
  double sum = 0, squares = 0, counts = 0, count_squares = 0, stated = 0;
  size_t within = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ByteSampler sampler;
    sampler.seed(seed, kRate);
    double bytes = 0, blocks = 0;
    uint64_t noise = 0;
    for (size_t i = 0; i < kBlocks; ++i) {
      const uint64_t size = size_of(i);
      if (!sampler.take(size, kRate)) continue;
      const uint64_t scaled = sampling.stands_for(size);
      bytes += static_cast<double>(scaled);
      blocks += sampled_count(scaled, size);
      noise += sampling_noise(scaled, size);
    }
    const double off = bytes - truth;
    sum += off;
    squares += off * off;
    counts += blocks - kBlocks;
    count_squares += (blocks - kBlocks) * (blocks - kBlocks);
    stated += standard_error(noise) * standard_error(noise);
    within += std::fabs(off) <= kTwoSided95 * standard_error(noise) ? 1 : 0;
  }
  EXPECT_LT(std::fabs(sum), 5 * std::sqrt(squares));
  EXPECT_LT(std::fabs(counts), 5 * std::sqrt(count_squares));
  // A variance from a thousand is known to 4.5 %.
  EXPECT_NEAR(stated / squares, 1, 0.2);
  EXPECT_GT(within, kSeeds * 92 / 100);
  EXPECT_LT(within, kSeeds * 98 / 100);
}

// A part of a block that was taken is taken with p(part) in all: with p(part) / p(whole) now.
TEST(ByteSampler, APartOfATakenBlockIsKeptAsIfItHadBeenABlock) {
  constexpr uint64_t kRate = 1 << 16, kWhole = 80'000, kPart = 30'000;
  constexpr size_t kCount = 100'000;
  ByteSampler sampler;
  size_t kept = 0;
  for (size_t i = 0; i < kCount; ++i) kept += sampler.keep(kPart, kWhole, kRate) ? 1 : 0;
  // (1 - e^-0.45776) / (1 - e^-1.2207) = 0.36731 / 0.70498 = 0.52102; standard error 0.00158
  EXPECT_NEAR(static_cast<double>(kept) / kCount, 0.52102, 5 * 0.00158);
}

TEST(FastLog, IsTheLogarithm) {
  for (int i = -230; i < 230; ++i) {  // from 1e-16 to 1e16
    const double x = std::pow(1.174, i);
    EXPECT_NEAR(fast_log(x), std::log(x), 1e-6 * (1 + std::fabs(std::log(x)))) << x;
  }
}

}  // namespace
}  // namespace memscope::capture
