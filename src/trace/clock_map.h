// Ticks of a trace's counter -> ns since the epoch.
//
//  * Between anchors the map is linear, outside them it goes on with the mean rate; it follows the
//    monotonic clock, which NTP slews but nothing sets back, and is tied to real time once, at the
//    first anchor. So it is monotone whatever happened to the real-time clock.
//  * It is a function: equal ticks give equal times. Never 0, which means "unknown" elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/layout.h"

namespace memscope {

__extension__ using Int128 = __int128;  // products of ticks and rates

struct ClockAnchor {
  uint64_t ticks = 0, mono_ns = 0, real_ns = 0;
};

class ClockMap {
 public:
  // A map for ticks that are ns since the epoch.
  ClockMap();
  // `anchors` in any order; those that contradict the ones before them are left out. The first one
  // of the vector (the log's header) is the one that ties the map to real time.
  ClockMap(TickSource source, std::vector<ClockAnchor> anchors);

  // `hint` is where the last look-up ended: callers with runs of near ticks keep one.
  uint64_t real_ns(uint64_t ticks, size_t& hint) const {
    if (ticks < segments_[hint].begin || ticks >= segments_[hint].end) hint = find(ticks);
    return segments_[hint].real_ns(ticks);
  }
  uint64_t real_ns(uint64_t ticks) const { return segments_[find(ticks)].real_ns(ticks); }

  // The rate is a guess (1 tick = 1 ns): there was only one anchor.
  bool rate_unknown() const { return rate_unknown_; }

 private:
  struct Segment {
    uint64_t begin, end;  // ticks, [begin, end); the last one's end is ~0
    uint64_t origin;      // ticks at which time is base_ns
    int64_t base_ns;
    uint64_t rate;  // ns per tick, 32.32 fixed point

    uint64_t real_ns(uint64_t ticks) const {
      // Rounds towards the past on both sides of the origin, so that it stays monotone.
      const Int128 delta = static_cast<Int128>(ticks) - static_cast<Int128>(origin);
      const Int128 ns = base_ns + ((delta * static_cast<Int128>(rate)) >> 32);
      if (ns < 1) return 1;
      return ns > INT64_MAX ? uint64_t{INT64_MAX} : static_cast<uint64_t>(ns);
    }
  };
  size_t find(uint64_t ticks) const;

  std::vector<Segment> segments_;
  bool rate_unknown_ = false;
};

}  // namespace memscope
