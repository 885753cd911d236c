// Slabs of the run's other processes that are gone without an end (os._exit, a signal): sealed
// while this process lives and at its end (trace/dead_slabs.h), so that workers that come and go by
// the thousand leave nothing behind.
//
//  * Looks only where there can be any: after a fork that Python made, while slabs of others were
//    there the last time and, in the first process of those that are traced, when the run's
//    directory has changed: a fork of a C program is told of by the directory that its child makes.
//  * At most 1 % of the agent thread's time; 5 % while children come by the dozen, and what it
//    takes once their slabs take half a gigabyte.
//  * Under a launcher the end of the run is the launcher's business.
#pragma once

#include <atomic>
#include <cstdint>

namespace memscope::capture::siblings {

void forked();  // a fork is about to be made
// The agent's thread, without the trace lock; now: monotonic ns. Ends early where `stop` becomes
// other than 0.
void sweep_if_due(uint64_t now, const std::atomic<uint32_t>& stop);
// At the end of tracing: the agent's thread is joined, the own slab deleted.
void sweep_at_end();
// When the process goes away: once more, if there were some that could not be sealed yet.
void sweep_last();
void forget_after_fork();

}  // namespace memscope::capture::siblings
