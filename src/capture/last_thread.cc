#include "capture/last_thread.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

#include "capture/process_stat.h"

namespace memscope::capture {
namespace {

// Threads of this process, ended ones that nobody has reaped included: a directory's links less
// two (fs/proc/base.c: proc_task_getattr). 0 if it cannot be told.
size_t count_threads() {
  struct stat status {};
  if (stat("/proc/self/task", &status) != 0 || status.st_nlink < 2) return 0;
  return static_cast<size_t>(status.st_nlink) - 2;
}

bool main_thread_has_ended() {
  ProcessStat stat;
  return read_thread_stat(getpid(), &stat) && stat.state == 'Z';
}

}  // namespace

bool only_this_thread_is_left() noexcept {
  return count_threads() == 2 && main_thread_has_ended() && count_threads() == 2;
}

}  // namespace memscope::capture
