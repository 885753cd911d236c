#include "capture/last_thread.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace memscope::capture {
namespace {

// Threads of this process, ended ones that nobody has reaped included: a directory's links less
// two (fs/proc/base.c: proc_task_getattr). 0 if it cannot be told.
size_t count_threads() {
  struct stat status {};
  if (stat("/proc/self/task", &status) != 0 || status.st_nlink < 2) return 0;
  return static_cast<size_t>(status.st_nlink) - 2;
}

// Field 3 of the main thread's stat, behind the name in parentheses (proc(5)).
bool main_thread_has_ended() {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/stat", static_cast<int>(getpid()));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[128];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && std::strncmp(name_end, ") Z", 3) == 0;
}

}  // namespace

bool only_this_thread_is_left() noexcept {
  return count_threads() == 2 && main_thread_has_ended() && count_threads() == 2;
}

}  // namespace memscope::capture
