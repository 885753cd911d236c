// What the kernel says of a process or thread in its `stat` file (proc(5)).
//
//  * No allocation and no lock: a forked child may ask.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace memscope::capture {

struct ProcessStat {
  char state = 0;            // R, S, D, Z, ...
  uint64_t start_ticks = 0;  // when it began, clock ticks since boot; 0 if that is not told
};

// False where there is no such process, or nothing can be read of it.
bool read_process_stat(pid_t pid, ProcessStat* out) noexcept;
// Of a thread of this process.
bool read_thread_stat(pid_t thread, ProcessStat* out) noexcept;

}  // namespace memscope::capture
