#include "analysis/confidence.h"

#include <algorithm>

namespace memscope {
namespace {

constexpr double kBest = 0.97;
// Pace (lower bound) at which a verdict becomes a suspect, and from which it does not matter.
constexpr double kSlow = 0.75, kEven = 0.9;
constexpr double kAtSlow = 0.5 / kBest;

double clamp01(double value) {
  return std::clamp(value, 0.0, 1.0);
}

double pace_factor(double lower) {
  if (lower < kSlow) return kAtSlow * std::max(0.0, lower) / kSlow;
  return kAtSlow + (1 - kAtSlow) * clamp01((lower - kSlow) / (kEven - kSlow));
}

}  // namespace

double growth_confidence(const Growth& growth, uint32_t steps) {
  double confidence = kBest * pace_factor(growth.pace.lower);
  confidence *= 0.8 + 0.2 * clamp01((static_cast<double>(steps) - 8) / 24);
  if (growth.births < 2 * kMinBirths) confidence *= 0.9;
  confidence *= 0.8 + 0.2 * clamp01(growth.r2);
  confidence *= 0.7 + 0.3 * clamp01(growth.slope > 0 ? growth.lower / growth.slope : 0);
  if (!growth.certain) confidence *= 0.9;
  if (growth.late) confidence *= 0.9;
  return confidence;
}

}  // namespace memscope
