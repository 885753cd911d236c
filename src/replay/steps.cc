#include "replay/steps.h"

#include <algorithm>

namespace memscope {
namespace {

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

void StepFinder::add(const Event& event) {
  if (event.kind != EventKind::kRecord) return;
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

StepPlan StepFinder::mstx_plan() const {
  StepPlan plan;
  plan.from = StepsFrom::kMstx;
  const std::vector<uint64_t> begins = sorted(mstx_begins_);
  plan.begin = begins.front();
  for (size_t k = 1; k < begins.size(); ++k) plan.ends.push_back(begins[k] - 1);
  // The last range: over at its end; one that never ended (a killed run) stays open.
  if (mstx_last_end_ >= begins.back()) plan.ends.push_back(mstx_last_end_);
  return plan;
}

StepPlan StepFinder::plan(TimeRange range) const {
  StepPlan plan;
  if (!api_.empty()) {
    plan.from = StepsFrom::kApi;
    plan.ends = sorted(api_);
    return plan;
  }
  if (!mstx_begins_.empty()) return mstx_plan();

  const uint64_t length = range.last > range.first ? range.last - range.first : 0;
  const uint64_t last_quarter = range.last - length / 4;
  const std::vector<uint64_t>* chosen = nullptr;
  uint64_t chosen_serial = 0;
  for (const auto& [serial, times] : optimizers_) {
    if (times.size() < kMinOptimizerSteps) continue;
    if (*std::max_element(times.begin(), times.end()) < last_quarter) continue;
    const bool rarer = chosen == nullptr || times.size() < chosen->size() ||
                       (times.size() == chosen->size() && serial < chosen_serial);
    if (rarer) {
      chosen = &times;
      chosen_serial = serial;
    }
  }
  if (chosen != nullptr) {
    plan.from = StepsFrom::kOptimizer;
    plan.ends = sorted(*chosen);
    return plan;
  }
  if (length >= kMinTimedNs) {
    plan.from = StepsFrom::kTime;
    for (uint64_t i = 1; i < kWindows; ++i) {
      plan.ends.push_back(range.first + length / kWindows * i);
    }
    plan.ends.push_back(range.last);
  }
  return plan;
}

}  // namespace memscope
