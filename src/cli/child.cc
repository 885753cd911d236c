#include "cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace memscope::cli {
namespace {

// SIGCONT is passed on as well: who continues the launcher alone means the program.
constexpr std::initializer_list<int> kPassedOn = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                                  SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP,
                                                  SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH};

// Signals taken by sigwaitinfo for as long as this lives; the child gets the dispositions and the
// mask that the launcher was started with.
class SignalsTaken {
 public:
  SignalsTaken() {
    sigemptyset(&set_);
    for (const int signal : kPassedOn) sigaddset(&set_, signal);
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &old_mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &old_child_);  // ignored, it would reap the child unseen
  }
  ~SignalsTaken() { restore(); }
  SignalsTaken(const SignalsTaken&) = delete;
  SignalsTaken& operator=(const SignalsTaken&) = delete;

  void restore() const {
    sigaction(SIGCHLD, &old_child_, nullptr);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  const sigset_t& set() const { return set_; }

 private:
  sigset_t set_{}, old_mask_{};
  struct sigaction old_child_ {};
};

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment, pid_t launcher,
                         int error_pipe, const SignalsTaken& signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(127);  // it died before the line above
  auto arguments = pointers(command);
  auto variables = pointers(environment);
  signals.restore();
  ::execvpe(arguments[0], arguments.data(), variables.data());
  const int error = errno;
  (void)!::write(error_pipe, &error, sizeof error);
  ::_exit(127);
}

bool from_terminal(int signal, const siginfo_t& info) {
  if (info.si_code != SI_KERNEL) return false;
  return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP || signal == SIGTSTP ||
         signal == SIGTTIN || signal == SIGTTOU || signal == SIGWINCH;
}

// Stops this process by the signal that stopped the child, so that the shell shows the right one.
void stop_like(int signal) {
  sigset_t only, before;
  sigemptyset(&only);
  sigaddset(&only, signal);
  struct sigaction standard {};
  struct sigaction old {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, &old);
  ::raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, &before);  // here it stops, here it continues
  sigprocmask(SIG_SETMASK, &before, nullptr);
  sigaction(signal, &old, nullptr);
}

// Follows the child until it has ended; its wait status.
int follow(pid_t child, const sigset_t& set) {
  for (;;) {
    int status = 0;
    const pid_t changed = ::waitpid(child, &status, WNOHANG | WUNTRACED);
    if (changed == child && !WIFSTOPPED(status)) return status;
    if (changed < 0 && errno != EINTR) return 0;
    if (changed == child) {
      // A stop by hand (SIGSTOP) is the program's own affair; a stop by the terminal is the job's.
      if (WSTOPSIG(status) != SIGSTOP) stop_like(WSTOPSIG(status));
      continue;
    }
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&set, &info);
    if (signal <= 0 || signal == SIGCHLD || from_terminal(signal, info)) continue;
    ::kill(child, signal);
  }
}

}  // namespace

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment) {
  ChildEnd end;
  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) {
    end.value = errno;
    return end;
  }
  const pid_t launcher = ::getpid();
  const SignalsTaken signals;
  end.pid = ::fork();
  if (end.pid == 0) become(command, environment, launcher, error_pipe[1], signals);
  end.value = errno;
  ::close(error_pipe[1]);
  if (end.pid < 0) {
    ::close(error_pipe[0]);
    return end;
  }
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(error_pipe[0], &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  ::close(error_pipe[0]);
  const int status = follow(end.pid, signals.set());
  if (got == sizeof error) {
    end.value = error;
  } else if (WIFSIGNALED(status)) {
    end.how = ChildEnd::How::kSignalled;
    end.value = WTERMSIG(status);
  } else {
    end.how = ChildEnd::How::kExited;
    end.value = WEXITSTATUS(status);
  }
  return end;
}

int end_like(const ChildEnd& end) {
  if (end.how == ChildEnd::How::kExited) return end.value;
  if (end.how == ChildEnd::How::kNotStarted) return end.value == ENOENT ? 127 : 126;
  // The program has left its core already; ours would replace it.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);  // for hosts that pipe cores and ignore the limit (core(5))
  ::signal(end.value, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, end.value);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(end.value);
  return 128 + end.value;  // a signal that does not kill us
}

}  // namespace memscope::cli
