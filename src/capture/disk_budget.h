// How much disk the trace may take (`max_trace_size`), and what is done when it is used up.
//
//   the log grows --> an eighth of the budget is full: the next segment (layout.h)
//                 --> half of it is full: a helper folds the older segments (replay/fold.h), while
//                     the log goes on
//
// Guarantees
//  * The files stay below the budget, but for what the slab holds at the end and what the agent
//  says
//    of itself. Where the helper does not keep up, or fails, the slab is not emptied until there is
//    room again: its threads then count what they drop. A helper that fails is started again, after
//    a pause that doubles up to ten minutes; one line says so.
//  * Where there is no command to fold with, recording ends at the budget as on a full disk, and
//    one line says why.
//  * The default: 20 GB, or a tenth of what is free if that is less (looked up again with each
//    segment, so that no number of processes fills the disk), divided by the job's processes on
//    this machine (LOCAL_WORLD_SIZE).
//
// By the agent's thread, trace lock held where nothing else is said. Never on the hot path.
#pragma once

#include <cstdint>

namespace memscope::capture::disk_budget {

// A trace begins in `directory`.
void begin(const char* directory);
// False: nothing may be written now. Where that will not change, recording has ended.
bool may_write();
// Once in a while, after what may be written was: begins the next segment, sees that a fold is due.
void poll();
// Starts the fold that is due. Trace lock NOT held: it takes as long as an exec.
void start_due_fold();
// The trace is closed: what a fold that was killed has left is removed.
void end();
void forget_after_fork();

}  // namespace memscope::capture::disk_budget
