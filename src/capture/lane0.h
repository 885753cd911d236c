// Lane 0: what the agent itself records (who is traced, windows, seeds, sources, anchors, notices),
// and what the program says where its thread has no lane. Trace lock held for all of it.
//
//   write_lane0() --> buffer --flush_lane0()--> the log
//                                   |
//                                   +-- the log takes no more --> the slab's reserve slot
//
// A full disk has room for that slot: it was reserved with the slab. So what is missing, and why,
// is in the trace even then; only a record that is larger than the slot (a source file) is lost,
// which is said too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/clock.h"
#include "capture/lane.h"
#include "trace/records.h"

namespace memscope::capture {

// Appends a record at `ticks` (0 = now). Buffered.
template <typename Record>
void write_lane0(const Record& record, uint64_t ticks = 0);
// Sends the buffer to where it is kept. Where the log refuses it, trace_file::log_failed() is told.
void flush_lane0();

namespace lane0 {

// A new trace begins, or (after a fork) none is there yet. False where there is no memory.
bool begin();

// From now on the reserve slot takes everything. Writes there what the buffer holds and, where
// events will be missing or a part of the buffer has to be, a gap from now on.
void log_refused(const char* reason, bool events_missing);
bool refused();
// The gap lasts until now.
void extend_gap();

// -- the buffer, for the template --
// Room for `count` words, flushing first if need be; null without a trace or if it can never fit.
uint64_t* room(size_t count);
uint32_t step_clock(uint64_t ticks);
void commit(Kind kind, size_t count);

}  // namespace lane0

template <typename Record>
void write_lane0(const Record& record, uint64_t ticks) {
  const size_t words = encoded_words(record);
  uint64_t* at = lane0::room(words + kTimeWords);
  if (at == nullptr) return;
  const uint64_t now = ticks != 0 ? ticks : ticks_now();
  uint32_t dt = lane0::step_clock(now);
  if (dt == UINT32_MAX) {  // too long ago for one word
    at[0] = hot_word(Kind::kTime, 0, 0);
    at[1] = now;
    lane0::commit(Kind::kTime, kTimeWords);
    at += kTimeWords;
    dt = 0;
  }
  at[0] = encode_record(record, 0, dt, at);
  lane0::commit(Record::kKind, words);
}

}  // namespace memscope::capture
