// Curves over time: the least, the most and the last value of every pixel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "view/input_index.h"

namespace memscope::view {

struct TimeWindow {
  int64_t t0 = 0, t1 = 0;  // ns since the input's origin, t0 < t1
  uint32_t width = 0;      // pixels, at least 1
  // Where pixel i begins; that of `width` is t1. Nothing happens before 0.
  uint64_t pixel(uint32_t i) const {
    const auto span = static_cast<double>(t1 - t0);
    const double at = static_cast<double>(t0) + span * i / width;
    return at <= 0 ? 0 : static_cast<uint64_t>(at);
  }
};

struct Line {
  std::vector<double> least, most, last;  // NaN where there is no value yet
  explicit Line(uint32_t width);
};

// The live blocks' bytes: the block graph's height.
Line allocated_line(const PoolIndex& pool, const TimeWindow& window);
// What the pool says of itself.
Line reserved_line(const PoolIndex& pool, const TimeWindow& window);
Line reported_line(const PoolIndex& pool, const TimeWindow& window);
Line counter_line(const CounterSeen& counter, const TimeWindow& window);

std::string lines_bytes(const std::vector<Line>& lines, uint32_t width);

}  // namespace memscope::view
