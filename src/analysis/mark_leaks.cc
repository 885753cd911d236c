#include "analysis/mark_leaks.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope {

// Whether the window that begins with mark number `window` is one to look at.
bool MarkLeaks::wanted(uint64_t window) const {
  return options_.all ? window >= options_.start_index : window == options_.start_index;
}

MarkLeaks::State& MarkLeaks::state_of(Device device) {
  return devices_.try_emplace(device, State{.marks = marks_of_all_}).first->second;
}

void MarkLeaks::feed(const Event& event) {
  if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) {
    state_of(event.where.device);
  } else if (event.kind == EventKind::kRecord &&
             event.record_kind == static_cast<uint8_t>(Kind::kMark)) {
    mark(event);
  }
  blocks_.feed(event, *this);
}

bool MarkLeaks::begins(BlockLife&, const Event& event) {
  if (event.kind == EventKind::kSeed) return false;
  State& state = state_of(event.where.device);
  // Segment s begins with mark s - 1, which is window s - 1's A.
  if (state.marks == 0 || !wanted(state.marks - 1)) return false;
  std::vector<Birth>& births = state.births[state.marks];
  births.push_back({block_key(event.addr, event.where), event.addr, event.time, event.where});
  // Those that are dead already need no place: at most as many again as are alive.
  if (births.size() > 1024 && births.size() > 2 * blocks_.live().size()) prune(births);
  return true;
}

void MarkLeaks::mark(const Event& event) {
  const auto record = decode_record<MarkRecord>(event.words);
  if (!record || record->action != 0 || record->text != options_.mark) return;
  if (event.where == Where{}) {
    ++marks_of_all_;
    for (auto& [device, state] : devices_) mark(state);
  } else {
    mark(state_of(event.where.device));
  }
}

void MarkLeaks::mark(State& state) {
  ++state.marks;
  // This mark is the C of what was born two segments ago.
  if (state.marks >= 3) close(state, state.marks - 2, false);
}

bool MarkLeaks::alive(const Birth& birth, uint64_t* size) const {
  const auto found = blocks_.live().find(birth.key);
  if (found == blocks_.live().end() || found->second.birth != birth.time) return false;
  if (size != nullptr) *size = found->second.size;
  return true;
}

void MarkLeaks::prune(std::vector<Birth>& births) const {
  std::erase_if(births, [this](const Birth& birth) { return !alive(birth); });
}

void MarkLeaks::close(State& state, uint64_t segment, bool at_end) {
  if (!wanted(segment - 1)) return;
  MarkWindow window{.index = segment - 1, .at_end = at_end};
  const auto births = state.births.find(segment);
  if (births != state.births.end()) {
    for (const Birth& birth : births->second) {
      uint64_t size = 0;
      if (!alive(birth, &size)) continue;
      ++window.blocks;
      window.bytes += size;
      if (window.leaks.size() < MarkWindow::kMaxLeaks) {
        window.leaks.push_back({birth.where, birth.addr, size, birth.time});
      }
    }
    state.births.erase(births);
  }
  state.windows.push_back(std::move(window));
}

std::vector<MarkedDevice> MarkLeaks::finish() {
  std::vector<MarkedDevice> result;
  for (auto& [device, state] : devices_) {
    if (options_.all) {
      const uint64_t open = state.marks >= 2 ? state.marks - 1 : 1;
      for (uint64_t segment = open; segment <= state.marks; ++segment) close(state, segment, true);
    }
    result.push_back({device, state.marks, std::move(state.windows)});
  }
  return result;
}

}  // namespace memscope
