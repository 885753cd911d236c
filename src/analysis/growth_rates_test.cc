// How often is a healthy program accused, how often is a leak missed? Over many programs in
// miniature of many shapes and lengths, by the decision as diagnose() makes it: a verdict from
// confidence 0.5 on, a suspect below. The table it prints is docs/growth-statistics.md's.
#include <gtest/gtest.h>

#include <cstdio>

#include "analysis/growth_shapes.h"

namespace memscope {
namespace {

constexpr double kSure = 0.5;
constexpr int kRounds = 400;

// A store of `keys` keys, looked up `each` times a step; a new key makes a block that stays.
void cache(Program& p, Random& r, size_t keys, size_t each) {
  std::vector<bool> seen(keys);
  for (size_t s = 1; s <= p.steps; ++s) {
    for (size_t i = 0; i < each; ++i) {
      const size_t key = whole(r, 0, keys - 1);
      if (!seen[key]) p.keep(s, kMiB);
      seen[key] = true;
    }
  }
}

// Keys as words of a language come: the k-th most frequent with probability ~ k^-exponent.
void zipf(Program& p, Random& r, double exponent, size_t each) {
  constexpr size_t kKeys = 20'000;
  static std::map<double, std::vector<double>> tables;
  std::vector<double>& sums = tables[exponent];
  for (size_t k = sums.size(); k < kKeys; ++k) {
    sums.push_back((k == 0 ? 0 : sums.back()) + std::pow(static_cast<double>(k + 1), -exponent));
  }
  std::vector<bool> seen(kKeys);
  for (size_t s = 1; s <= p.steps; ++s) {
    for (size_t i = 0; i < each; ++i) {
      const double at = uniform(r, 0, sums.back());
      const size_t key =
          static_cast<size_t>(std::lower_bound(sums.begin(), sums.end(), at) - sums.begin());
      if (!seen[key]) p.keep(s, kMiB);
      seen[key] = true;
    }
  }
}

// Something else of the same line comes and goes: `times` a leak of 1 MiB a step.
void churn(Program& p, Random& r, double times) {
  for (size_t s = 1; s <= p.steps; ++s) p.hold(s, s + 1, uniform(r, 0, 2 * times) * kMiB);
}

struct Kind {
  const char* name;
  size_t least, most;  // steps
  Shaper shape;
  double bound;  // of the share that is decided wrongly
};

// Healthy: none of them may be a verdict.
const std::vector<Kind> kFills = {
    {"81 keys, one a step, 50 steps", 50, 50, [](Program& p, Random& r) { cache(p, r, 81, 1); },
     .05},
    {"keys = 1 to 2 x steps, one a step", 30, 256,
     [](Program& p, Random& r) { cache(p, r, p.steps * whole(r, 10, 20) / 10, 1); }, .03},
    {"keys = steps / 4 to steps, one a step", 30, 256,
     [](Program& p, Random& r) {
       cache(p, r, std::max<size_t>(4, p.steps * whole(r, 1, 4) / 4), 1);
     },
     .02},
    {"keys = 1 to 2 x look-ups, four a step", 30, 256,
     [](Program& p, Random& r) { cache(p, r, 4 * p.steps * whole(r, 10, 20) / 10, 4); }, .05},
    {"keys = 1 to 2 x steps, 1000 to 5000 steps", 1000, 5000,
     [](Program& p, Random& r) { cache(p, r, p.steps * whole(r, 10, 20) / 10, 1); }, .01},
    {"power-law keys (1.2 to 2), 200 steps", 200, 200,
     [](Program& p, Random& r) { zipf(p, r, uniform(r, 1.2, 2), 1); }, .02},
    {"power-law keys (1.2 to 2), 5000 steps", 5000, 5000,
     [](Program& p, Random& r) { zipf(p, r, uniform(r, 1.2, 2), 1); }, .01},
    {"power-law keys (1.2 to 2), eight a step", 60, 1000,
     [](Program& p, Random& r) { zipf(p, r, uniform(r, 1.2, 2), 8); }, .01},
    {"buffer to a bound, full by 90 %", 100, 400,
     [](Program& p, Random& r) {
       const auto full = static_cast<size_t>(static_cast<double>(p.steps) * uniform(r, .3, .9));
       for (size_t s = 1; s <= p.steps; ++s) p.hold(s, s + full, kMiB);
     },
     0},
    {"evaluation every N steps, kept until the next", 40, 400,
     [](Program& p, Random& r) {
       const size_t every = whole(r, 5, p.steps / 8);
       for (size_t s = every; s <= p.steps; s += every) {
         for (size_t i = 0; i < 8; ++i) p.hold(s, s + every, kMiB);
       }
     },
     0},
    {"batch size changes", 40, 400,
     [](Program& p, Random& r) {
       double size = 1;
       const size_t every = whole(r, 10, p.steps / 3);
       for (size_t s = 1; s <= p.steps; ++s) {
         if (s % every == 0) size *= 2;
         p.hold(s, s + 1, size * kMiB);
       }
     },
     0},
};

const std::vector<Kind> kLeaks = {
    {"a block a step", 12, 400,
     [](Program& p, Random&) {
       for (size_t s = 1; s <= p.steps; ++s) p.keep(s, kMiB);
     },
     0},
    {"bursts every k steps", 60, 400,
     [](Program& p, Random& r) {
       const size_t every = whole(r, 2, p.steps / 8);
       const size_t blocks = whole(r, 1, 8);
       for (size_t s = whole(r, 1, every); s <= p.steps; s += every) {
         for (size_t i = 0; i < blocks; ++i) p.keep(s, kMiB);
       }
     },
     .02},
    {"begins late: from step 200 of 400", 400, 400,
     [](Program& p, Random&) {
       for (size_t s = 200; s <= p.steps; ++s) p.keep(s, kMiB);
     },
     0},
    {"begins at 10 to 60 %", 100, 400,
     [](Program& p, Random& r) {
       for (size_t s = p.steps * whole(r, 10, 60) / 100; s <= p.steps; ++s) p.keep(s, kMiB);
     },
     .05},
    {"in evaluation only: a batch of blocks", 200, 1000,
     [](Program& p, Random& r) {
       const size_t every = whole(r, 10, p.steps / 12);
       for (size_t s = every; s <= p.steps; s += every) {
         for (size_t i = 0; i < 20; ++i) p.keep(s, kMiB);
       }
     },
     .02},
    {"random sizes (0.5 to 1.5)", 24, 400,
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) p.keep(s, uniform(r, .5, 1.5) * kMiB);
     },
     .02},
    {"random sizes (log-normal, sigma 1)", 60, 400,
     [](Program& p, Random& r) {
       std::lognormal_distribution<double> size(0, 1);
       for (size_t s = 1; s <= p.steps; ++s) p.keep(s, size(r) * kMiB);
     },
     .05},
    {"a random number of blocks (Poisson, 4)", 60, 400,
     [](Program& p, Random& r) {
       std::poisson_distribution<int> count(4);
       for (size_t s = 1; s <= p.steps; ++s) {
         for (int i = count(r); i > 0; --i) p.keep(s, kMiB);
       }
     },
     .2},
    {"under 10 x churn", 24, 400,
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) p.keep(s, kMiB);
       churn(p, r, 10);
     },
     .02},
    {"under 100 x churn", 60, 400,
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) p.keep(s, kMiB);
       churn(p, r, 100);
     },
     .05},
    {"in a branch: each step with p = 0.5", 100, 400,
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) {
         if (uniform(r, 0, 1) < .5) p.keep(s, kMiB);
       }
     },
     .6},
    {"in a branch: p = 0.3, 2000 to 5000 steps", 2000, 5000,
     [](Program& p, Random& r) {
       for (size_t s = 1; s <= p.steps; ++s) {
         if (uniform(r, 0, 1) < .3) p.keep(s, kMiB);
       }
     },
     .1},
};

struct Bin {
  int all = 0, leaks = 0;
};
using Calibration = std::array<Bin, 5>;  // 0.5 to 0.6, ... 0.9 to 1

void measure(const std::vector<Kind>& kinds, bool leak, Calibration& calibration) {
  for (const Kind& kind : kinds) {
    Random random(7);
    int verdicts = 0, suspects = 0;
    double sum = 0;
    for (int round = 0; round < kRounds; ++round) {
      Program program{.steps = whole(random, kind.least, kind.most)};
      kind.shape(program, random);
      const double confidence = program.confidence();
      if (confidence >= kSure) {
        ++verdicts;
        sum += confidence;
        Bin& bin = calibration[std::min<size_t>(4, static_cast<size_t>(confidence * 10) - 5)];
        ++bin.all;
        bin.leaks += leak;
      } else {
        suspects += confidence > 0;
      }
    }
    const double accused = static_cast<double>(verdicts) / kRounds;
    std::printf("%-46s %9s %7.1f %% %9.1f %% %9.2f\n", kind.name, leak ? "leak" : "healthy",
                100 * accused, 100.0 * suspects / kRounds, verdicts == 0 ? 0 : sum / verdicts);
    EXPECT_LE(leak ? 1 - accused : accused, kind.bound) << kind.name;
  }
}

TEST(GrowthRates, FalseAlarmsAndMisses) {
  std::printf("%-46s %9s %9s %11s %9s\n", "shape", "truth", "verdict", "suspect", "mean conf");
  Calibration calibration;
  measure(kFills, false, calibration);
  measure(kLeaks, true, calibration);
  std::printf("\n%-12s %9s %9s\n", "confidence", "verdicts", "leaks");
  for (size_t i = 0; i < calibration.size(); ++i) {
    const Bin& bin = calibration[i];
    const double share = bin.all == 0 ? 1 : static_cast<double>(bin.leaks) / bin.all;
    std::printf("%.1f to %.1f %12d %7.1f %%\n", 0.5 + 0.1 * static_cast<double>(i),
                0.6 + 0.1 * static_cast<double>(i), bin.all, 100 * share);
    // Calibrated: at least as many are right as the confidence says.
    constexpr int kEnough = 20;
    if (bin.all < kEnough) continue;
    EXPECT_GE(share, 0.5 + 0.1 * static_cast<double>(i)) << "bin " << i;
  }
}

}  // namespace
}  // namespace memscope
