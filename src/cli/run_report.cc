#include "cli/run_report.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

namespace memscope::cli {
namespace {

// SIGTERM first: a dump removes its drafts.
void give_up(pid_t child) {
  ::kill(child, SIGTERM);
  constexpr int kTries = 100;  // 10 ms each
  for (int i = 0; i < kTries; ++i) {
    if (::waitpid(child, nullptr, WNOHANG) == child) return;
    ::usleep(10'000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

ReportEnd with_time_limit(const std::function<int()>& report, unsigned seconds) {
  sigset_t set;
  sigset_t old_mask;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, &old_mask);
  struct sigaction standard {};
  struct sigaction old_child {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &old_child);

  const pid_t child = ::fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &old_mask, nullptr);
    int status = 2;
    try {
      status = report();
    } catch (...) {  // memory ran out: the program's exit status must not change for it
    }
    ::_exit(status);
  }
  ReportEnd end = ReportEnd::kFailed;
  using Clock = std::chrono::steady_clock;
  constexpr unsigned kWeek = 7 * 24 * 3600;
  const auto deadline =
      Clock::now() + std::chrono::seconds(seconds == kNoTimeLimit ? kWeek : seconds);
  while (child > 0) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) end = ReportEnd::kDone;
      // Who interrupts often means the whole group.
      if (WIFSIGNALED(status) && sigismember(&set, WTERMSIG(status)) == 1) {
        end = ReportEnd::kInterrupted;
      }
      break;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    const timespec wait{left > 0 ? left / 1'000'000'000 : 0, left > 0 ? left % 1'000'000'000 : 0};
    const int signal = left > 0 ? sigtimedwait(&set, nullptr, &wait) : -1;
    if (signal == SIGCHLD || (signal < 0 && left > 0)) continue;
    give_up(child);
    end = signal < 0 ? ReportEnd::kTooLong : ReportEnd::kInterrupted;
    break;
  }
  // One interrupt is enough: it must not end the launcher as well, whose status is the program's.
  const timespec at_once{};
  while (end == ReportEnd::kInterrupted && sigtimedwait(&set, nullptr, &at_once) > 0) {
  }
  sigaction(SIGCHLD, &old_child, nullptr);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  return end;
}

}  // namespace memscope::cli
