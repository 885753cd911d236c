// The agent's one thread: empties full slots into the log every few milliseconds, keeps source
// files, writes clock anchors, takes lanes back from threads that have ended, and seals the slabs
// of other processes of the run that have died. It starts with the trace, blocks all signals, and
// is joined before Python forks (CPython >= 3.12 warns of threads at fork) and started again after.
// It ends by itself where it is the last thread left (last_thread.h).
#pragma once

namespace memscope::capture::agent_thread {

void start();  // trace lock held; does nothing where it runs
void join();   // no lock held; does nothing where there is none

void want_again();  // after a fork, in the parent
// Starts it if it is wanted and nobody holds the trace lock. Cheap where it is not wanted.
void start_if_wanted() noexcept;
void forget_after_fork();

}  // namespace memscope::capture::agent_thread
