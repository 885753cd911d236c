// The process's trace on disk: its directory, the log (trace_log.h) and the slab beside it, and
// what goes from the slab to the log. Not on the hot path, except that a thread's first event may
// have to make the trace.
//
// All but make_for_first_event() are called with the trace lock held. When the disk says no,
// tracing ends with one line and the program goes on: nothing here is retried for ever, nothing is
// thrown.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/agent_state.h"
#include "trace/record_table.h"

namespace memscope::capture::trace_file {

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

// A write to the log failed: recording ends, and the trace says so where it still can.
void log_failed(int error);

// Recording ends for this reason, though the log can be written; what comes after it is a gap.
void recording_over(const char* why);

// In a forked child: nothing of the parent's trace is ours.
void forget_after_fork();
// The parent's trace as the child's Process record names it.
struct Parent {
  int64_t pid = 0;
  char directory[kPathMax] = {};
  uint64_t ticks = 0;
};
const Parent& parent();

}  // namespace memscope::capture::trace_file
