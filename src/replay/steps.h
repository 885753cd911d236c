// Where the steps of a run end: chosen once, before its blocks are replayed.
//
//   step 0      | step 1          | step 2          |  open
//   ------------+-----------------+-----------------+---------
//   before start|            ends[0]           ends[1]
//
// The source is the strongest one there is: `step()` of the API; else mstx ranges `step start`
// (range k and the gap after it is step k); else the steps of one optimizer (of those with at least
// 8 steps that still step in the last quarter of the run, the one that steps least often); else 32
// equal windows of time, where the run lasts 30 s or longer; else none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "replay/event_source.h"
#include "tsl/robin_map.h"

namespace memscope {

// Weakest first.
enum class StepsFrom : uint8_t { kNone, kTime, kOptimizer, kMstx, kApi };
inline constexpr size_t kStepsFromCount = 5;
// As in `analyze --json`: "none", "time", ...
std::string_view steps_from_name(StepsFrom from);

struct StepPlan {
  StepsFrom from = StepsFrom::kNone;
  uint64_t begin = 0;          // step 1 begins here; 0 = with the recording
  std::vector<uint64_t> ends;  // ends[k - 1] is the last nanosecond of step k, ascending

  uint32_t count() const { return static_cast<uint32_t>(ends.size()); }
};

class StepFinder {
 public:
  static constexpr uint64_t kKinds = kind_bit(Kind::kStep) | kind_bit(Kind::kMark);
  static constexpr uint32_t kMinOptimizerSteps = 8;
  static constexpr uint32_t kWindows = 32;
  static constexpr uint64_t kMinTimedNs = 30'000'000'000;

  // A kRecord event; kinds other than kKinds are ignored.
  void add(const Event& event);
  // Whether the plan depends on when the run began and ended.
  bool needs_range() const { return api_.empty() && mstx_begins_.empty(); }
  StepPlan plan(TimeRange range) const;

 private:
  StepPlan mstx_plan() const;

  std::vector<uint64_t> api_;
  std::vector<uint64_t> mstx_begins_;
  uint64_t mstx_last_end_ = 0;
  tsl::robin_map<uint64_t, bool> open_ranges_;  // ids of `step start` marks
  tsl::robin_map<uint64_t, std::vector<uint64_t>> optimizers_;
};

}  // namespace memscope
