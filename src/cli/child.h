// The launcher as a parent: starts a program, passes signals on, stops when it stops, and ends as
// it ended, so that a shell, a scheduler or a terminal sees no difference.
//
//   terminal -- INT QUIT HUP TSTP --> process group: launcher and program alike (not passed on)
//   kill(launcher, TERM USR1 ...) --> launcher --> program
//   program stopped by the terminal --> launcher stops too; the shell continues both
//   launcher killed --> program killed (PR_SET_PDEATHSIG)
//
// No signal handler: signals are blocked and taken by sigwaitinfo. One at a time, from the main
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace memscope::cli {

struct ChildEnd {
  enum class How { kExited, kSignalled, kNotStarted } how = How::kNotStarted;
  int value = 0;  // exit status, signal, or errno
  pid_t pid = 0;
};

// Runs `command` (PATH is searched) in `environment` ("NAME=value") until it ends.
ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment);

// As exec takes words: valid as long as they are, a null at the end.
std::vector<char*> pointers(const std::vector<std::string>& words);

// Ends this process as the child ended: returns its exit status, or dies of the same signal without
// a core file of our own.
int end_like(const ChildEnd& end);

}  // namespace memscope::cli
