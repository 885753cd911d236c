// A trace as replay takes it.
#pragma once

#include <algorithm>
#include <vector>

#include "replay/event_source.h"
#include "trace/reader.h"

namespace memscope {

// The reader must outlive the source, and stand at its first event.
class TraceEvents {
 public:
  explicit TraceEvents(TraceReader& reader) : reader_(reader) {}

  size_t next_batch(std::span<Event> out) { return reader_.next_batch(out); }
  template <typename Visit>
  void scan(uint64_t kinds, Visit&& visit) {
    reader_.scan(kinds, [&](const Event& event) {
      visit(event);
      return true;
    });
  }
  // Needed only for runs without steps of their own; read to the end where the trace does not say
  // when recording ended.
  TimeRange time_range() {
    TimeRange range;
    bool ended = false;
    for (const TraceInfo::Window& window : reader_.info().windows) {
      if (range.first == 0) range.first = window.time;
      range.last = window.time;
      ended = static_cast<WindowAction>(window.action) != WindowAction::kStart;
    }
    if (ended && range.first < range.last) return range;
    std::vector<Event> events(256);
    while (const size_t count = reader_.next_batch(events)) {
      if (range.first == 0) range.first = events.front().time;
      range.last = std::max(range.last, events[count - 1].time);
    }
    reader_.rewind();
    return range;
  }
  uint64_t time_of(uint64_t ticks) const { return reader_.to_ns(ticks); }
  const StackTable& stacks() const { return reader_.stacks(); }
  const StringTable& strings() const { return reader_.strings(); }

 private:
  TraceReader& reader_;
};
static_assert(EventSource<TraceEvents>);

}  // namespace memscope
