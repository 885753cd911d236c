// The lines that allocate, each with what it holds, held and how it grows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "view/input_index.h"

namespace memscope::view {

inline constexpr size_t kSparkPoints = 64;

// Of a whole run, made once for a pool.
struct SiteHistory {
  uint64_t peak = 0;
  uint64_t peak_time = 0;
  uint64_t blocks = 0, freed = 0;
  double lifetimes = 0;  // ns, of the freed, summed
  std::optional<double> bytes_per_step;
  std::array<float, kSparkPoints> spark{};  // live bytes at equal distances; the last at the end
  uint32_t owner = 0;                       // of its largest part
};

struct SiteHistories {
  std::vector<uint32_t> sites;       // those that have blocks here, ascending
  std::vector<SiteHistory> of_site;  // beside them
};

// `warmup`: the last step of it.
SiteHistories site_histories(const InputIndex& input, const PoolIndex& pool, uint32_t warmup);

// What depends on the window.
struct SiteNow {
  uint64_t live_bytes = 0, live_blocks = 0;  // at its end
  uint64_t allocs = 0, alloc_bytes = 0;      // in it
};
std::vector<SiteNow> sites_now(const InputIndex& input, const PoolIndex& pool, uint64_t t0,
                               uint64_t t1);  // by site

}  // namespace memscope::view
