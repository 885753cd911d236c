#include "replay/steps.h"

#include <algorithm>

#include "replay/history.h"

namespace memscope {
namespace {

constexpr uint64_t kNever = ~uint64_t{0};
// Half a gigabyte of ends: two years of a step a second. More is damage.
constexpr uint64_t kMaxSteps = uint64_t{1} << 26;

// Boundaries of one thread are in order; those of several may be a little out of it.
std::vector<uint64_t> sorted(std::vector<uint64_t> times) {
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

std::string_view steps_from_name(StepsFrom from) {
  switch (from) {
    case StepsFrom::kTime:
      return "time";
    case StepsFrom::kOptimizer:
      return "optimizer";
    case StepsFrom::kMstx:
      return "mstx";
    case StepsFrom::kApi:
      return "api";
    case StepsFrom::kNone:
      break;
  }
  return "none";
}

void StepFinder::add_folded(const Event& event) {
  if (event.record_kind == static_cast<uint8_t>(Kind::kFolded)) {
    const auto folded = decode_record<FoldedRecord>(event.words);
    if (!folded || folded->steps > kMaxSteps) return;
    folded_.any = true;
    folded_.source = folded->source < kStepsFromCount ? static_cast<StepsFrom>(folded->source)
                                                      : StepsFrom::kNone;
    folded_.optimizer = folded->optimizer;
    folded_.to = event.time;
    folded_.width = folded->width_ns;
    folded_.steps = static_cast<uint32_t>(folded->steps);
    return;
  }
  const auto step = decode_record<FoldedStepRecord>(event.words);
  if (!step) return;
  if (step->optimizer != 0) {
    folded_.others[step->optimizer] = {step->optimizer, step->count, event.time};
  } else if (step->step == 0) {
    folded_.begin = event.time;
  } else if (step->step <= kMaxSteps &&
             (folded_.ends.empty() || step->step > folded_.ends.back().first)) {
    folded_.ends.emplace_back(static_cast<uint32_t>(step->step), event.time);
  }
}

void StepFinder::add(const Event& event) {
  if (event.kind != EventKind::kRecord) return;
  if (event.record_kind == static_cast<uint8_t>(Kind::kFolded) ||
      event.record_kind == static_cast<uint8_t>(Kind::kFoldedStep)) {
    add_folded(event);
    return;
  }
  if (event.record_kind == static_cast<uint8_t>(Kind::kStep)) {
    const auto step = decode_record<StepRecord>(event.words);
    if (!step) return;
    switch (static_cast<StepSource>(step->source)) {
      case StepSource::kApi:
        api_.push_back(event.time);
        break;
      case StepSource::kMstxStart:
        mstx_begins_.push_back(event.time);
        break;
      case StepSource::kMstxEnd:
        mstx_last_end_ = std::max(mstx_last_end_, event.time);
        break;
      case StepSource::kOptimizer:
        optimizers_[step->optimizer].push_back(event.time);
        break;
    }
  } else if (event.record_kind == static_cast<uint8_t>(Kind::kMark)) {
    const auto mark = decode_record<MarkRecord>(event.words);
    if (!mark) return;
    if (mark->action == 1 && mark->text == "step start") {
      mstx_begins_.push_back(event.time);
      open_ranges_[mark->range] = true;
    } else if (mark->action == 2 && open_ranges_.erase(mark->range) != 0) {
      // Any other range that ends inside a step does not end it.
      mstx_last_end_ = std::max(mstx_last_end_, event.time);
    }
  }
}

// `open_end`: the last range goes on until the next one begins.
StepPlan StepFinder::mstx_plan(bool open_end) const {
  StepPlan plan;
  plan.from = StepsFrom::kMstx;
  const std::vector<uint64_t> begins = sorted(mstx_begins_);
  plan.begin = begins.front();
  for (size_t k = 1; k < begins.size(); ++k) plan.ends.push_back(begins[k] - 1);
  // The last range: over at its end; one that never ended (a killed run) stays open.
  if (!open_end && mstx_last_end_ >= begins.back()) plan.ends.push_back(mstx_last_end_);
  return plan;
}

std::vector<StepFinder::OptimizerSteps> StepFinder::optimizers(uint64_t until) const {
  tsl::robin_map<uint64_t, OptimizerSteps> found = folded_.others;
  if (folded_.source == StepsFrom::kOptimizer && !folded_.ends.empty()) {
    found[folded_.optimizer] = {folded_.optimizer, folded_.steps, folded_.ends.back().second};
  }
  for (const auto& [serial, times] : optimizers_) {
    OptimizerSteps& steps = found[serial];
    steps.serial = serial;
    for (const uint64_t time : times) {
      if (time > until) continue;
      ++steps.count;
      steps.last = std::max(steps.last, time);
    }
  }
  std::vector<OptimizerSteps> list;
  for (const auto& [serial, steps] : found) {
    if (steps.count != 0) list.push_back(steps);
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.serial < b.serial; });
  return list;
}

uint64_t StepFinder::chosen_optimizer(TimeRange range) const {
  const uint64_t length = range.last > range.first ? range.last - range.first : 0;
  const uint64_t last_quarter = range.last - length / 4;
  OptimizerSteps chosen;
  for (const OptimizerSteps& steps : optimizers(kNever)) {
    if (steps.count < kMinOptimizerSteps || steps.last < last_quarter) continue;
    if (chosen.count == 0 || steps.count < chosen.count) chosen = steps;
  }
  return chosen.serial;
}

StepPlan StepFinder::fresh_plan(TimeRange range, bool open_end) const {
  StepPlan plan;
  if (!api_.empty()) {
    plan.from = StepsFrom::kApi;
    plan.ends = sorted(api_);
    return plan;
  }
  if (!mstx_begins_.empty()) return mstx_plan(open_end);
  const auto optimizer = optimizers_.find(chosen_optimizer(range));
  if (optimizer != optimizers_.end()) {
    plan.from = StepsFrom::kOptimizer;
    plan.optimizer = optimizer->first;
    plan.ends = sorted(optimizer->second);
    return plan;
  }
  const uint64_t length = range.last > range.first ? range.last - range.first : 0;
  if (length >= kMinTimedNs) {
    plan.from = StepsFrom::kTime;
    for (uint64_t i = 1; i < kWindows; ++i) {
      plan.ends.push_back(range.first + length / kWindows * i);
    }
    plan.ends.push_back(range.last);
  }
  return plan;
}

// At most `most` whole windows of a grid: that of the folded past, else a new one.
StepPlan StepFinder::windows(TimeRange range, uint32_t most) const {
  constexpr uint64_t kFinest = uint64_t{1} << 20;  // ns
  StepPlan plan;
  plan.from = StepsFrom::kTime;
  const bool grid = folded_.width != 0 && !folded_.ends.empty();
  const uint64_t width = grid ? folded_.width : kFinest;
  const uint64_t origin =
      grid ? folded_.ends.front().second - width * folded_.ends.front().first : range.first;
  const uint64_t length = range.last > origin ? range.last - origin : 0;
  while (length / width / plan.stride >= most) plan.stride *= 2;
  plan.width = width * plan.stride;
  for (uint64_t i = plan.stride; i * width <= length; i += plan.stride) {
    plan.ends.push_back(origin + i * width);
  }
  if (!grid) {
    plan.stride = 1;
    return plan;
  }
  for (const auto& [step, end] : folded_.ends) {
    if (step % plan.stride == 0 && step / plan.stride <= plan.ends.size()) {
      plan.ends[step / plan.stride - 1] = end;
    }
  }
  plan.folded =
      static_cast<uint32_t>(std::min<uint64_t>(folded_.steps / plan.stride, plan.count()));
  plan.has_curves = true;
  return plan;
}

// The steps of the folded past.
StepPlan StepFinder::folded_plan() const {
  StepPlan plan;
  plan.from = folded_.source;
  plan.begin = folded_.begin;
  plan.folded = folded_.steps;
  plan.has_curves = true;
  plan.ends.reserve(folded_.steps);
  uint64_t before = folded_.begin;
  for (const auto& [step, end] : folded_.ends) {
    const uint64_t known = plan.ends.size();
    if (step <= known || step > folded_.steps) continue;
    if (before == 0 || before > end) before = end;
    for (uint64_t k = known + 1; k <= step; ++k) {
      plan.ends.push_back(before + static_cast<uint64_t>(static_cast<double>(end - before) *
                                                         static_cast<double>(k - known) /
                                                         static_cast<double>(step - known)));
    }
    plan.ends.back() = end;
    before = end;
  }
  plan.folded = plan.count();  // fewer where the trace is damaged
  return plan;
}

StepPlan StepFinder::plan(TimeRange range) const {
  if (!folded_.any) return fresh_plan(range, false);
  const bool by_windows = folded_.source <= StepsFrom::kTime;
  const bool stronger = (!api_.empty() && folded_.source < StepsFrom::kApi) ||
                        (!mstx_begins_.empty() && folded_.source < StepsFrom::kMstx);
  if (by_windows || stronger) {
    StepPlan plan = fresh_plan(range, false);
    if (plan.from == StepsFrom::kTime) return windows(range, kWindows);
    plan.folded = static_cast<uint32_t>(
        std::upper_bound(plan.ends.begin(), plan.ends.end(), folded_.to) - plan.ends.begin());
    return plan;
  }
  StepPlan plan = folded_plan();
  std::vector<uint64_t> more;
  if (folded_.source == StepsFrom::kApi) {
    more = sorted(api_);
  } else if (folded_.source == StepsFrom::kMstx) {
    for (const uint64_t begin : sorted(mstx_begins_)) more.push_back(begin - 1);
    const uint64_t last = more.empty() ? folded_.to : more.back();
    if (mstx_last_end_ > last) more.push_back(mstx_last_end_);
  } else {
    uint64_t serial = chosen_optimizer(range);
    if (serial == 0) serial = folded_.optimizer;
    if (serial != folded_.optimizer && !folded_.others.contains(serial)) {
      return fresh_plan(range, false);  // it began after the folded past
    }
    plan.optimizer = serial;
    const auto times = optimizers_.find(serial);
    if (times != optimizers_.end()) more = sorted(times->second);
  }
  plan.ends.insert(plan.ends.end(), more.begin(), more.end());
  return plan;
}

StepPlan StepFinder::fold_plan(TimeRange range) const {
  StepPlan chosen = folded_.any ? plan(range) : fresh_plan(range, true);
  if (chosen.from <= StepsFrom::kTime) return windows(range, Buckets::kMaxBuckets);
  if (chosen.from == StepsFrom::kMstx && !chosen.ends.empty() &&
      chosen.ends.back() == mstx_last_end_) {
    chosen.ends.pop_back();  // the range is over, the gap after it is not
  }
  return chosen;
}

}  // namespace memscope
