#include "analysis/growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace memscope {
namespace {

constexpr double kMiB = 1 << 20;

// A program in miniature: blocks with a birth and a death step. The curves follow from them as
// replay makes them, so that a shape cannot be written in a way that no program has.
struct Program {
  struct Life {
    size_t birth, death;  // alive at the ends of steps birth .. death - 1, from 1
    double bytes;
  };
  size_t steps;
  std::vector<Life> lives;

  void keep(size_t birth, double bytes) { lives.push_back({birth, steps + 2, bytes}); }
  void hold(size_t birth, size_t death, double bytes) { lives.push_back({birth, death, bytes}); }

  Growth judge(size_t warmup = 2) const {
    std::vector<double> x(steps), live(steps), survivors(steps);
    std::iota(x.begin(), x.end(), 1.0);
    for (const Life& life : lives) {
      for (size_t s = life.birth; s < std::min(life.death, steps + 1); ++s) {
        if (s >= 1) live[s - 1] += life.bytes;
      }
      if (life.death > steps && life.birth >= 1 && life.birth <= steps) {
        survivors[life.birth - 1] += life.bytes;
      }
    }
    std::partial_sum(survivors.begin(), survivors.end(), survivors.begin());
    return judge_growth(x, live, survivors, warmup);
  }
};

using Random = std::mt19937_64;
double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
size_t whole(Random& random, size_t low, size_t high) {
  return std::uniform_int_distribution<size_t>(low, high)(random);
}

// -- healthy shapes: each must never grow ---------------------------------------------------------

using Shaper = std::function<void(Program&, Random&)>;

const std::map<std::string, Shaper> kHealthy = {
    {"warm-up then flat",
     [](Program& p, Random& r) {
       for (size_t s = 0; s <= 2; ++s) p.keep(s, uniform(r, 1, 100) * kMiB);
     }},
    {"cache fills to a bound within 60 %",
     [](Program& p, Random& r) {
       const size_t full = static_cast<size_t>(static_cast<double>(p.steps) * uniform(r, .1, .6));
       for (size_t s = 1; s <= full; ++s) p.keep(s, kMiB * uniform(r, .5, 1.5));
     }},
    {"cache of random keys: fewer and fewer are new",
     [](Program& p, Random& r) {
       // coupon collector: with steps / 4 keys, 1 - exp(-4) = 98 % are found by the end
       const size_t keys = std::max<size_t>(4, p.steps / 4);
       std::vector<bool> seen(keys);
       for (size_t s = 1; s <= p.steps; ++s) {
         const size_t key = whole(r, 0, keys - 1);
         if (!seen[key]) p.keep(s, kMiB);
         seen[key] = true;
       }
     }},
    {"cache fills, full for the last twelfth",
     [](Program& p, Random& r) {
       p.steps = std::max<size_t>(p.steps, 128);
       const size_t full = static_cast<size_t>(static_cast<double>(p.steps) * uniform(r, .6, .9));
       for (size_t s = 1; s <= full; ++s) p.keep(s, kMiB * uniform(r, .5, 1.5));
     }},
    {"ring buffer, full for the last twelfth",
     [](Program& p, Random& r) {
       p.steps = std::max<size_t>(p.steps, 200);
       const size_t size = static_cast<size_t>(static_cast<double>(p.steps) * uniform(r, .6, .9));
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, s + size, kMiB);
     }},
    {"ring buffer that begins to fill late",
     [](Program& p, Random& r) {
       const size_t from = whole(r, 1, p.steps / 2);
       const size_t size = std::max<size_t>(1, (p.steps - from) / 2);
       for (size_t s = from; s <= p.steps; ++s) p.hold(s, s + size, kMiB);
     }},
    {"a list given up once",
     [](Program& p, Random& r) {
       p.steps = std::max<size_t>(p.steps, 32);
       const size_t end = whole(r, p.steps * 4 / 10, p.steps * 3 / 4);
       for (size_t s = 1; s <= p.steps; ++s) {
         if (s < end) {
           p.hold(s, end, kMiB);
         } else {
           p.keep(s, kMiB);
         }
       }
     }},
    {"sawtooth, released every N steps",
     [](Program& p, Random& r) {
       const size_t period = whole(r, 2, std::max<size_t>(3, p.steps / 2));
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, (s / period + 1) * period, kMiB);
     }},
    {"level jumps",
     [](Program& p, Random& r) {
       for (size_t jumps = whole(r, 1, 4); jumps-- > 0;) {
         p.keep(whole(r, 1, p.steps), uniform(r, 10, 100) * kMiB);
       }
     }},
    {"optimizer state at the first step",
     [](Program& p, Random&) {
       p.keep(0, 100 * kMiB);
       p.keep(1, 200 * kMiB);
     }},
    {"batches grow, then shrink",
     [](Program& p, Random&) {
       for (size_t s = 1; s <= p.steps; ++s) {
         const double from_middle =
             std::fabs(2.0 * static_cast<double>(s) / static_cast<double>(p.steps) - 1);
         p.hold(s, s + 1, (2 - from_middle) * 50 * kMiB);
       }
     }},
    {"batches of random length",
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, s + 1, uniform(r, 1, 100) * kMiB);
     }},
    {"batches of random length, some held for a few steps",
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) {
         p.hold(s, s + whole(r, 1, 3), std::exp(uniform(r, 0, 4)) * kMiB);
       }
     }},
    {"ring buffer, full by 60 %",
     [](Program& p, Random& r) {
       const size_t size = std::max<size_t>(
           1, static_cast<size_t>(static_cast<double>(p.steps) * uniform(r, .05, .6)));
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, s + size, kMiB);
     }},
    {"full store, random replacement",
     [](Program& p, Random& r) {
       std::vector<size_t> births(p.steps, 0);  // as many slots as steps: full before step 1
       for (size_t s = 1; s <= p.steps; ++s) {
         const size_t slot = whole(r, 0, births.size() - 1);
         p.hold(births[slot], s, kMiB);
         births[slot] = s;
       }
       for (const size_t birth : births) p.keep(birth, kMiB);
     }},
    {"LRU cache with more keys than room, full by 60 %",
     [](Program& p, Random& r) {
       // Random keys: those not in the cache take the place of the one used longest ago.
       const size_t room = std::max<size_t>(2, p.steps / whole(r, 4, 12));
       std::vector<std::array<size_t, 3>> cache;  // key, birth, last used
       for (size_t s = 1; s <= p.steps; ++s) {
         const size_t key = whole(r, 0, 2 * room - 1);
         const auto hit = std::find_if(cache.begin(), cache.end(),
                                       [&](const auto& entry) { return entry[0] == key; });
         if (hit != cache.end()) {
           (*hit)[2] = s;
           continue;
         }
         if (cache.size() == room) {
           const auto oldest =
               std::min_element(cache.begin(), cache.end(),
                                [](const auto& a, const auto& b) { return a[2] < b[2]; });
           p.hold((*oldest)[1], s, kMiB);
           cache.erase(oldest);
         }
         cache.push_back({key, s, s});
       }
       for (const auto& entry : cache) p.keep(entry[1], kMiB);
     }},
    {"replaced each step",
     [](Program& p, Random&) {
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, s + 1, 50 * kMiB);
     }},
    {"validation every few steps",
     [](Program& p, Random& r) {
       const size_t every = whole(r, 2, 10);
       for (size_t s = every; s <= p.steps; s += every) p.hold(s, s + 1, 200 * kMiB);
     }},
    {"epoch lists, given up at the epoch's end",
     [](Program& p, Random& r) {
       const size_t epoch = std::max<size_t>(2, p.steps / whole(r, 3, 6));
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, ((s - 1) / epoch + 1) * epoch + 1, kMiB);
     }},
    {"allocation after the last step",
     [](Program& p, Random&) { p.keep(p.steps + 1, 500 * kMiB); }},
};

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

// -- leaks: each must be found, its slope within 2 %
// ------------------------------------------------

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
