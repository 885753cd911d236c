// The log (trace.msm) as the agent has it open. Trace lock held for all of it.
//
//  * Programs close descriptors that they did not open (close_range, a daemon's first lines), and
//    the number may be a file of theirs by now: nothing is written to a descriptor that is not the
//    log, and the log is opened again.
//  * A failure is errno and no more: what follows from it is trace_file's business.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/log_writer.h"

namespace memscope::capture::trace_log {

// Makes the file, with its header. False with errno.
bool make(const char* path);
bool is_open();
// A chunk at the end of the log, whole or not at all. False with errno.
bool append(const ChunkMeta& meta, const void* records, size_t bytes);
void close();
// Of the file that is written: its length, its number (1 is trace.msm itself, layout.h).
uint64_t bytes();
uint32_t segment();
// The log goes on in the next file. False with errno: it goes on in this one.
bool next_segment();
// In a forked child: the parent's log is let go of.
void forget_after_fork();

}  // namespace memscope::capture::trace_log
