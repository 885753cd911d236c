#include "analysis/pace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace memscope {
namespace {

constexpr double kAlike = 0.1;  // coefficient of variation up to which counts are of one size

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(std::span<const double> values) {
  Moments moments;
  const double count = static_cast<double>(values.size());
  if (values.empty()) return moments;
  for (const double value : values) moments.mean += value / count;
  for (const double value : values) {
    moments.variance += (value - moments.mean) * (value - moments.mean);
  }
  moments.variance = values.size() < 2 ? 0 : moments.variance / (count - 1);
  return moments;
}

// The ratio of two means, b over a, by the first and the last third of `values`; the relative
// variance is taken from within the thirds, so that the difference is no part of its own error.
Pace compare_thirds(std::span<const double> values, bool inverse) {
  const size_t third = std::max<size_t>(2, values.size() / 3);
  if (values.size() < 2 * third) return {1, 0};
  const Moments early = moments_of(values.first(third)), late = moments_of(values.last(third));
  if (early.mean <= 0) return {1, 1};  // nothing at first: it does not slow down
  if (late.mean <= 0) return {0, 0};
  const double n = static_cast<double>(third);
  // One relative variance for both: of few values each one's own is too uncertain.
  const double relative =
      (early.variance + late.variance) / (early.mean * early.mean + late.mean * late.mean);
  const double error = student95(2 * third - 2) * std::sqrt(2 * relative / n);
  Pace pace;
  pace.ratio = inverse ? early.mean / late.mean : late.mean / early.mean;
  pace.lower = pace.ratio * std::exp(-error);
  return pace;
}

}  // namespace

double student95(size_t degrees) {
  // Any table of Student's t, for 1, 2, ... degrees of freedom.
  constexpr std::array<double, 10> kTable = {6.314, 2.920, 2.353, 2.132, 2.015,
                                             1.943, 1.895, 1.860, 1.833, 1.812};
  if (degrees == 0) return kTable[0];
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  return 1.645 + 1.7 / static_cast<double>(degrees);
}

Pace pace_of_births(std::span<const double> x, std::span<const double> births, size_t begin) {
  std::vector<double> rates, sizes, waits;
  size_t last = 0;
  for (size_t i = begin; i < x.size(); ++i) {
    const double width = std::max(1e-300, x[i] - x[i - 1]);
    rates.push_back(births[i] / width);
    if (births[i] <= 0) continue;
    sizes.push_back(births[i] / width);
    if (last != 0) waits.push_back(x[i] - x[last]);
    last = i;
  }
  const Moments size = moments_of(sizes);
  if (size.variance > kAlike * kAlike * size.mean * size.mean) {
    return compare_thirds(rates, false);
  }
  if (waits.size() < 4) return {1, 0};
  // The wait that is not over yet counts where it is a long one.
  const double open = x.back() - x[last];
  if (open > *std::max_element(waits.begin(), waits.end())) waits.push_back(open);
  return compare_thirds(waits, true);
}

Pace pace_of_level(std::span<const double> x, std::span<const double> level, size_t begin) {
  std::vector<double> rates;
  for (size_t i = begin; i < x.size(); ++i) {
    rates.push_back((level[i] - level[i - 1]) / std::max(1e-300, x[i] - x[i - 1]));
  }
  return compare_thirds(rates, false);
}

}  // namespace memscope
