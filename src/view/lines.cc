#include "view/lines.h"

#include <cmath>
#include <limits>

#include "view/wire.h"

namespace memscope::view {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A value held from each of some moments on.
template <typename TimeOf, typename ValueOf>
Line stairs(size_t count, TimeOf time_of, ValueOf value_of, const TimeWindow& window) {
  Line line(window.width);
  // The first change at or after the window's begin.
  size_t at = 0;
  for (size_t size = count; size != 0;) {
    const size_t half = size / 2;
    if (time_of(at + half) < window.pixel(0)) {
      at += half + 1;
      size -= half + 1;
    } else {
      size = half;
    }
  }
  double now = at == 0 ? kNone : value_of(at - 1);
  for (uint32_t i = 0; i < window.width; ++i) {
    double least = now, most = now;
    const uint64_t end = window.pixel(i + 1);
    for (; at < count && time_of(at) < end; ++at) {
      now = value_of(at);
      least = std::fmin(least, now);  // of a number and NaN: the number
      most = std::fmax(most, now);
    }
    line.least[i] = least;
    line.most[i] = most;
    line.last[i] = now;
  }
  return line;
}

// As stairs, where a change belongs to a state of the pool.
Line changes_line(const PoolIndex& pool, const Changes& changes, const TimeWindow& window) {
  return stairs(
      changes.states.size(), [&](size_t i) { return pool.time_of_state(changes.states[i]); },
      [&](size_t i) { return static_cast<double>(changes.values[i]); }, window);
}

}  // namespace

Line::Line(uint32_t width) : least(width, kNone), most(width, kNone), last(width, kNone) {}

Line allocated_line(const PoolIndex& pool, const TimeWindow& window) {
  Line line(window.width);
  uint32_t first = pool.state_before(window.pixel(0));
  const uint32_t end = pool.state_before(window.pixel(window.width));
  double now = static_cast<double>(pool.bytes_in(first));
  for (uint32_t i = 0; i < window.width; ++i) {
    const auto* from = pool.time.begin() + first;
    const auto next = static_cast<uint32_t>(
        std::lower_bound(from, pool.time.begin() + end, window.pixel(i + 1)) - pool.time.begin());
    if (next == first) {
      line.least[i] = line.most[i] = line.last[i] = now;
      continue;
    }
    const auto [most, least] = pool.extremes(first, next);
    now = static_cast<double>(pool.bytes_in(next));
    line.least[i] = static_cast<double>(least.bytes);
    line.most[i] = static_cast<double>(most.bytes);
    line.last[i] = now;
    first = next;
  }
  return line;
}

Line reserved_line(const PoolIndex& pool, const TimeWindow& window) {
  return changes_line(pool, pool.reserved, window);
}

Line reported_line(const PoolIndex& pool, const TimeWindow& window) {
  // What is not tracked hardly changes: its extremes and those of the blocks add up.
  Line line = allocated_line(pool, window);
  const Line untracked = changes_line(pool, pool.untracked, window);
  for (uint32_t i = 0; i < window.width; ++i) {
    line.least[i] += untracked.least[i];
    line.most[i] += untracked.most[i];
    line.last[i] += untracked.last[i];
  }
  return line;
}

Line counter_line(const CounterSeen& counter, const TimeWindow& window) {
  return stairs(
      counter.times.size(), [&](size_t i) { return counter.times[i]; },
      [&](size_t i) { return static_cast<double>(counter.values[i]); }, window);
}

std::string lines_bytes(const std::vector<Line>& lines, uint32_t width) {
  WireWriter out;
  out.number(uint32_t{'M' | 'S' << 8 | 'L' << 16 | '1' << 24});
  out.number(static_cast<uint32_t>(lines.size()));
  out.number(width);
  out.number(uint32_t{0});
  for (const Line& line : lines) {
    out.array<double>(width, [&](size_t i) { return line.least[i]; });
    out.array<double>(width, [&](size_t i) { return line.most[i]; });
    out.array<double>(width, [&](size_t i) { return line.last[i]; });
  }
  return out.take();
}

}  // namespace memscope::view
