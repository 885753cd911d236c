#include "capture/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace memscope::capture {
namespace {

constexpr int kState = 3, kStart = 22;  // numbers of the fields, proc(5)

bool read_stat(const char* path, ProcessStat* out) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  const char* at = std::strrchr(text, ')');  // the name before it may hold anything
  if (at == nullptr || at[1] != ' ') return false;
  ++at;
  out->state = at[1];
  for (int field = kState; field < kStart && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  out->start_ticks = at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
  return true;
}

}  // namespace

bool read_process_stat(pid_t pid, ProcessStat* out) noexcept {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  return read_stat(path, out);
}

bool read_thread_stat(pid_t thread, ProcessStat* out) noexcept {
  char path[48];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/stat", static_cast<int>(thread));
  return read_stat(path, out);
}

}  // namespace memscope::capture
