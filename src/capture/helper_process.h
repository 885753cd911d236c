// A process that works for the agent and that the program knows nothing of.
//
//   agent's thread --clone--> parent (no exit signal, in our memory) --vfork, exec--> helper
//
// Guarantees
//  * The program's wait() and waitpid(-1) neither return it nor wait for it, and no SIGCHLD comes:
//    our child has no exit signal, which those pass over (clone(2), "__WCLONE"), and the helper is
//    not our child. (An exec makes a child one that has SIGCHLD as its exit signal, so that the
//    helper itself cannot be like that.)
//  * As a rule the parent ends at once, and the helper goes to whoever takes in orphans here. Where
//    that would be the program itself (process 1 of a container, PR_SET_CHILD_SUBREAPER), the
//    parent stays, asleep, until the helper or the program has ended.
//  * It gets no descriptor, no terminal and no environment of the program's but LD_LIBRARY_PATH,
//    and is not traced. Nothing of the program's memory is copied (a large process with pinned
//    memory must not be forked).
//
// One at a time. The calling thread waits for the exec, so hold no lock that the program's threads
// take.
#pragma once

#include <sys/types.h>

namespace memscope::capture {

// Runs `arguments` (null-terminated, [0] an absolute path). Its pid, or 0 where it cannot be
// started.
pid_t start_helper(const char* const* arguments) noexcept;
// Whether the one started last is there. Does not wait.
bool helper_runs() noexcept;
// In a forked child: the helper is the parent's.
void forget_helper_after_fork() noexcept;

}  // namespace memscope::capture
