// A parent with children of every kind; each child allocates through the stand-in for libc10, so
// that a trace shows who was followed. Knows nothing of the agent.
//
//   children HOW [ARGUMENT]
//   children work N      a child: N allocations, then its exit status is 7
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fake_c10.h"

extern char** environ;

namespace {

char blocks[10'000];
char self[4096];
int wanted = 1;  // the argument

void allocate(int count) {
  for (int i = 0; i < count; ++i) fake_c10_new(&blocks[i], 64);
}

[[noreturn]] void work(int count) {
  allocate(count);
  _exit(7);
}

void await(pid_t child, int status = 7) {
  int got = 0;
  if (child < 0 || waitpid(child, &got, 0) != child || !WIFEXITED(got) ||
      WEXITSTATUS(got) != status) {
    std::printf("a child ended with %x instead of %d\n", got, status);
  }
}

// The words of `children work 20`.
char word_work[] = "work", word_20[] = "20";
char* const worker[] = {self, word_work, word_20, nullptr};
char* const nothing[] = {nullptr};

void in_fork(void (*action)()) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    action();
    _exit(99);
  }
  await(child);
}

void fork_many() {
  allocate(10);
  for (int i = 0; i < wanted; ++i) in_fork([] { work(20); });
}

// Forks while other threads allocate.
void fork_under_load() {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      while (!stop) {
        fake_c10_new(&blocks[9000 + t], 64);
        fake_c10_delete(&blocks[9000 + t]);
      }
    });
  }
  for (int i = 0; i < wanted; ++i) in_fork([] { work(20); });
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

pid_t in_vfork(const char* program, char* const* variables) {
  const pid_t child = vfork();
  if (child == 0) {
    execve(program, worker, variables);
    _exit(99);
  }
  return child;
}

void vfork_exec() {
  allocate(10);
  for (int i = 0; i < wanted; ++i) {
    await(in_vfork(self, environ));
    allocate(1);
  }
}

// Not allowed, and done: the child allocates, in the parent's memory, as the parent's thread. The
// first event of all is the child's; what it has is nobody's trace.
pid_t in_allocating_vfork() {
  const pid_t child = vfork();
  if (child == 0) {
    fake_c10_new(&blocks[1], 64);
    execve(self, worker, environ);
    _exit(99);
  }
  return child;
}

void vfork_that_allocates() {
  for (int i = 0; i < wanted; ++i) {
    await(in_allocating_vfork());
    if (i > 0) allocate(1);
  }
}

void vfork_exec_that_fails() {
  allocate(10);
  for (int i = 0; i < wanted; ++i) {
    await(in_vfork("/no/such/program", environ), 99);
    allocate(1);
  }
}

void spawn() {
  allocate(10);
  for (int i = 0; i < wanted; ++i) {
    pid_t child = -1;
    if (posix_spawn(&child, self, nullptr, nullptr, worker, environ) != 0) std::puts("no spawn");
    await(child);
    if (posix_spawnp(&child, self, nullptr, nullptr, worker, environ) != 0) std::puts("no spawn");
    await(child);
  }
}

// Every function that replaces the program, in an environment that has been emptied.
void exec_with_nothing() {
  allocate(10);
  in_fork([] { execve(self, worker, nothing); });
  in_fork([] { execvpe(self, worker, nothing); });
  in_fork([] { execle(self, self, word_work, word_20, nullptr, nothing); });
  in_fork([] {
    clearenv();
    execv(self, worker);
  });
  in_fork([] {
    clearenv();
    execvp(self, worker);
  });
  in_fork([] {
    clearenv();
    execl(self, self, word_work, word_20, nullptr);
  });
  in_fork([] {
    clearenv();
    execlp(self, self, word_work, word_20, nullptr);
  });
  in_fork([] { fexecve(open(self, O_RDONLY | O_CLOEXEC), worker, nothing); });
  in_fork([] { execveat(AT_FDCWD, self, worker, nothing, 0); });
  await(in_vfork(self, nothing));
  pid_t spawned = -1;
  if (posix_spawn(&spawned, self, nullptr, nullptr, worker, nothing) != 0) std::puts("no spawn");
  await(spawned);
}

// A variable of the program's own is the only one; the preload is somebody else's.
void exec_with_own_environment() {
  allocate(10);
  static char own[] = "OWN=1", preload[] = "LD_PRELOAD=libm.so.6";
  static char* const variables[] = {own, preload, nullptr};
  in_fork([] { execve(self, worker, variables); });
}

// Told to leave it alone.
void exec_disabled() {
  allocate(10);
  static char disable[] = "MSMEMSCOPE_DISABLE=1";
  static char* const variables[] = {disable, nullptr};
  in_fork([] { execve(self, worker, variables); });
}

// The child lives on when its parent has gone: says so in the file it is given.
void outlive(const char* file, bool daemon) {
  allocate(10);
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) != 0) return;
  if (fork() != 0) return;
  if (daemon) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int descriptor = 0; descriptor < 3; ++descriptor) {
      dup2(open("/dev/null", O_RDWR | O_CLOEXEC), descriptor);
    }
  }
  close(pipes[1]);
  char byte;
  (void)!read(pipes[0], &byte, 1);  // returns when the parent, and the launcher's child, is gone
  allocate(20);
  const int done = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  (void)!write(done, "done", 4);
  close(done);
  std::exit(0);
}

void helpers() {
  allocate(10);
  static char name[] = "/bin/true";
  static char* const words[] = {name, nullptr};
  for (int i = 0; i < wanted; ++i) {
    pid_t child = -1;
    if (posix_spawn(&child, name, nullptr, nullptr, words, environ) != 0) std::puts("no spawn");
    await(child, 0);
  }
}

const std::map<std::string, void (*)()> kWays = {
    {"fork", fork_many},
    {"fork under load", fork_under_load},
    {"vfork", vfork_exec},
    {"vfork that allocates", vfork_that_allocates},
    {"vfork that fails", vfork_exec_that_fails},
    {"spawn", spawn},
    {"exec with nothing", exec_with_nothing},
    {"exec with own environment", exec_with_own_environment},
    {"exec disabled", exec_disabled},
    {"helpers", helpers},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return 2;
  const std::string how = argv[1];
  if (argc > 2) wanted = std::atoi(argv[2]);
  if (how == "work") work(wanted);
  if (how == "outlive" || how == "daemon") {
    outlive(argv[2], how == "daemon");
    return 0;
  }
  const auto way = kWays.find(how);
  if (way == kWays.end()) return 2;
  way->second();
  std::puts("done");
  return 0;
}
