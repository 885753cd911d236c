#include "analysis/growth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace memscope {
namespace {

constexpr size_t kQuarters = 4;
// The last quarter's share of the mean of the others below which growth dies away. A store that
// fills like 1 - exp(-t/T) is below it up to T = half the run; the square root of time is above.
constexpr double kDying = 0.35;
// The second half's share of the first half's, likewise.
constexpr double kWaning = 0.45;
constexpr size_t kManyBirths = 16;
constexpr double kJump = 0.5;         // of the total, in one step
constexpr double kSteady = 0.8;       // net rise over all rises and falls
constexpr double kMinR2 = 0.9;        // of a growing block's straight line
constexpr double kMinR2Short = 0.97;  // with fewer points than kShort: chance draws lines, too
constexpr size_t kShort = 16;
constexpr double kMinT = 4;  // its slope in standard errors
// Live contradicts where its line lies below this share of the survivors' slope ...
constexpr double kContradicts = 0.5;
// ... by so many standard errors: under much churn a line through few points is wrong by three of
// them now and then.
constexpr double kDoubt = 4;
// A store may be full since its newest part only. So few points take more doubt.
constexpr std::array<size_t, 3> kNewestShares = {4, 8, 16};
constexpr size_t kMinNewest = 12;
constexpr double kDoubtNewest = 6;
// Growth that begins late: in a third of the points at least, and in so many.
constexpr size_t kLateShare = 3;
constexpr size_t kMinLate = 24;
constexpr double kMinR2Late = 0.95;
constexpr double kBefore = 0.05;  // of its total: what may have stayed, or left, before it began

// What `y` gains in each quarter of the points from `begin` on.
struct Quarters {
  std::array<double, kQuarters> gain{};
  std::array<size_t, kQuarters> rises{};
};
Quarters quarters_of(std::span<const double> y, size_t begin) {
  Quarters quarters;
  const size_t points = y.size() - begin;
  for (size_t i = begin; i < y.size(); ++i) {
    const size_t quarter = (i - begin) * kQuarters / points;
    quarters.gain[quarter] += y[i] - y[i - 1];
    if (y[i] > y[i - 1]) ++quarters.rises[quarter];
  }
  return quarters;
}

bool dies_away(const Quarters& q) {
  const auto ratio = [](double late, double early) { return early <= 0 ? 1 : late / early; };
  const auto rises = [&](size_t i) { return static_cast<double>(q.rises[i]); };
  const double last = ratio(q.gain[3], (q.gain[0] + q.gain[1] + q.gain[2]) / 3);
  const double last_rises = ratio(rises(3), (rises(0) + rises(1) + rises(2)) / 3);
  const double half = ratio(q.gain[2] + q.gain[3], q.gain[0] + q.gain[1]);
  const double half_rises = ratio(rises(2) + rises(3), rises(0) + rises(1));
  // Bytes and events: with two or three events a quarter, one small block must not look like an
  // end. Very few bytes are an end, however many events.
  return (last < kDying && last_rises < kDying) || (half < kWaning && half_rises < kWaning) ||
         last < kDying / 4 || half < kWaning / 4;
}

// With few events only regular ones are a habit of the program: the longest wait for one, in
// points, the ends included.
size_t longest_wait(std::span<const double> y, size_t begin) {
  size_t longest = 0, last = begin - 1;
  for (size_t i = begin; i < y.size(); ++i) {
    if (y[i] <= y[i - 1]) continue;
    longest = std::max(longest, i - last);
    last = i;
  }
  return std::max(longest, y.size() - 1 - last);
}
bool haphazard(std::span<const double> y, size_t begin, size_t births) {
  return births < kManyBirths && longest_wait(y, begin) > (y.size() - begin) / 5 + 1;
}

// It rose regularly and then no more, for long: full, though only since the end of the run.
bool has_ended(std::span<const double> y, size_t begin) {
  constexpr size_t kMinEnd = 8, kEndShare = 12, kTimes = 3;
  size_t longest = 1, last = begin - 1;
  for (size_t i = begin; i < y.size(); ++i) {
    if (y[i] <= y[i - 1]) continue;
    longest = std::max(longest, i - last);
    last = i;
  }
  const size_t idle = y.size() - 1 - last;
  return idle >= std::max(kMinEnd, (y.size() - begin) / kEndShare) && idle > kTimes * longest;
}

// What was born near the end may be alive only because it has not been freed yet (the last batch).
size_t first_fresh(size_t points, size_t begin) {
  return points - std::max<size_t>(1, (points - begin) / 16);
}

// The fresh counts for no more than the largest gain before.
std::vector<double> without_the_fresh(std::span<const double> survivors, size_t begin) {
  std::vector<double> result(survivors.begin(), survivors.end());
  const size_t fresh = first_fresh(survivors.size(), begin);
  double largest = 0;
  for (size_t i = begin; i < fresh; ++i) {
    largest = std::max(largest, survivors[i] - survivors[i - 1]);
  }
  for (size_t i = fresh; i < survivors.size(); ++i) {
    result[i] = result[i - 1] + std::min(largest, survivors[i] - survivors[i - 1]);
  }
  return result;
}

// Without counts a point at which something stayed is one event.
Pace pace_of(const GrowthCurves& curves, size_t begin) {
  const size_t points = curves.x.size();
  std::vector<double> births(curves.births.begin(), curves.births.end());
  if (births.empty()) {
    births.resize(points);
    for (size_t i = begin; i < points; ++i) {
      births[i] = curves.survivors[i] > curves.survivors[i - 1] ? 1 : 0;
    }
  }
  const size_t fresh = first_fresh(points, begin);
  const double most = *std::max_element(births.begin() + static_cast<ptrdiff_t>(begin),
                                        births.begin() + static_cast<ptrdiff_t>(fresh));
  for (size_t i = fresh; i < points; ++i) births[i] = std::min(births[i], most);
  return pace_of_births(curves.x, births, begin);
}

// Lower bound of the mean gain a unit of x, from the means of 8 batches in a row: right for gains
// that follow each other, too.
double batch_lower(std::span<const double> x, std::span<const double> y, size_t begin) {
  constexpr size_t kBatches = 8;
  const size_t points = y.size() - begin;
  const size_t batches = std::min(kBatches, points);
  std::array<double, kBatches> means{};
  double sum = 0;
  for (size_t b = 0; b < batches; ++b) {
    const size_t from = begin - 1 + points * b / batches;
    const size_t to = begin - 1 + points * (b + 1) / batches;
    means[b] = (y[to] - y[from]) / std::max(1e-300, x[to] - x[from]);
    sum += means[b];
  }
  const double count = static_cast<double>(batches);
  const double mean = sum / count;
  double squares = 0;
  for (size_t b = 0; b < batches; ++b) squares += (means[b] - mean) * (means[b] - mean);
  if (batches < 2) return mean;
  return mean - student95(batches - 1) * std::sqrt(squares / (count - 1) / count);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string_view shape_name(Shape shape) {
  switch (shape) {
    case Shape::kGrows:
      return "grows";
    case Shape::kGrowingBlock:
      return "growing block";
    case Shape::kTooShort:
      return "too short";
    case Shape::kFlat:
      return "flat";
    case Shape::kJumps:
      return "jumps";
    case Shape::kSaturates:
      return "saturates";
    case Shape::kReplaces:
      return "replaces";
    case Shape::kUnsteady:
      return "unsteady";
    case Shape::kUncertain:
      return "uncertain";
  }
  return "?";
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  Line line;
  const size_t points = std::min(x.size(), y.size());
  if (points < 2) return line;
  const double n = static_cast<double>(points);
  double mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < points; ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < points; ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  if (xx == 0) return line;
  line.slope = xy / xx;
  line.intercept = mean_y - line.slope * mean_x;
  double squares = 0, products = 0, before = 0;
  for (size_t i = 0; i < points; ++i) {
    const double residual = y[i] - line.intercept - line.slope * x[i];
    squares += residual * residual;
    if (i != 0) products += residual * before;
    before = residual;
  }
  line.r2 = yy == 0 ? 1 : std::max(0.0, 1 - squares / yy);
  if (points > 2) {
    line.error = std::sqrt(squares / (n - 2) / xx);
    // Effective sample size of residuals with autocorrelation r at lag 1: n (1 - r) / (1 + r).
    const double r = squares == 0 ? 0 : std::clamp(products / squares, 0.0, 0.99);
    line.error *= std::sqrt((1 + r) / (1 - r));
  }
  return line;
}

namespace {

Growth judge_survivors(const GrowthCurves& curves, size_t begin) {
  Growth growth;
  const std::span<const double> x = curves.x, live = curves.live;
  const std::vector<double> survivors = without_the_fresh(curves.survivors, begin);
  const Quarters quarters = quarters_of(survivors, begin);
  growth.total = survivors.back() - survivors[begin - 1];
  double largest = 0;
  for (size_t i = begin; i < survivors.size(); ++i) {
    const double gain = survivors[i] - survivors[i - 1];
    if (gain > 0) ++growth.births;
    largest = std::max(largest, gain);
  }
  if (growth.total <= 0) return growth;
  growth.shape = Shape::kJumps;
  if (largest > kJump * growth.total) return growth;
  if (growth.births < kMinBirths) return growth;
  if (quarters.gain[3] <= 0 || dies_away(quarters) || has_ended(survivors, begin)) {
    growth.shape = Shape::kSaturates;
    return growth;
  }
  for (const double gain : quarters.gain) {
    if (gain <= 0) {
      // Nothing of the first quarters is left: only the recent is alive.
      growth.shape = quarters.gain[0] <= 0 ? Shape::kReplaces : Shape::kJumps;
      return growth;
    }
  }
  if (haphazard(survivors, begin, growth.births)) {
    growth.shape = Shape::kUnsteady;
    return growth;
  }
  const Line line =
      fit_line(x.subspan(begin - 1), std::span<const double>(survivors).subspan(begin - 1));
  growth.slope = line.slope;
  growth.r2 = line.r2;
  growth.lower = batch_lower(x, survivors, begin);
  // From outside it must rise, too, and still in the second half: a store that replaces its
  // entries is full by then, and what stays hides how much leaves.
  const Line outside = fit_line(x.subspan(begin), live.subspan(begin));
  const size_t half = begin + (live.size() - begin) / 2;
  const Line late = fit_line(x.subspan(half), live.subspan(half));
  for (const Line& seen : {outside, late}) {
    if (seen.slope + kDoubt * seen.error < kContradicts * line.slope) {
      growth.shape = Shape::kReplaces;
      return growth;
    }
  }
  for (const size_t share : kNewestShares) {
    const size_t newest = (live.size() - begin) / share;
    if (newest < kMinNewest) break;
    const Line seen = fit_line(x.last(newest), live.last(newest));
    const Line stays = fit_line(x.last(newest), std::span<const double>(survivors).last(newest));
    if (seen.slope + kDoubtNewest * seen.error < kContradicts * stays.slope) {
      growth.shape = Shape::kReplaces;
      return growth;
    }
  }
  growth.certain = outside.slope - 2 * outside.error > 0;
  growth.pace = pace_of(curves, begin);
  growth.shape = growth.lower > 0 ? Shape::kGrows : Shape::kUnsteady;
  return growth;
}

// A leak that begins in the middle of the run: judged from there, if nothing of its size was there
// before and left (a store that was emptied and fills again looks the same from there on).
Growth judge_late(const GrowthCurves& curves, size_t begin) {
  const std::span<const double> live = curves.live, survivors = curves.survivors;
  size_t onset = begin, longest = 0;
  for (size_t i = begin, last = begin - 1; i < survivors.size(); ++i) {
    if (survivors[i] <= survivors[i - 1]) continue;
    if (i - last > longest) {
      longest = i - last;
      onset = i;
    }
    last = i;
  }
  const size_t points = survivors.size() - onset;
  if (points < std::max(kMinLate, (survivors.size() - begin) / kLateShare)) return {};
  const double total = survivors.back() - survivors[onset - 1];
  const auto first = live.begin() + static_cast<ptrdiff_t>(begin) - 1;
  const auto base = live.begin() + static_cast<ptrdiff_t>(onset) - 1;
  if (survivors[onset - 1] - survivors[begin - 1] > kBefore * total ||
      *std::max_element(first, base + 1) - *base > kBefore * total) {
    return {};
  }
  Growth late = judge_survivors(curves, onset);
  const size_t third = onset + points * 2 / 3;
  const bool seen =
      live.back() - live[onset - 1] > kSteady * total &&
      live.back() - live[third] > kContradicts * (survivors.back() - survivors[third]);
  if (!seen || !late.certain || late.births < kManyBirths || late.r2 < kMinR2Late) return {};
  late.late = true;
  return late;
}

Growth judge_live(std::span<const double> x, std::span<const double> live, size_t begin) {
  Growth growth;
  const size_t points = live.size() - begin;
  growth.total = live.back() - live[begin - 1];
  double way = 0, largest = 0;
  for (size_t i = begin; i < live.size(); ++i) {
    const double gain = live[i] - live[i - 1];
    way += std::fabs(gain);
    largest = std::max(largest, gain);
    if (gain > 0) ++growth.births;
  }
  if (growth.total <= 0) return growth;
  growth.shape = Shape::kUnsteady;
  if (growth.total < kSteady * way) return growth;
  growth.shape = Shape::kJumps;
  if (largest > kJump * growth.total || growth.births < kMinBirths ||
      haphazard(live, begin, growth.births)) {
    return growth;
  }
  const Quarters quarters = quarters_of(live, begin);
  growth.shape = Shape::kSaturates;
  if (quarters.gain[3] <= 0 || dies_away(quarters) || has_ended(live, begin)) return growth;
  growth.shape = Shape::kUnsteady;
  if (*std::min_element(quarters.gain.begin(), quarters.gain.end()) <= 0) return growth;
  const Line line = fit_line(x.subspan(begin - 1), live.subspan(begin - 1));
  growth.slope = line.slope;
  growth.r2 = line.r2;
  growth.lower = line.slope - student95(points - 1) * line.error;
  if (line.r2 < (points < kShort ? kMinR2Short : kMinR2)) return growth;
  if (line.slope < kMinT * line.error || growth.lower <= 0) return growth;
  growth.certain = true;
  growth.pace = pace_of_level(x, live, begin);
  growth.shape = Shape::kGrowingBlock;
  return growth;
}

}  // namespace

Growth judge_growth(const GrowthCurves& all, size_t begin) {
  const size_t points = std::min({all.x.size(), all.live.size(), all.survivors.size()});
  if (begin == 0 || begin > points || points - begin < kMinSteps) {
    return {.shape = Shape::kTooShort};
  }
  const GrowthCurves curves{
      all.x.first(points), all.live.first(points), all.survivors.first(points),
      all.births.size() < points ? std::span<const double>{} : all.births.first(points),
      all.gain_error};
  if (curves.gain_error > 0 &&
      curves.live.back() - curves.live[begin - 1] < kSamplingDoubt * curves.gain_error) {
    return {.shape = Shape::kUncertain};
  }
  const Growth piled = judge_survivors(curves, begin);
  if (piled.grows()) return piled;
  const Growth block = judge_live(curves.x, curves.live, begin);
  if (block.grows()) return block;
  const Growth late = judge_late(curves, begin);
  if (late.grows()) return late;
  return piled.shape == Shape::kFlat ? block : piled;
}

size_t warmup_points(std::span<const double> total) {
  constexpr size_t kLeast = 2;
  const size_t points = total.size();
  if (points < 4 * kLeast) return std::min(kLeast, points);
  // The second half's straight line, and how far its points lie from it.
  const size_t half = points / 2;
  std::vector<double> x(points);
  std::iota(x.begin(), x.end(), 0.0);
  std::vector<double> slopes;
  for (size_t i = half; i < points; ++i) {
    for (size_t j = i + 1; j < points; ++j) {
      slopes.push_back((total[j] - total[i]) / static_cast<double>(j - i));
    }
  }
  const double slope = median(std::move(slopes));  // Theil and Sen: single peaks do not matter
  std::vector<double> levels;
  for (size_t i = half; i < points; ++i) levels.push_back(total[i] - slope * x[i]);
  const double level = median(levels);
  for (double& value : levels) value = std::fabs(value - level);
  const auto [low, high] = std::minmax_element(total.begin(), total.end());
  const double tolerance =
      std::max({5 * median(levels), 0.01 * (*high - *low), 0.001 * std::fabs(*high)});
  size_t settled = points;
  for (size_t i = half; i-- > 0;) {
    if (std::fabs(total[i] - slope * x[i] - level) > tolerance) break;
    settled = i;
  }
  // The first settled point is the base line of what comes after.
  return settled < points / 4 ? std::max(kLeast, settled + 1) : kLeast;
}

}  // namespace memscope
