// How far a long command is: one line on stderr that rewrites itself, only on a terminal and only
// from the second second on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace memscope::cli {

class Progress {
 public:
  Progress();
  void show(uint64_t done, uint64_t all);
  // "reading 40 %"
  void share(std::string_view what, double done);
  void clear();  // the line goes away

 private:
  void line(std::string_view text);

  using Clock = std::chrono::steady_clock;
  bool terminal_, shown_ = false;
  Clock::time_point next_;
};

}  // namespace memscope::cli
