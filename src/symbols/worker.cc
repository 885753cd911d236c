#include "symbols/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace memscope {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  size_t index = 0;
  pid_t pid = -1;
  int fd = -1;
  std::string bytes;
};

uint64_t mapped_bytes() {
  unsigned long long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int what, uint64_t value) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(what), &now) != 0) return;
  now.rlim_cur = std::min<rlim_t>(value, now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &now);
}

[[noreturn]] void be_child(const std::function<void(size_t, int)>& work, size_t index, int fd,
                           uint64_t memory, int64_t seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Our handlers are the parent's business; a crash is to be one.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGABRT, SIGFPE,
                           SIGILL, SIGPIPE, SIGXCPU}) {
    ::signal(number, SIG_DFL);
  }
  // What an assertion prints is of no use to anybody.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
  }
  limit(RLIMIT_CORE, 0);
  if (memory != 0) limit(RLIMIT_AS, memory);
  limit(RLIMIT_CPU, static_cast<uint64_t>(seconds) + 1);
  try {
    work(index, fd);
  } catch (...) {  // out of memory: what was written counts
    ::_exit(1);
  }
  ::_exit(0);
}

bool start(Child& child, const std::function<void(size_t, int)>& work, const WorkerLimits& limits) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const uint64_t mapped = mapped_bytes();
  const auto left = limits.deadline - Clock::now();
  const int64_t seconds =
      std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::seconds>(left).count());
  child.pid = ::fork();
  if (child.pid == 0) {
    be_child(work, child.index, ends[1], mapped == 0 ? 0 : mapped + limits.memory, seconds);
  }
  ::close(ends[1]);
  if (child.pid < 0) {
    ::close(ends[0]);
    return false;
  }
  child.fd = ends[0];
  return true;
}

enum class Stream { kMore, kEnd, kTooMuch };

// Reads a piece; waits for one.
Stream drain(Child& child, size_t most) {
  std::array<char, 1 << 16> buffer;
  const ssize_t got = ::read(child.fd, buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return Stream::kMore;
  if (got <= 0) return Stream::kEnd;
  if (child.bytes.size() + static_cast<size_t>(got) > most) return Stream::kTooMuch;
  child.bytes.append(buffer.data(), static_cast<size_t>(got));
  return Stream::kMore;
}

bool readable(const Child& child) {
  pollfd one{child.fd, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// It is gone afterwards; whether it came to its end by itself.
bool finish(Child& child, bool kill) {
  ::close(child.fd);
  if (kill) ::kill(child.pid, SIGKILL);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void run_workers(size_t count, const WorkerLimits& limits,
                 const std::function<void(size_t, int)>& work,
                 const std::function<void(size_t, const std::string&, WorkerEnd)>& done) {
  std::vector<Child> children;
  size_t next = 0;
  while (next < count || !children.empty()) {
    if (Clock::now() >= limits.deadline) {
      for (Child& child : children) {
        ::kill(child.pid, SIGKILL);  // or it may go on writing for ever
        while (readable(child) && drain(child, limits.answer_bytes) == Stream::kMore) {
        }
        finish(child, true);
        done(child.index, child.bytes, WorkerEnd::kNoTime);
      }
      for (; next < count; ++next) done(next, {}, WorkerEnd::kNoTime);
      return;
    }
    while (next < count && children.size() < std::max(1u, limits.at_once)) {
      Child child{.index = next++};
      if (start(child, work, limits)) {
        children.push_back(std::move(child));
      } else {
        done(child.index, {}, WorkerEnd::kDied);
      }
    }
    std::vector<pollfd> wait;
    wait.reserve(children.size());
    for (const Child& child : children) wait.push_back({child.fd, POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(limits.deadline - Clock::now());
    const auto timeout = static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 60'000));
    if (::poll(wait.data(), wait.size(), timeout) <= 0) continue;
    for (size_t i = children.size(); i-- > 0;) {
      if (wait[i].revents == 0) continue;
      const Stream stream = drain(children[i], limits.answer_bytes);
      if (stream == Stream::kMore) continue;
      Child child = std::move(children[i]);
      children.erase(children.begin() + static_cast<ptrdiff_t>(i));
      const bool whole = finish(child, stream == Stream::kTooMuch);
      done(child.index, child.bytes, whole ? WorkerEnd::kExited : WorkerEnd::kDied);
    }
  }
}

}  // namespace memscope
