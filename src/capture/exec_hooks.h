// Follows exec and spawn: programs that this process becomes or starts get the agent whatever
// environment they are given (environment.h), and those that cannot be traced are noted
// (trace/untraced.h), or told to the launcher where there is no run directory yet.
//
//  * Only in processes that have the agent by preload; not in API mode.
//  * Hooks run between vfork() and exec, in memory that is the parent's: no allocation, no lock,
//    nothing of the agent's state is written, and what is called is what the program called.
//  * A program with MSMEMSCOPE_DISABLE=1 in its new environment is left alone.
//  * execl and its like are followed; what libc execs by itself (system(), popen()) has the
//    environment of this process.
#pragma once

#include <span>

#include "capture/elf_patch.h"

namespace memscope::capture::exec_hooks {

std::span<const SymbolHook> hooks();

}  // namespace memscope::capture::exec_hooks
