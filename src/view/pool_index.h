// One place (a layer on a device) of one input, as columns: what every view is answered from.
//
//   events   0, 1, 2, ...   in time order: a block begins or ends
//   blocks   1, 2, 3, ...   in the order in which they began; 0 is none
//   state p  what is alive after p events; state 0 is empty
//
// A block is alive in state p iff alloc_event < p <= free_event, that is, iff its alloc was among
// the first p events and its free was not. Totals before every 64th event, with the least and the
// most within them, find the peak of any range without reading its events.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/where.h"
#include "view/file_vector.h"

namespace memscope::view {

inline constexpr uint32_t kFreeBit = 1u << 31;   // of an event's block: it ends
inline constexpr uint32_t kAlive = 0x7fff'ffff;  // a block's free_event: never
inline constexpr uint32_t kMaxEvents = kAlive - 1;
inline constexpr uint32_t kGroupEvents = 64;

inline constexpr uint64_t kBlockSizeMask = (uint64_t{1} << 48) - 1;
inline constexpr uint64_t kPreexisting = uint64_t{1} << 48;  // there before the hooks came
inline constexpr uint64_t kFateUnknown = uint64_t{1} << 49;  // its history has a hole
inline constexpr uint64_t kSeeded = uint64_t{1} << 50;       // seen first at a window's start
inline constexpr uint64_t kEndUnseen = uint64_t{1} << 51;    // its end is inferred

// 64 events.
struct EventGroup {
  uint64_t before = 0;                // bytes before the first of them
  uint64_t most = 0, least = 0;       // of the states after each of them
  uint8_t most_at = 0, least_at = 0;  // which of them, 0..63
};

struct Extreme {
  uint32_t state = 0;
  uint64_t bytes = 0;
};

// A value that changes now and then: from state `states[i]` on it is values[i].
struct Changes {
  FileVector<uint32_t> states;
  FileVector<int64_t> values;
  // nullopt before the first.
  std::optional<int64_t> at(uint32_t state) const {
    const auto* after = std::upper_bound(states.begin(), states.end(), state);
    if (after == states.begin()) return std::nullopt;
    return values[static_cast<size_t>(after - states.begin()) - 1];
  }
};

struct PoolIndex {
  Where where;

  FileVector<uint64_t> time;   // of events, ns since the input's origin, ascending
  FileVector<uint32_t> event;  // block | kFreeBit
  FileVector<EventGroup> groups;

  FileVector<uint32_t> alloc_event, free_event;  // of blocks; entry 0 is unused
  FileVector<uint64_t> address;
  FileVector<uint64_t> sized;  // bytes, and the flags above
  FileVector<uint32_t> stack;
  FileVector<uint32_t> owner;        // index into InputIndex::owners
  FileVector<uint16_t> thread;       // that allocated it, at most 65535
  FileVector<uint16_t> free_thread;  // that freed it

  // When a block was read or written, ascending; where the input tells.
  FileVector<uint64_t> access_time;
  FileVector<uint32_t> access_block;
  FileVector<uint32_t> access_what;  // index into InputIndex::names, kRead and kWritten above it
  static constexpr uint32_t kRead = 1u << 30, kWritten = 1u << 31;

  Changes reserved;   // what the pool holds, as it says itself
  Changes untracked;  // what it says it has handed out, less the live blocks

  uint64_t live_bytes = 0;  // at the end
  uint32_t live_blocks = 0;
  Extreme peak;

  PoolIndex() = default;
  // New columns in files that begin with `prefix`; in memory where that is empty.
  explicit PoolIndex(const std::filesystem::path& prefix);
  // visit(name, column) for each.
  template <typename Self, typename Visit>
  static void for_each_column(Self& self, Visit&& visit) {
    visit("time", self.time), visit("event", self.event), visit("groups", self.groups);
    visit("alloc_event", self.alloc_event), visit("free_event", self.free_event);
    visit("address", self.address), visit("sized", self.sized), visit("stack", self.stack);
    visit("owner", self.owner), visit("thread", self.thread);
    visit("free_thread", self.free_thread), visit("reserved_states", self.reserved.states);
    visit("reserved_values", self.reserved.values);
    visit("untracked_states", self.untracked.states);
    visit("untracked_values", self.untracked.values);
    visit("access_time", self.access_time), visit("access_block", self.access_block);
    visit("access_what", self.access_what);
  }

  uint32_t events() const { return static_cast<uint32_t>(time.size()); }
  // Blocks are 1..blocks().
  uint32_t blocks() const {
    return alloc_event.empty() ? 0 : static_cast<uint32_t>(alloc_event.size()) - 1;
  }
  uint64_t size(uint32_t block) const { return sized[block] & kBlockSizeMask; }
  bool alive(uint32_t block, uint32_t state) const {
    return alloc_event[block] < state && free_event[block] >= state;
  }
  // Blocks that began within the first `state` events are 1..blocks_in(state).
  uint32_t blocks_in(uint32_t state) const {
    return static_cast<uint32_t>(
        std::lower_bound(alloc_event.begin() + 1, alloc_event.end(), state) - alloc_event.begin() -
        1);
  }
  // The state of a moment: everything up to and including `when`.
  uint32_t state_at(uint64_t when) const {
    return static_cast<uint32_t>(std::upper_bound(time.begin(), time.end(), when) - time.begin());
  }
  // The state just before a moment.
  uint32_t state_before(uint64_t when) const {
    return static_cast<uint32_t>(std::lower_bound(time.begin(), time.end(), when) - time.begin());
  }
  // When a state began; the first event's time for state 0.
  uint64_t time_of_state(uint32_t state) const {
    if (time.empty()) return 0;
    return time[state == 0 ? 0 : std::min(state, events()) - 1];
  }
  uint64_t begin_time(uint32_t block) const { return time[alloc_event[block]]; }
  std::optional<uint64_t> end_time(uint32_t block) const {
    if (free_event[block] == kAlive) return std::nullopt;
    return time[free_event[block]];
  }
  // Live bytes in a state.
  uint64_t bytes_in(uint32_t state) const;
  // The most and the least of the states first..last (both included), the first of equals.
  std::pair<Extreme, Extreme> extremes(uint32_t first, uint32_t last) const;

  // visit(access) for those of a block, in order.
  template <typename Visit>
  void for_each_access(uint32_t block, Visit&& visit) const {
    const auto at = [&](uint64_t when) {
      return static_cast<size_t>(std::lower_bound(access_time.begin(), access_time.end(), when) -
                                 access_time.begin());
    };
    const auto end = end_time(block);
    const size_t last = end ? at(*end + 1) : access_time.size();
    for (size_t access = at(begin_time(block)); access < last; ++access) {
      if (access_block[access] == block) visit(access);
    }
  }

  // Made by the builder once all events are there.
  void make_groups();
};

}  // namespace memscope::view
