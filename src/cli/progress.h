// How far a long command is: one line on stderr that rewrites itself, only on a terminal and only
// from the second second on.
#pragma once

#include <chrono>
#include <cstdint>

namespace memscope::cli {

class Progress {
 public:
  Progress();
  void show(uint64_t done, uint64_t all);
  void clear();  // the line goes away

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, shown_ = false;
  Clock::time_point next_;
};

}  // namespace memscope::cli
