#include "analysis/operators.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope {
namespace {

constexpr uint64_t kStart = 0, kEnd = 1, kLaunched = 2;  // LaunchRecord::action

bool hands_out(Layer layer) {
  return is_pool(layer) || layer == Layer::kWorkspace || layer == Layer::kTensor;
}

}  // namespace

// -- what is open ---------------------------------------------------------------------------------

void OpenOperators::begin(ThreadId thread, const Open& open) {
  std::vector<Open>& stack = threads_[thread];
  // Only beginnings whose ends were lost can pile up so.
  if (stack.size() >= kMaxDepth) stack.erase(stack.begin());
  stack.push_back(open);
}

std::optional<OpenOperators::Open> OpenOperators::end(ThreadId thread, StringId name) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return std::nullopt;
  std::vector<Open>& stack = found.value();
  const auto at = std::find_if(stack.rbegin(), stack.rend(),
                               [&](const Open& open) { return open.name == name; });
  if (at == stack.rend()) return std::nullopt;
  const Open open = *at;
  stack.erase(std::prev(at.base()), stack.end());  // those inside it whose end was lost, too
  return open;
}

const OpenOperators::Open* OpenOperators::innermost(ThreadId thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() || found->second.empty() ? nullptr : &found->second.back();
}

void OperatorRun::add(OperatorRun&& other) {
  for (auto& [device, values] : other.devices) {
    std::vector<OperatorValue>& own = devices[device];
    own.insert(own.end(), values.begin(), values.end());
  }
  for (const auto& [device, bytes] : other.outside) outside[device] += bytes;
}

// -- what each did --------------------------------------------------------------------------------

int64_t& OperatorCollector::net(ThreadId thread, Device device) {
  return net_[{thread, device}];
}

void OperatorCollector::feed(const Event& event) {
  switch (event.kind) {
    case EventKind::kRecord:
      if (event.record_kind == static_cast<uint8_t>(Kind::kLaunch)) launch(event);
      break;
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kSeed:
      if (!hands_out(event.where.layer)) return;
      break;
    case EventKind::kWindow:
      break;
  }
  blocks_.feed(event, *this);
}

void OperatorCollector::launch(const Event& event) {
  const auto record = decode_record<LaunchRecord>(event.words);
  if (!record) return;
  // LaunchRecord::level is 0 an ATen operator, 1 a kernel, 2 an ATB operator, 3 a kernel of one.
  const bool is_operator = record->level == 0 || record->level == 2;
  if (level_ == OperatorLevel::kOperator ? !is_operator : record->level != 1) return;
  const Device device = event.where.device;
  const StringId name = names_.intern(record->name);
  if (level_ == OperatorLevel::kKernel) {
    if (record->action != kLaunched) return;  // its execution; the launch was counted
    int64_t& before = net_at_launch_[{event.thread, device}];
    const int64_t now = net(event.thread, device);
    run_.devices[device].push_back({name, measure_ == Measure::kDelta ? now - before : 0});
    before = now;
  } else if (record->action == kStart) {
    open_.begin(event.thread, {name, device, net(event.thread, device)});
  } else if (record->action == kEnd) {
    end(event.thread, name, device);
  }
}

void OperatorCollector::end(ThreadId thread, StringId name, Device device) {
  const auto open = open_.end(thread, name);
  int64_t bytes = 0;
  // One that began before the recording did has all that its thread did in it.
  if (measure_ == Measure::kDelta) {
    bytes = net(thread, device) - (open ? open->net_at_start : 0);
  }
  run_.devices[device].push_back({name, bytes});
}

bool OperatorCollector::begins(BlockLife& block, const Event& event) {
  if (event.kind == EventKind::kAlloc) {
    changed(event.thread, event.where.device, static_cast<int64_t>(block.size));
    next_row(event.where, block.size);
  }
  return true;
}

void OperatorCollector::ends(const BlockLife& block, const BlockEnd& end) {
  // Freed while nothing was recorded: no operator of the recording did it.
  if (end.how == BlockEnding::kUnseeded || end.how == BlockEnding::kReseeded) return;
  changed(end.thread, block.place().device, -static_cast<int64_t>(block.size));
  if (end.how == BlockEnding::kFreed) next_row(block.place(), block.size);
}

void OperatorCollector::returns(BlockLife& block, const Event& event) {
  changed(event.thread, block.place().device, static_cast<int64_t>(block.size));
}

void OperatorCollector::unknown_free(const Event& event) {
  next_row(event.where, event.size);
}

void OperatorCollector::changed(ThreadId thread, Device device, int64_t bytes) {
  if (measure_ != Measure::kDelta) return;
  net(thread, device) += bytes;
  const OpenOperators::Open* in = open_.innermost(thread);
  if (in == nullptr || in->device != device) run_.outside[device] += bytes;
}

void OperatorCollector::next_row(Where where, uint64_t size) {
  if (measure_ != Measure::kNextRow) return;
  if (where.layer != Layer::kPool && where.layer != Layer::kPoolMindSpore) return;
  std::vector<OperatorValue>& values = run_.devices[where.device];
  size_t& from = without_row_[where.device];
  for (; from < values.size(); ++from) values[from].bytes = static_cast<int64_t>(size);
}

}  // namespace memscope
