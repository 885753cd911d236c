// Where the steps of a run end: chosen once, before its blocks are replayed.
//
//   step 0      | step 1          | step 2          |  open
//   ------------+-----------------+-----------------+---------
//   before start|            ends[0]           ends[1]
//
// A folded past (fold.h) has chosen already: its steps go on with those of the same source. A
// stronger source that began later takes over, as if it had been known from the beginning.
//
// The source is the strongest one there is: `step()` of the API; else mstx ranges `step start`
// (range k and the gap after it is step k); else the steps of one optimizer (of those with at least
// 8 steps that still step in the last quarter of the run, the one that steps least often); else 32
// equal windows of time, where the run lasts 30 s or longer; else none.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
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
  // Steps that were over where the folded past ends. Of their ends only those of buckets are known;
  // the others lie evenly between them.
  uint32_t folded = 0;
  // Whether the past was folded by these steps, so that its curves are of them; `stride` of the
  // windows of time that it was folded by are one of these.
  bool has_curves = false;
  uint64_t stride = 1;
  uint64_t width = 0;      // ns of a window, where the plan is a grid of time
  uint64_t optimizer = 0;  // whose steps these are

  uint32_t count() const { return static_cast<uint32_t>(ends.size()); }
};

class StepFinder {
 public:
  static constexpr uint64_t kKinds = kind_bit(Kind::kStep) | kind_bit(Kind::kMark) |
                                     kind_bit(Kind::kFolded) | kind_bit(Kind::kFoldedStep);
  static constexpr uint32_t kMinOptimizerSteps = 8;
  static constexpr uint32_t kWindows = 32;
  static constexpr uint64_t kMinTimedNs = 30'000'000'000;

  // A kRecord event; kinds other than kKinds are ignored.
  void add(const Event& event);
  // Whether the plan depends on when the run began and ended.
  bool needs_range() const { return api_.empty() && mstx_begins_.empty(); }
  StepPlan plan(TimeRange range) const;
  // By which the past up to range.last is folded: only boundaries that will not change, and where
  // there are no steps, windows of a grid of which later folds and plans can take every second,
  // fourth, ... boundary.
  StepPlan fold_plan(TimeRange range) const;
  struct OptimizerSteps {
    uint64_t serial = 0, count = 0, last = 0;
  };
  // All that have stepped up to `until`.
  std::vector<OptimizerSteps> optimizers(uint64_t until) const;
  // That whose steps plan() takes; 0 where it takes none's.
  uint64_t chosen_optimizer(TimeRange range) const;

 private:
  struct Folded {
    bool any = false;
    StepsFrom source = StepsFrom::kNone;
    uint64_t optimizer = 0, begin = 0, to = 0, width = 0;
    uint32_t steps = 0;
    std::vector<std::pair<uint32_t, uint64_t>> ends;  // a bucket's last step, its end
    tsl::robin_map<uint64_t, OptimizerSteps> others;
  };
  StepPlan fresh_plan(TimeRange range, bool open_end) const;
  StepPlan mstx_plan(bool open_end) const;
  StepPlan windows(TimeRange range, uint32_t most) const;
  StepPlan folded_plan() const;
  void add_folded(const Event& event);

  std::vector<uint64_t> api_;
  std::vector<uint64_t> mstx_begins_;
  uint64_t mstx_last_end_ = 0;
  tsl::robin_map<uint64_t, bool> open_ranges_;  // ids of `step start` marks
  tsl::robin_map<uint64_t, std::vector<uint64_t>> optimizers_;
  Folded folded_;
};

}  // namespace memscope
