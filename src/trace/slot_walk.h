// The committed records of a slot, walked as a kill may have left them or as their owner is still
// writing them: what is behind the last one begins with a zero word (record_table.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/layout.h"
#include "trace/record_table.h"

namespace memscope {

struct SlotWalk {
  size_t end = 0;      // words: behind the last record
  uint64_t ticks = 0;  // the clock there
  uint64_t kinds = 0;  // bit k: a record of kind k (k < 64) is among them
  bool sound = true;   // false: what follows is not a record
};

// From word `from`, where the clock stands at `ticks`, up to word `limit` at the most.
inline SlotWalk walk_slot(const uint64_t* records, size_t from, uint64_t ticks,
                          size_t limit = kSlotRecordBytes / sizeof(uint64_t)) {
  SlotWalk walk{.end = from, .ticks = ticks};
  while (walk.end < limit) {
    const uint64_t word = __atomic_load_n(records + walk.end, __ATOMIC_ACQUIRE);
    if (word == 0) break;
    const auto kind = static_cast<uint8_t>(word);
    const size_t words =
        kind < kFirstColdKind ? static_cast<size_t>(hot_words(kind)) : (word >> 8 & kArgMask);
    walk.sound = kind < kKindLimit && words != 0 && words <= limit - walk.end;
    if (!walk.sound) break;
    walk.ticks = kind == static_cast<uint8_t>(Kind::kTime) ? records[walk.end + 1]
                                                           : walk.ticks + (word >> 32);
    if (kind < 64) walk.kinds |= uint64_t{1} << kind;
    walk.end += words;
  }
  return walk;
}

}  // namespace memscope
