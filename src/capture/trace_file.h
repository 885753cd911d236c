// The process's trace on disk: the log, the slab beside it, and lane 0, in which the agent itself
// writes. Not on the hot path, except that a thread's first event may have to make the trace.
//
// All but make_for_first_event() are called with the trace lock held. When the disk says no,
// tracing ends with one line and the program goes on: nothing here is retried for ever, nothing is
// thrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "capture/agent_state.h"
#include "trace/records.h"

namespace memscope::capture::trace_file {

// How a window ends, WindowRecord::action.
enum class WindowAction : uint64_t { kStart = 1, kStop = 2, kShutdown = 3, kExit = 4 };

// Takes the trace lock, with the lane's `busy` down meanwhile, and makes the trace if recording
// still wants one. True if the trace is there.
bool make_for_first_event(Lane& lane) noexcept;

bool is_open();
const char* directory();  // of the process's trace; "" before there is one

// Writes the start of the window in force and a seed for each live block that was born before it.
void open_window();
// Everything the lanes have written goes to the log, then the window's end.
void close_window(WindowAction action);
// Tells the trace of events whose thread found no lane, if there are new ones. trace_lock held.
void write_unplaced_drops();
// As after close_window(): closes the log, deletes the slab, makes the lanes ready for another
// trace.
void close();

// Full slots to the log; true if there was one. `limit` slots at the most.
bool drain_full(uint32_t limit);
// Also what is in slots that lanes still write to, where they were taken before `mono_ns`.
void drain_owned(uint64_t mono_ns);
void populate_slab();
// Reads one wanted source file into the trace; true if there was one.
bool keep_next_source();
void write_anchor();

// Appends a record to lane 0 at `ticks` (0 = now). Buffered; flush_lane0() sends it to the log.
template <typename Record>
void write_lane0(const Record& record, uint64_t ticks = 0);
void flush_lane0();

// In a forked child: nothing of the parent's trace is ours.
void forget_after_fork();
// The parent's trace as the child's Process record names it.
struct Parent {
  int64_t pid = 0;
  char directory[kPathMax] = {};
  uint64_t ticks = 0;
};
const Parent& parent();

// -- lane 0's buffer, for the template above --
namespace lane0 {
// Room for `words` words, flushing first if need be; null without a trace or if it can never fit.
uint64_t* room(size_t words);
uint32_t step_clock(uint64_t ticks);
void commit(Kind kind, size_t words);
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

}  // namespace memscope::capture::trace_file
