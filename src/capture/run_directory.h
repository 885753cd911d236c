// Where a process's trace lies (contract, section 2):
//
//   <output>/run-<id>/<host>-<rank|x>-<pid>[.n]/     directories 0700, files 0600
//
// The process's directory is made exclusively: `.n` tells execs and reused pids apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memscope::capture::run_directory {

// The run's id: settings.run_id, decided on now if it is still empty.
const char* id();

// Makes the directories and writes the process directory's path to `out`. 0 or errno; on failure
// `out` holds the path that could not be made.
int make(char* out, size_t size);

// Whether the file system of `path` is remote (NFS, Lustre, FUSE, ...), where a mapped file is slow
// or unsafe.
bool is_remote(const char* path);

// When this process started, ns since the epoch, from /proc.
uint64_t process_start_ns();

}  // namespace memscope::capture::run_directory
