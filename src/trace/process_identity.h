// Whether a process is certainly gone: for whoever wants to tidy up behind one.
//
//  * "Gone" is said only where it is certain: the same boot, pid namespace and time namespace, and
//    the pid is free, has been given to another process since, or is a zombie without threads.
//  * All else (another machine, another container, no /proc of ours) is "not certainly gone".
//  * No allocation, no exceptions: the agent uses it too.
#pragma once

#include <cstdint>

namespace memscope {

struct ProcessIdentity {
  uint64_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  uint64_t place = 0;        // boot and namespaces, hashed; 0: unknown
};

// Of the calling process. `place` is 0 where it cannot be told.
ProcessIdentity own_identity() noexcept;

bool certainly_gone(const ProcessIdentity& process) noexcept;

}  // namespace memscope
