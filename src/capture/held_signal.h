// A write past the program's file size limit (setrlimit(2), RLIMIT_FSIZE) raises SIGXFSZ, which
// ends the process unless it is ignored. While one of these lives, such a write of this thread's
// only fails with EFBIG; the program's handler never sees a signal that is ours.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace memscope::capture {

class SizeSignalHeld {
 public:
  SizeSignalHeld() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGXFSZ);
    sigset_t pending;
    theirs_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~SizeSignalHeld() {
    const int error = errno;  // of the write, which the caller wants to know
    const timespec at_once{};
    if (!theirs_) (void)sigtimedwait(&set_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SizeSignalHeld(const SizeSignalHeld&) = delete;
  SizeSignalHeld& operator=(const SizeSignalHeld&) = delete;

 private:
  sigset_t set_, before_;
  bool theirs_;
};

}  // namespace memscope::capture
