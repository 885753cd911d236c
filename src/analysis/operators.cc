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
    case EventKind::kSeed:  // there already: nobody's delta
      if (hands_out(event.where.layer)) live_[block_key(event.addr, event.where)] = event.size;
      break;
    case EventKind::kAlloc:
    case EventKind::kFree:
      if (hands_out(event.where.layer)) memory(event);
      break;
    case EventKind::kWindow:
      break;
  }
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

void OperatorCollector::memory(const Event& event) {
  const uint64_t key = block_key(event.addr, event.where);
  int64_t change = 0;
  uint64_t size = event.size;
  if (event.kind == EventKind::kAlloc) {
    uint64_t& live = live_[key];
    change = static_cast<int64_t>(event.size) - static_cast<int64_t>(live);
    live = event.size;
  } else if (const auto found = live_.find(key); found != live_.end()) {
    size = found->second;
    change = -static_cast<int64_t>(size);
    live_.erase(found);
  }
  const Device device = event.where.device;
  if (measure_ == Measure::kNextRow) {
    if (event.where.layer != Layer::kPool && event.where.layer != Layer::kPoolMindSpore) return;
    std::vector<OperatorValue>& values = run_.devices[device];
    size_t& from = without_row_[device];
    for (; from < values.size(); ++from) values[from].bytes = static_cast<int64_t>(size);
    return;
  }
  net(event.thread, device) += change;
  const OpenOperators::Open* in = open_.innermost(event.thread);
  if (in == nullptr || in->device != device) run_.outside[device] += change;
}

}  // namespace memscope
