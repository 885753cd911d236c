#include "capture/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture/own_pages.h"
#include "capture/process_stat.h"

// What runs on a stack of its own beside the thread that started it is nothing that a sanitizer
// knows of; for the same reason it makes its system calls itself, without libc's or a sanitizer's
// functions of that name.
#define MEMSCOPE_UNSEEN __attribute__((no_sanitize_address, no_sanitize_thread))

// libc's clone() by its other name: that of GCC 12's ThreadSanitizer hands the child a pointer into
// the stack of its caller, who is gone by then unless it waits (CLONE_VFORK).
extern "C" int memscope_clone(int (*function)(void*), void* stack, int flags, void* argument,
                              ...) __asm__("__clone");

namespace memscope::capture {
namespace {

constexpr size_t kStackBytes = size_t{32} << 10;
constexpr long kLookNs = 50'000'000;

// Shared with both children, which run in this memory.
struct Start {
  const char* arguments[8];
  const char* environment[4];
  char library_path[4096];
  char* stacks;         // two
  pid_t program;        // us
  bool stay;            // the parent does
  bool failed;          // exec did
  uint32_t is_started;  // the helper has called exec, or has ended
  pid_t helper;
};
Start* start;   // of the helper that was started last
pid_t parent;   // 0: it is gone
uint64_t born;  // when the kernel says that the helper began: pids come again

[[noreturn]] MEMSCOPE_UNSEEN void leave() {
  // Not libc's exit: what runs there is the program's.
  for (;;) syscall(SYS_exit_group, 0);
}

// Where there is no close_range (Linux before 5.9): those that /proc tells of.
MEMSCOPE_UNSEEN void close_listed() {
  struct Entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[1];
  };
  const long list = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
  if (list < 0) return;
  alignas(Entry) char entries[2048];
  long got;
  while ((got = syscall(SYS_getdents64, list, entries, sizeof(entries))) > 0) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries + at);
      at += entry->length;
      long fd = 0;
      for (const char* digit = entry->name; *digit >= '0' && *digit <= '9'; ++digit) {
        fd = fd * 10 + (*digit - '0');
      }
      if (fd > STDERR_FILENO && fd != list) syscall(SYS_close, fd);
    }
  }
  syscall(SYS_close, list);
}

MEMSCOPE_UNSEEN int be_helper(void*) {
  syscall(SYS_setsid);
  if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0) close_listed();
  const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
  for (long fd = 0; fd <= STDERR_FILENO && null >= 0; ++fd) {
    if (fd != null) syscall(SYS_dup3, null, fd, 0);
  }
  if (null > STDERR_FILENO) syscall(SYS_close, null);
  // All signals stay blocked until the command is there: their handlers are the program's.
  syscall(SYS_execve, start->arguments[0], start->arguments, start->environment);
  start->failed = true;
  leave();
}

// Where it stays it shares even errno with the thread that started it: then no call may fail.
MEMSCOPE_UNSEEN int be_parent(void*) {
  // Where the program ignores SIGCHLD there would be nothing to wait for. The handlers, unlike the
  // memory, are our own; all zero is the kernel's form of SIG_DFL.
  constexpr size_t kKernelSetBytes = 8;
  static const uint64_t by_default[8] = {};
  syscall(SYS_rt_sigaction, SIGCHLD, by_default, nullptr, kKernelSetBytes);
  const pid_t helper = memscope_clone(be_helper, start->stacks + 2 * kStackBytes,
                                      CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  start->helper = helper;
  __atomic_store_n(&start->is_started, 1, __ATOMIC_RELEASE);
  while (start->stay && helper > 0 && !start->failed) {
    if (syscall(SYS_wait4, helper, nullptr, WNOHANG, nullptr) != 0) break;
    if (syscall(SYS_getppid) != start->program) break;  // whose memory would stay with us
    const timespec pause{0, kLookNs};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  leave();
}

// Whether orphans below us become our children.
bool takes_in_orphans() {
  int reaper = 0;
  return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper != 0);
}

// False while the parent is still there.
bool parent_is_gone() {
  if (parent == 0) return true;
  const pid_t ended = waitpid(parent, nullptr, __WCLONE | WNOHANG);
  if (ended == 0) return false;
  parent = 0;  // where there is nothing to wait for, a wait of the program's with __WALL has it
  return true;
}

void fill_environment() {
  constexpr char kName[] = "LD_LIBRARY_PATH=";
  size_t count = 0;
  start->environment[count++] = "MSMEMSCOPE_DISABLE=1";
  start->environment[count++] = "LC_ALL=C.UTF-8";
  const char* theirs = std::getenv("LD_LIBRARY_PATH");
  if (theirs != nullptr && std::strlen(theirs) < sizeof(start->library_path) - sizeof(kName)) {
    std::snprintf(start->library_path, sizeof(start->library_path), "%s%s", kName, theirs);
    start->environment[count++] = start->library_path;
  }
  start->environment[count] = nullptr;
}

}  // namespace

pid_t start_helper(const char* const* arguments) noexcept {
  if (!parent_is_gone()) return 0;
  if (start == nullptr) {
    auto* memory = own_pages<char>(sizeof(Start) + 2 * kStackBytes);
    if (memory == nullptr) return 0;
    start = reinterpret_cast<Start*>(memory + 2 * kStackBytes);
    start->stacks = memory;
  }
  constexpr size_t kMost = sizeof(Start::arguments) / sizeof(const char*) - 1;
  size_t count = 0;
  while (count < kMost && arguments[count] != nullptr) {
    start->arguments[count] = arguments[count];
    ++count;
  }
  start->arguments[count] = nullptr;
  fill_environment();
  start->program = getpid();
  start->stay = takes_in_orphans();
  start->failed = false;
  start->helper = 0;
  __atomic_store_n(&start->is_started, 0, __ATOMIC_RELAXED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // No exit signal.
  const int flags = CLONE_VM | (start->stay ? 0 : CLONE_VFORK);
  const pid_t child = memscope_clone(be_parent, start->stacks + kStackBytes, flags, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return 0;
  parent = child;
  const timespec pause{0, 100'000};
  while (__atomic_load_n(&start->is_started, __ATOMIC_ACQUIRE) == 0 && !parent_is_gone()) {
    nanosleep(&pause, nullptr);
  }
  while (!start->stay && !parent_is_gone()) nanosleep(&pause, nullptr);
  if (start->helper <= 0 || start->failed) return 0;
  ProcessStat stat;
  read_process_stat(start->helper, &stat);
  born = stat.start_ticks;
  return start->helper;
}

bool helper_runs() noexcept {
  if (start == nullptr || start->helper <= 0) return false;
  ProcessStat stat;
  // One that nobody waits for stays as a zombie.
  const bool there = read_process_stat(start->helper, &stat) && stat.start_ticks == born &&
                     stat.state != 'Z' && stat.state != 'X';
  if (there || !parent_is_gone()) return true;
  start->helper = 0;
  return false;
}

void forget_helper_after_fork() noexcept {
  parent = 0;
  if (start != nullptr) start->helper = 0;
}

}  // namespace memscope::capture
