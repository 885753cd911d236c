// Does a series of live bytes grow without bound? Pure statistics, no knowledge of traces.
//
// Two curves over the step ends decide together:
//
//   live       bytes alive at each step's end: what the leak looks like from outside, with all the
//              churn of the program on top
//   survivors  bytes born up to each step's end and still alive at the last one: free of churn. A
//              leak rises all the way; a cache that filled rises and stops; a ring, a sawtooth and
//              what is replaced each step rise only near the end
//
// Something grows if (1) survivors rise in every quarter of the time after warm-up, at a rate that
// does not die away, in at least 6 separate steps of which none is half of it, and live does not
// contradict (old blocks leaving as fast as new ones stay: a full store that replaces); or (2)
// the live bytes themselves rise so, almost without falls: one block that is replaced by a larger
// one each step; or (3) nothing of it was there at first and all of (1) holds for the last third
// of the run or more, with live rising alike: a leak that begins late. Anything else is healthy: a
// false alarm costs an engineer a day. Whether growth slows down (pace.h) is measured beside, and
// lowers the confidence (confidence.h): a store that still fills is worth a look, not an
// accusation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/pace.h"

namespace memscope {

inline constexpr size_t kMinSteps = 8;        // after warm-up, for any verdict
inline constexpr size_t kMinBirths = 6;       // steps in which something stayed
inline constexpr double kMinTotal = 1 << 20;  // bytes
inline constexpr double kMinShare = 0.001;    // of the layer's peak
// What live gains must be so many standard errors of sampling (core/sampling.h). Where nothing
// grows, of n blocks seen to come or go each is as likely one as the other, so that their
// difference is z sqrt(n) or more with a probability of at most exp(-z^2 / 2) (Hoeffding 1963):
// 3e-4 here, 2^-16 for the least n that passes. A place that replaces all it holds once in the run
// is so told from one that grows, which no look at its curve alone can do.
inline constexpr double kSamplingDoubt = 4;

enum class Shape : uint8_t {
  kGrows,         // blocks pile up
  kGrowingBlock,  // a block that is replaced by a larger one
  kTooShort,      // fewer than kMinSteps points
  kFlat,          // nothing stays
  kJumps,         // a few large steps
  kSaturates,     // fills to a bound
  kReplaces,      // stays, but as much leaves
  kUnsteady,      // rises and falls
  kUncertain,     // may be chance: too few of its blocks were sampled
};
std::string_view shape_name(Shape shape);

struct Growth {
  Shape shape = Shape::kFlat;
  double slope = 0;      // per unit of x
  double lower = 0;      // lower bound of the slope, one-sided 95 %
  double r2 = 0;         // of the straight line
  double total = 0;      // bytes gained after warm-up
  size_t births = 0;     // points at which it rose
  bool certain = false;  // live confirms what survivors say
  bool late = false;     // it began in the middle of the run
  Pace pace;             // whether it slows down

  bool grows() const { return shape == Shape::kGrows || shape == Shape::kGrowingBlock; }
};

struct GrowthCurves {
  std::span<const double> x;          // step numbers or seconds
  std::span<const double> live;       // bytes
  std::span<const double> survivors;  // bytes, cumulative
  std::span<const double> births;     // blocks that came at the point and stayed; may be empty
  double gain_error = 0;  // standard error of what live gains after warm-up; 0: nothing is sampled
};

// One value a point. Points before `begin` (>= 1) are warm-up; the one at begin - 1 is the base
// line.
Growth judge_growth(const GrowthCurves& all, size_t begin);

// How many leading points of a total are warm-up: at least 2, at most a quarter of them (2 where
// the total has not settled by then).
size_t warmup_points(std::span<const double> total);

struct Line {
  double slope = 0, intercept = 0, r2 = 0;
  double error = 0;  // standard error of the slope, widened for residuals that follow each other
};
// Least squares.
Line fit_line(std::span<const double> x, std::span<const double> y);

}  // namespace memscope
