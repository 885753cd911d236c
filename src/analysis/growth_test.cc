#include "analysis/growth.h"

#include <gtest/gtest.h>

#include "analysis/growth_shapes.h"

namespace memscope {
namespace {

TEST(Growth, HealthyShapesAreNeverAccused) {
  for (const auto& [name, shape] : kHealthy) {
    int accused = 0;
    Random random(42);
    for (int round = 0; round < 1000; ++round) {
      Program program{.steps = whole(random, 10, 256)};
      shape(program, random);
      accused += program.judge().grows();
    }
    EXPECT_EQ(accused, 0) << name;
  }
}

TEST(Growth, ShortHealthyRunsAreNeverAccused) {
  for (const auto& [name, shape] : kHealthy) {
    int accused = 0;
    Random random(43);
    for (int round = 0; round < 1000; ++round) {
      Program program{.steps = whole(random, 10, 14)};
      shape(program, random);
      accused += program.judge().grows();
    }
    EXPECT_EQ(accused, 0) << name;
  }
}

// -- leaks: each must be found, its slope within 2 % ----------------------------------------------

TEST(Growth, ConstantLeak) {
  Program program{.steps = 100};
  for (size_t s = 1; s <= 100; ++s) program.keep(s, kMiB);
  const Growth growth = program.judge();
  EXPECT_EQ(growth.shape, Shape::kGrows);
  EXPECT_DOUBLE_EQ(growth.slope, kMiB);
  EXPECT_DOUBLE_EQ(growth.lower, kMiB) << "no residual, no doubt";
  EXPECT_DOUBLE_EQ(growth.r2, 1);
  EXPECT_DOUBLE_EQ(growth.total, 98 * kMiB) << "steps 3 to 100";
  EXPECT_EQ(growth.births, 98u);
  EXPECT_TRUE(growth.certain);
}

TEST(Growth, ConstantLeakOfTheShortestRun) {
  Program program{.steps = 10};  // 2 of warm-up, 8 to judge
  for (size_t s = 1; s <= 10; ++s) program.keep(s, kMiB);
  EXPECT_TRUE(program.judge().grows());
  Program shorter{.steps = 9};
  for (size_t s = 1; s <= 9; ++s) shorter.keep(s, kMiB);
  EXPECT_EQ(shorter.judge().shape, Shape::kTooShort);
}

TEST(Growth, LeakEveryFewSteps) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const size_t steps = whole(random, 16, 256);
    const size_t every = whole(random, 1, steps / 8);
    Program program{.steps = steps};
    for (size_t s = whole(random, 1, every); s <= steps; s += every) program.keep(s, kMiB);
    const Growth growth = program.judge();
    ASSERT_TRUE(growth.grows()) << steps << " steps, every " << every << ": "
                                << shape_name(growth.shape);
    // A staircase of 8 stairs and more: its straight line is right within 1 / 8^2 and the ends.
    EXPECT_NEAR(growth.slope * static_cast<double>(every), kMiB, (every == 1 ? 0.02 : 0.06) * kMiB)
        << steps << " steps, every " << every;
  }
}

TEST(Growth, LeakOfVaryingSize) {
  Random random(2);
  for (int round = 0; round < 2000; ++round) {
    Program program{.steps = whole(random, 24, 256)};
    double bytes = 0;
    for (size_t s = 1; s <= program.steps; ++s) {
      const double size = uniform(random, .5, 1.5) * kMiB;
      if (s > 2) bytes += size;
      program.keep(s, size);
    }
    const Growth growth = program.judge();
    ASSERT_TRUE(growth.grows());
    const double mean = bytes / static_cast<double>(program.steps - 2);
    EXPECT_NEAR(growth.slope, mean, 0.12 * mean);
    EXPECT_LE(growth.lower, mean * 1.05);
  }
}

TEST(Growth, OneGrowingBlock) {
  for (size_t steps = 10; steps <= 256; ++steps) {
    Program program{.steps = steps};  // x = torch.cat([x, row])
    for (size_t s = 1; s < steps; ++s) program.hold(s, s + 1, static_cast<double>(s) * kMiB);
    program.keep(steps, static_cast<double>(steps) * kMiB);
    const Growth growth = program.judge();
    ASSERT_EQ(growth.shape, Shape::kGrowingBlock) << steps << shape_name(growth.shape);
    EXPECT_NEAR(growth.slope, kMiB, 0.02 * kMiB);
  }
}

TEST(Growth, LeakUnderTenfoldChurn) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    Program program{.steps = whole(random, 16, 256)};
    for (size_t s = 1; s <= program.steps; ++s) {
      program.keep(s, kMiB);
      program.hold(s, s + 1, uniform(random, 1, 20) * kMiB);
    }
    const Growth growth = program.judge();
    ASSERT_TRUE(growth.grows()) << program.steps << shape_name(growth.shape);
    // The churn's last batch is alive at the last step: one point of many, 20 MiB at most.
    EXPECT_NEAR(growth.slope, kMiB, (program.steps > 100 ? 0.1 : 1.1) * kMiB);
  }
}

TEST(Growth, LeakAfterACacheFilled) {
  Program program{.steps = 200};
  for (size_t s = 1; s <= 200; ++s) program.keep(s, kMiB);
  for (size_t s = 1; s <= 40; ++s) program.keep(s, 2 * kMiB);
  EXPECT_TRUE(program.judge().grows());
}

TEST(Growth, LeakThatBeginsLate) {
  Random random(4);
  for (int round = 0; round < 2000; ++round) {
    Program program{.steps = whole(random, 80, 256)};
    const size_t from = whole(random, 3, program.steps * 6 / 10);
    for (size_t s = from; s <= program.steps; ++s) program.keep(s, kMiB);
    program.keep(1, 3 * kMiB);  // what the line made at first and keeps for good
    const Growth growth = program.judge();
    ASSERT_TRUE(growth.grows()) << from << " of " << program.steps << shape_name(growth.shape);
    if (growth.late) {
      EXPECT_NEAR(growth.slope, kMiB, 0.02 * kMiB) << "a step, since it began";
    }
  }
}

TEST(Growth, ALateLeakOfLessThanAThirdIsNotJudged) {
  Program program{.steps = 120};
  for (size_t s = 90; s <= 120; ++s) program.keep(s, kMiB);
  EXPECT_FALSE(program.judge().grows());
}

// -- warm-up --------------------------------------------------------------------------------------

TEST(Warmup, IsAtLeastTwoSteps) {
  const std::vector<double> flat(100, kMiB);
  EXPECT_EQ(warmup_points(flat), 2u);
}

TEST(Warmup, LastsUntilTheTotalIsOnItsLine) {
  // 10 MiB more in each of the first 5 steps, then 1 MiB a step: the line holds from step 5 on.
  std::vector<double> total;
  for (int s = 1; s <= 100; ++s) total.push_back((10 * std::min(s, 5) + s) * kMiB);
  EXPECT_EQ(warmup_points(total), 5u);
}

TEST(Warmup, AnEndlessOneIsNone) {
  std::vector<double> total;  // fills for 60 of 100 steps
  for (int s = 1; s <= 100; ++s) total.push_back(std::min(s, 60) * kMiB);
  EXPECT_EQ(warmup_points(total), 2u);
}

TEST(Warmup, NeverBeyondTheSeries) {
  EXPECT_EQ(warmup_points({}), 0u);
  EXPECT_EQ(warmup_points(std::vector<double>(1)), 1u);
  EXPECT_EQ(warmup_points(std::vector<double>(7)), 2u);
}

TEST(FitLine, LeastSquares) {
  // (0, 1), (1, 3), (2, 5): y = 2 x + 1
  const Line line = fit_line(std::vector<double>{0, 1, 2}, std::vector<double>{1, 3, 5});
  EXPECT_DOUBLE_EQ(line.slope, 2);
  EXPECT_DOUBLE_EQ(line.intercept, 1);
  EXPECT_DOUBLE_EQ(line.r2, 1);
}

}  // namespace
}  // namespace memscope
