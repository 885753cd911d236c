// What a reader could not use, in words: one line each, with file, offset and reason. Reading goes
// on with what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tsl/robin_set.h"

namespace memscope {

class DamageLog {
 public:
  static constexpr size_t kKept = 20;  // lines; the rest is only counted

  enum class Lost : uint8_t { kInTheMiddle, kAtTheEnd };

  // The same line again is the same damage, met by another pass.
  void add(std::string line, uint64_t lost_bytes = 0, Lost where = Lost::kInTheMiddle) {
    if (seen_.size() < kSeen && !seen_.insert(std::hash<std::string>{}(line)).second) return;
    lost_bytes_ += lost_bytes;
    if (where == Lost::kInTheMiddle) hole_bytes_ += lost_bytes;
    if (lines_.size() < kKept) {
      lines_.push_back(std::move(line));
    } else {
      ++more_;
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }
  uint64_t more() const { return more_; }  // lines that were not kept
  uint64_t lost_bytes() const { return lost_bytes_; }
  uint64_t hole_bytes() const { return hole_bytes_; }  // of them, with events after them
  bool empty() const { return lines_.empty(); }

 private:
  static constexpr size_t kSeen = 1 << 16;
  tsl::robin_set<size_t> seen_;
  std::vector<std::string> lines_;
  uint64_t more_ = 0;
  uint64_t lost_bytes_ = 0, hole_bytes_ = 0;
};

}  // namespace memscope
