// Byte sampling takes a block in hundreds: what it leaves of a healthy program must not look like a
// leak, and what it leaves of a leak must be known with its error.
#include <gtest/gtest.h>

#include "analysis/growth_shapes.h"

namespace memscope {
namespace {

constexpr double kRate = 512 * 1024;

// A store of `bytes` in blocks of `size` that is always full: each step some of its blocks are
// replaced, the oldest first or any, so that all of it is replaced `times` in the run.
Program full_store(Random& random, size_t steps, double bytes, double size, double times,
                   bool oldest_first) {
  Program program{steps, {}};
  const auto count = static_cast<size_t>(bytes / size);
  std::vector<size_t> born(count, 0);  // the step; 0: before the first
  size_t next = 0;
  double due = 0;
  for (size_t step = 1; step <= steps; ++step) {
    for (due += times * static_cast<double>(count) / static_cast<double>(steps); due >= 1; --due) {
      const size_t which = oldest_first ? next++ % count : whole(random, 0, count - 1);
      program.hold(born[which], step, size);
      born[which] = step;
    }
  }
  for (const size_t birth : born) program.keep(birth, size);
  return program;
}

struct Tally {
  size_t verdicts = 0, suspects = 0, without = 0;  // without: had the sampling error been ignored
  void add(Program seen) {
    const double confidence = seen.confidence();
    (confidence >= 0.5 ? verdicts : suspects) += confidence > 0 ? 1 : 0;
    seen.gain_error = 0;
    without += seen.confidence() > 0 ? 1 : 0;
  }
};

// Of 1,500 healthy programs not one is accused. Each holds what 8 to 400 samples stand for and
// replaces it half to three times in the run: nothing grows, but the samples come and go by chance.
TEST(SampledGrowth, AFullStoreIsNeverAccused) {
  Tally tally;
  Random random(20261130);
  for (size_t i = 0; i < 1500; ++i) {
    const double bytes = std::exp(uniform(random, std::log(8.0), std::log(400.0))) * kRate;
    const double size = std::exp(uniform(random, std::log(4096.0), std::log(kRate)));
    const Program program = full_store(random, whole(random, 30, 300), bytes, size,
                                       uniform(random, 0.5, 3), whole(random, 0, 1) == 1);
    tally.add(program.sampled(random, kRate));
  }
  EXPECT_EQ(tally.verdicts, 0u);
  EXPECT_LE(tally.suspects, 1u);
  // It is this test's programs that are hard, not that nothing is asked of it.
  EXPECT_GE(tally.without, 30u);
}

// Blocks that come and go within a few steps, a hundred times what is alive.
TEST(SampledGrowth, ChurnIsNeverAccused) {
  Tally tally;
  Random random(7);
  for (size_t i = 0; i < 300; ++i) {
    const size_t steps = whole(random, 30, 200);
    Program program{steps, {}};
    for (size_t step = 1; step <= steps; ++step) {
      for (size_t block = 0; block < 40; ++block) {
        program.hold(step, step + whole(random, 0, 6), uniform(random, 1000, 200'000));
      }
    }
    tally.add(program.sampled(random, kRate));
  }
  EXPECT_EQ(tally.verdicts + tally.suspects, 0u);
}

// A leak of so many samples is found: of 20 MiB (40 samples) as a suspect at least, of 300 MiB
// (600) as a verdict. A few samples come at random, as a cache's do that is far from full: no
// verdict.
TEST(SampledGrowth, ALeakIsFoundOnceThereIsEnoughOfIt) {
  const auto found = [](double total, double at_least) {
    Random random(42);
    size_t count = 0;
    for (size_t i = 0; i < 200; ++i) {
      const size_t steps = 200;
      Program program{steps, {}};
      const double size = 4096;
      const auto a_step = static_cast<size_t>(total / size / static_cast<double>(steps));
      for (size_t step = 1; step <= steps; ++step) {
        for (size_t block = 0; block < a_step; ++block) program.keep(step, size);
      }
      count += program.sampled(random, kRate).confidence() >= at_least ? 1 : 0;
    }
    return count;
  };
  EXPECT_GE(found(20 * kMiB, 1e-9), 190u);
  EXPECT_GE(found(300 * kMiB, 0.5), 160u);
  EXPECT_LE(found(4 * kMiB, 1e-9), 5u);  // 8 samples expected, 16 needed
}

// The slope is right within what is said of its error (leak.cc): 3 / 2 / X times the gain's, which
// is more than enough for a leak, so that 95 % and more of the intervals hold the truth.
TEST(SampledGrowth, TheSlopeLiesWithinItsError) {
  Random random(3);
  size_t within = 0, grows = 0;
  double sum = 0;
  for (size_t i = 0; i < 400; ++i) {
    Program program{200, {}};
    for (size_t step = 1; step <= 200; ++step) {
      for (size_t block = 0; block < 256; ++block) program.keep(step, 4096);
    }
    const Program seen = program.sampled(random, kRate);
    const Growth growth = seen.judge();
    if (!growth.grows()) continue;
    ++grows;
    sum += growth.slope / kMiB;
    within += std::fabs(growth.slope - kMiB) <= 1.96 * 1.5 * seen.gain_error / 198 ? 1 : 0;
  }
  EXPECT_EQ(grows, 400u);
  EXPECT_GE(within, 380u);
  EXPECT_NEAR(sum / 400, 1, 0.02);  // 400 samples each: 5.5 % of one, 0.3 % of their mean
}

}  // namespace
}  // namespace memscope
