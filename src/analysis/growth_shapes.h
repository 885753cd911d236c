// Programs in miniature, and what their memory looks like: healthy ones and leaking ones. What the
// judgement of growth is tested and measured with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "analysis/confidence.h"
#include "analysis/growth.h"
#include "replay/history.h"

namespace memscope {

inline constexpr double kMiB = 1 << 20;

// A program in miniature: blocks with a birth and a death step. The curves follow from them as
// replay makes them, folded into buckets, so that a shape cannot be written in a way that no
// program has.
struct Program {
  struct Life {
    size_t birth, death;  // alive at the ends of steps birth .. death - 1, from 1
    double bytes;
  };
  size_t steps;
  std::vector<Life> lives;
  double gain_error = 0;  // of a sampled one

  // What is recorded of it by byte sampling (core/sampling.h), `rate` bytes between two samples.
  Program sampled(std::mt19937_64& random, double rate, size_t warmup = 2) const {
    const Buckets buckets(static_cast<uint32_t>(steps));
    const size_t base = buckets.last_step(static_cast<uint32_t>(warmup) - 1);
    Program seen{steps, {}};
    double noise = 0;
    for (const Life& life : lives) {
      const double p = -std::expm1(-life.bytes / rate);
      if (std::uniform_real_distribution<double>(0, 1)(random) >= p) continue;
      const double scaled = life.bytes / p;
      seen.lives.push_back({life.birth, life.death, scaled});
      // Came since and stayed, or was there and left.
      if ((life.birth > base) == (life.death > steps)) {
        if (life.birth > base || life.death > base) noise += scaled * (scaled - life.bytes);
      }
    }
    seen.gain_error = std::sqrt(noise);
    return seen;
  }

  void keep(size_t birth, double bytes) { lives.push_back({birth, steps + 2, bytes}); }
  void hold(size_t birth, size_t death, double bytes) { lives.push_back({birth, death, bytes}); }

  Growth judge(size_t warmup = 2) const {
    std::vector<double> live(steps + 2), came(steps + 1), births(steps + 1);
    for (const Life& life : lives) {
      if (life.birth > steps) continue;
      live[life.birth] += life.bytes;
      live[std::min(life.death, steps + 1)] -= life.bytes;
      if (life.death > steps && life.birth >= 1) {
        came[life.birth] += life.bytes;
        births[life.birth] += 1;
      }
    }
    const Buckets buckets(static_cast<uint32_t>(steps));
    std::vector<double> x, y, survivors, counts;
    double level = live[0], stays = 0, count = 0;
    for (uint32_t s = 1; s <= steps; ++s) {
      level += live[s];
      stays += came[s];
      count += births[s];
      if (s != buckets.last_step(buckets.of_step(s))) continue;
      x.push_back(s);
      y.push_back(level);
      survivors.push_back(stays);
      counts.push_back(count);
      count = 0;
    }
    return judge_growth({x, y, survivors, counts, gain_error}, std::min(warmup, x.size()));
  }
  // 0 where it does not grow.
  double confidence() const {
    const Growth growth = judge();
    return growth.grows() ? growth_confidence(growth, static_cast<uint32_t>(steps) - 2) : 0;
  }
};

using Random = std::mt19937_64;
inline double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
inline size_t whole(Random& random, size_t low, size_t high) {
  return std::uniform_int_distribution<size_t>(low, high)(random);
}

using Shaper = std::function<void(Program&, Random&)>;

// Each must never grow.
inline const std::map<std::string, Shaper> kHealthy = {
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

}  // namespace memscope
