// One thing that happened in a traced process, in the form replay takes it: from a trace, a csv, a
// db or a snapshot alike.
#pragma once

#include <cstdint>
#include <span>

#include "core/ids.h"
#include "core/where.h"

namespace memscope {

enum class EventKind : uint8_t {
  kAlloc,   // a block begins: addr, size, where, stack; totals where `has_totals`
  kFree,    // a block ends: addr, where; totals where `has_totals`
  kSeed,    // alive when a window opened: addr, size, where; `birth` as its alloc's `time`, 0 = it
            // was there before the hooks came
  kWindow,  // recording began or ended; `size` is WindowRecord::action
  kRecord,  // anything else: `record_kind`, `words`
};

struct Event {
  EventKind kind = EventKind::kRecord;
  bool has_totals = false;
  uint8_t record_kind = 0;  // trace Kind number, for kRecord
  Where where;
  ThreadId thread;
  StackId stack;      // in the input's StackTable
  uint64_t time = 0;  // ns since the epoch
  uint64_t addr = 0;
  uint64_t size = 0;       // bytes; of a sampled block those that it stands for (sampling.h)
  uint64_t birth = 0;      // ns since the epoch, for kSeed
  uint64_t allocated = 0;  // the pool's totals after the event, bytes
  uint64_t reserved = 0;
  uint64_t sampled_size = 0;  // bytes of the block itself, where its place is sampled; 0: it is not
  std::span<const uint64_t> words;  // a whole encoded record, valid until the next event
};

}  // namespace memscope
