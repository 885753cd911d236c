// What replay asks of an input: the same few calls of a trace, a csv, a db or a snapshot.
//
// The events come in time order, each once; `scan` may be called before the first batch and sees
// the records of the kinds asked for without the cost of the rest, so that replay knows where the
// steps end before it reads the first block. A source is a template argument: no virtual call an
// event. Its tables of stacks and strings grow while it is read and must outlive what replay makes.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/event.h"
#include "core/stacks.h"
#include "trace/lane_cursor.h"
#include "trace/record_table.h"
#include "trace/records.h"

namespace memscope {

struct TimeRange {
  uint64_t first = 0, last = 0;  // ns since the epoch; both 0 where there is no event
};

template <typename S>
concept EventSource = requires(S& source, uint64_t number, std::span<Event> events,
                               void (*visit)(const Event&)) {
  // Up to events.size() events, whose `words` are valid until the next call; 0 at the end only.
  { source.next_batch(events) } -> std::same_as<size_t>;
  // Calls visit(event) for the kRecord events whose kind_bit is in the set, in time order.
  source.scan(number, visit);
  // May read the whole source: asked for only where the steps depend on it.
  { source.time_range() } -> std::same_as<TimeRange>;
  // The time of a tick count found in a record's field.
  { source.time_of(number) } -> std::convertible_to<uint64_t>;
  { source.stacks() } -> std::convertible_to<const StackTable&>;
  { source.strings() } -> std::convertible_to<const StringTable&>;
};

// Calls use(event) for the events still to come, up to the one for which it returns false, if it
// returns anything.
template <EventSource Source, typename Use>
void for_each_event(Source& source, Use&& use) {
  std::array<Event, 256> batch;
  while (const size_t count = source.next_batch(batch)) {
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_void_v<std::invoke_result_t<Use&, const Event&>>) {
        use(batch[i]);
      } else if (!use(batch[i])) {
        return;
      }
    }
  }
}

// Events held in memory: what importers of small files and the tests use. Ticks are nanoseconds.
class VectorSource {
 public:
  StackTable& stacks() { return stacks_; }
  StringTable& strings() { return strings_; }

  void add(Event event) { entries_.push_back({event, {}}); }
  template <typename Record>
  void add_record(uint64_t time, const Record& record, Where where = {}, ThreadId thread = {}) {
    Entry entry;
    entry.event.kind = EventKind::kRecord;
    entry.event.record_kind = static_cast<uint8_t>(Record::kKind);
    entry.event.time = time;
    entry.event.where = where;
    entry.event.thread = thread;
    append_record(record, 0, 0, entry.words);
    entries_.push_back(std::move(entry));
  }

  size_t next_batch(std::span<Event> out) {
    size_t count = 0;
    for (; count < out.size() && at_ != entries_.size(); ++at_, ++count) {
      out[count] = entries_[at_].event;
      out[count].words = entries_[at_].words;
    }
    return count;
  }
  template <typename Visit>
  void scan(uint64_t kinds, Visit&& visit) const {
    for (const Entry& entry : entries_) {
      if (entry.event.kind != EventKind::kRecord || entry.event.record_kind >= 64) continue;
      if ((kinds >> entry.event.record_kind & 1) == 0) continue;
      Event event = entry.event;
      event.words = entry.words;
      visit(event);
    }
  }
  TimeRange time_range() const {
    if (entries_.empty()) return {};
    return {entries_.front().event.time, entries_.back().event.time};
  }
  uint64_t time_of(uint64_t ticks) const { return ticks; }
  void rewind() { at_ = 0; }

 private:
  struct Entry {
    Event event;
    std::vector<uint64_t> words;
  };
  StackTable stacks_;
  StringTable strings_;
  std::vector<Entry> entries_;
  size_t at_ = 0;
};
static_assert(EventSource<VectorSource>);

}  // namespace memscope
