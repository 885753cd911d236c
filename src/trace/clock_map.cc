#include "trace/clock_map.h"

#include <algorithm>

namespace memscope {
namespace {

constexpr uint64_t kOne = uint64_t{1} << 32;
// Two clocks are read one after the other, a microsecond apart at worst; over this distance that
// is 1e-4 of the rate.
constexpr uint64_t kMinimumDistanceNs = 10'000'000;
// From 1 kHz to 1000 GHz: what is outside is damage.
constexpr uint64_t kSlowest = kOne * 1'000'000, kFastest = kOne / 1000;
constexpr uint64_t kLatestNs = uint64_t{1} << 62;

uint64_t rate_between(const ClockAnchor& a, const ClockAnchor& b) {
  // Less than 2^62 ns, so the product fits.
  const Int128 ns = static_cast<Int128>(b.mono_ns - a.mono_ns) << 32;
  const Int128 rate = ns / static_cast<Int128>(b.ticks - a.ticks);
  return static_cast<uint64_t>(std::min<Int128>(rate, kSlowest + 1));
}

bool usable(const ClockAnchor& a) {
  return a.mono_ns < kLatestNs && a.real_ns < kLatestNs;
}

// In order of ticks, far enough apart, and at believable rates.
std::vector<ClockAnchor> thinned(std::vector<ClockAnchor> anchors) {
  std::stable_sort(anchors.begin(), anchors.end(),
                   [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  std::vector<ClockAnchor> kept;
  const auto follows = [&](const ClockAnchor& anchor, uint64_t distance) {
    if (kept.empty()) return true;
    const ClockAnchor& last = kept.back();
    if (anchor.ticks <= last.ticks || anchor.mono_ns < last.mono_ns + distance) return false;
    const uint64_t rate = rate_between(last, anchor);
    return rate >= kFastest && rate <= kSlowest;
  };
  for (const ClockAnchor& anchor : anchors) {
    if (follows(anchor, kMinimumDistanceNs)) kept.push_back(anchor);
  }
  // A very short run: a rough rate is better than none.
  if (kept.size() == 1 && follows(anchors.back(), 1)) kept.push_back(anchors.back());
  return kept;
}

}  // namespace

ClockMap::ClockMap() : segments_{{0, ~uint64_t{0}, 0, 0, kOne}} {}

ClockMap::ClockMap(TickSource source, std::vector<ClockAnchor> anchors) : ClockMap() {
  std::erase_if(anchors, [](const ClockAnchor& a) { return !usable(a); });
  if (anchors.empty()) {
    rate_unknown_ = source != TickSource::kMonotonic;
    return;
  }
  const int64_t to_real =
      static_cast<int64_t>(anchors[0].real_ns) - static_cast<int64_t>(anchors[0].mono_ns);
  if (source == TickSource::kMonotonic) {  // ticks are the monotonic clock itself
    segments_[0].base_ns = to_real;
    return;
  }
  const std::vector<ClockAnchor> kept = thinned(std::move(anchors));
  const auto base = [&](const ClockAnchor& a) { return static_cast<int64_t>(a.mono_ns) + to_real; };
  if (kept.size() == 1) {
    rate_unknown_ = true;
    segments_[0].origin = kept[0].ticks;
    segments_[0].base_ns = base(kept[0]);
    return;
  }
  segments_.clear();
  const uint64_t mean = rate_between(kept.front(), kept.back());
  segments_.push_back({0, kept[0].ticks, kept[0].ticks, base(kept[0]), mean});
  for (size_t i = 0; i + 1 < kept.size(); ++i) {
    segments_.push_back({kept[i].ticks, kept[i + 1].ticks, kept[i].ticks, base(kept[i]),
                         rate_between(kept[i], kept[i + 1])});
  }
  segments_.push_back(
      {kept.back().ticks, ~uint64_t{0}, kept.back().ticks, base(kept.back()), mean});
}

size_t ClockMap::find(uint64_t ticks) const {
  const auto after = std::upper_bound(segments_.begin() + 1, segments_.end(), ticks,
                                      [](uint64_t t, const Segment& s) { return t < s.begin; });
  return static_cast<size_t>(after - segments_.begin()) - 1;
}

}  // namespace memscope
