#include "trace/process_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace memscope {
namespace {

struct ProcStat {
  uint64_t pid = 0, start_ticks = 0, threads = 0;
  char state = '\0';
};

size_t read_text(const char* path, char* text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got > 0 ? static_cast<size_t>(got) : 0;
}

// Fields of proc(5): 1 pid, 2 (name), 3 state, 20 threads, 22 start.
bool read_stat(const char* path, ProcStat* stat) {
  char text[1024];
  if (read_text(path, text, sizeof(text)) == 0) return false;
  stat->pid = std::strtoull(text, nullptr, 10);
  const char* at = std::strrchr(text, ')');  // the name before it may hold anything
  if (at == nullptr || at[1] != ' ') return false;
  stat->state = at[2];
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
    if (field == 19 && at != nullptr) stat->threads = std::strtoull(at + 1, nullptr, 10);
  }
  if (at == nullptr) return false;
  stat->start_ticks = std::strtoull(at + 1, nullptr, 10);
  return true;
}

void mix(uint64_t* hash, uint64_t value) {
  *hash = (*hash ^ value) * 0xD6E8FEB86659FD93u;
  *hash ^= *hash >> 32;
}

bool mix_namespace(uint64_t* hash, const char* path) {
  struct stat status;
  // By the system call: glibc 2.33 renamed the function.
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0) return false;
  mix(hash, status.st_ino);
  mix(hash, status.st_dev);
  return true;
}

uint64_t own_place() {
  ProcStat self;
  // A /proc of another pid namespace numbers processes in its own way.
  if (!read_stat("/proc/self/stat", &self) || self.pid != static_cast<uint64_t>(getpid())) return 0;
  char boot[64] = {};
  if (read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) < 36) return 0;
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (const char c : boot) mix(&hash, static_cast<unsigned char>(c));
  if (!mix_namespace(&hash, "/proc/self/ns/pid")) return 0;
  mix_namespace(&hash, "/proc/self/ns/time");  // Linux 5.6; start times are of it
  return hash != 0 ? hash : 1;
}

bool is_free(pid_t pid) {
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

ProcessIdentity own_identity() noexcept {
  ProcessIdentity own{.pid = static_cast<uint64_t>(getpid())};
  ProcStat stat;
  if (!read_stat("/proc/self/stat", &stat)) return own;
  own.start_ticks = stat.start_ticks;
  own.place = own_place();
  return own;
}

bool certainly_gone(const ProcessIdentity& process) noexcept {
  const auto pid = static_cast<pid_t>(process.pid);
  if (process.place == 0 || process.start_ticks == 0 || pid <= 0 ||
      static_cast<uint64_t>(pid) != process.pid || own_place() != process.place) {
    return false;
  }
  if (is_free(pid)) return true;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  ProcStat stat;
  if (!read_stat(path, &stat)) return is_free(pid);  // else it is there but may not be seen
  if (stat.start_ticks != process.start_ticks) return true;
  // A zombie's leader may be dead while its other threads run.
  return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

}  // namespace memscope
