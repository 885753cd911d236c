#include "view/site_table.h"

#include <algorithm>

namespace memscope::view {
namespace {

// The states at which something is noted down: ascending.
struct Moment {
  uint32_t state = 0;
  size_t column = 0;
};

// Least squares of y over 0, 1, 2, ... scaled by `width` steps a point.
double slope_of(const std::vector<double>& y, double width) {
  const auto n = static_cast<double>(y.size());
  double weighted = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    weighted += y[i] * (static_cast<double>(i) - (n - 1) / 2);
  }
  const double spread = n * (n * n - 1) / 12;
  return spread == 0 ? 0 : weighted / spread / width;
}

}  // namespace

SiteHistories site_histories(const InputIndex& input, const PoolIndex& pool, uint32_t warmup) {
  SiteHistories result;
  std::vector<uint32_t> index(input.site_count(), ~0u);
  std::vector<bool> here(input.site_count());
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    here[input.site_of_stack(pool.stack[block])] = true;
  }
  for (uint32_t site = 0; site < here.size(); ++site) {
    if (!here[site]) continue;
    index[site] = static_cast<uint32_t>(result.sites.size());
    result.sites.push_back(site);
  }
  const size_t count = result.sites.size();
  result.of_site.resize(count);

  // Moments of the sparkline, then step ends after warm-up, at most 64 of them.
  std::vector<Moment> moments;
  const uint64_t span = input.end - input.begin;
  for (size_t i = 0; i < kSparkPoints; ++i) {
    moments.push_back({pool.state_at(input.begin + span * (i + 1) / kSparkPoints), i});
  }
  const auto& ends = input.steps.ends;
  constexpr size_t kMinSteps = 8, kPoints = 64;
  size_t points = 0;
  double width = 1;
  if (ends.size() >= warmup + kMinSteps) {
    const size_t steps = ends.size() - warmup;
    points = std::min(steps, kPoints);
    width = static_cast<double>(steps - 1) / static_cast<double>(points - 1);
    for (size_t i = 0; i < points; ++i) {
      const size_t step = warmup + i * (steps - 1) / (points - 1);
      moments.push_back({pool.state_at(ends[step]), kSparkPoints + i});
    }
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& a, const Moment& b) { return a.state < b.state; });

  std::vector<uint64_t> now(count);
  std::vector<std::vector<double>> curve(count, std::vector<double>(points));
  std::vector<uint32_t> peak_event(count);
  size_t next = 0;
  const auto note = [&](uint32_t state) {
    for (; next < moments.size() && moments[next].state <= state; ++next) {
      const size_t column = moments[next].column;
      for (size_t i = 0; i < count; ++i) {
        if (column < kSparkPoints) {
          result.of_site[i].spark[column] = static_cast<float>(now[i]);
        } else {
          curve[i][column - kSparkPoints] = static_cast<double>(now[i]);
        }
      }
    }
  };
  note(0);
  for (uint32_t event = 0; event < pool.events(); ++event) {
    const uint32_t word = pool.event[event];
    const uint32_t block = word & ~kFreeBit;
    if (block != 0) {
      const uint32_t at = index[input.site_of_stack(pool.stack[block])];
      SiteHistory& history = result.of_site[at];
      if ((word & kFreeBit) != 0) {
        now[at] -= pool.size(block);
        ++history.freed;
        history.lifetimes += static_cast<double>(pool.time[event] - pool.begin_time(block));
      } else {
        now[at] += pool.size(block);
        ++history.blocks;
        if (now[at] > history.peak) {
          history.peak = now[at];
          peak_event[at] = event;
        }
      }
    }
    if (next < moments.size() && moments[next].state <= event + 1) note(event + 1);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!pool.time.empty()) result.of_site[i].peak_time = pool.time[peak_event[i]];
    if (points != 0) result.of_site[i].bytes_per_step = slope_of(curve[i], width);
  }
  if (input.owners.size() > 1) {
    std::vector<std::vector<std::pair<uint64_t, uint32_t>>> shares(count);  // bytes, owner
    for (uint32_t block = 1; block <= pool.blocks(); ++block) {
      if (pool.owner[block] == 0) continue;
      auto& of_site = shares[index[input.site_of_stack(pool.stack[block])]];
      const auto at = std::find_if(of_site.begin(), of_site.end(), [&](const auto& share) {
        return share.second == pool.owner[block];
      });
      if (at != of_site.end()) {
        at->first += pool.size(block);
      } else if (of_site.size() < 64) {
        of_site.emplace_back(pool.size(block), pool.owner[block]);
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (shares[i].empty()) continue;
      result.of_site[i].owner = std::max_element(shares[i].begin(), shares[i].end())->second;
    }
  }
  return result;
}

std::vector<SiteNow> sites_now(const InputIndex& input, const PoolIndex& pool, uint64_t t0,
                               uint64_t t1) {
  std::vector<SiteNow> result(input.site_count());
  const uint32_t state = pool.state_at(t1);
  const uint32_t blocks = pool.blocks_in(state);
  for (uint32_t block = 1; block <= blocks; ++block) {
    if (pool.free_event[block] < state) continue;
    SiteNow& site = result[input.site_of_stack(pool.stack[block])];
    site.live_bytes += pool.size(block);
    ++site.live_blocks;
  }
  const uint32_t last = pool.blocks_in(pool.state_before(t1));
  for (uint32_t block = pool.blocks_in(pool.state_before(t0)) + 1; block <= last; ++block) {
    if ((pool.sized[block] & kSeeded) != 0) continue;
    SiteNow& site = result[input.site_of_stack(pool.stack[block])];
    site.alloc_bytes += pool.size(block);
    ++site.allocs;
  }
  return result;
}

}  // namespace memscope::view
