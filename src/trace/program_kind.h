// What kind of program a file holds: whether the agent can be preloaded into it, and whether it
// would still run.
//
//  * The file is read, never run, and is not trusted: a header that makes no sense is an ordinary
//    program, which the kernel may then refuse.
//  * No allocation, no lock, nothing shared, errno kept: the agent asks between vfork() and exec.
#pragma once

#include <cstddef>

namespace memscope {

enum class ProgramKind {
  kOrdinary,      // also: cannot be told
  kScript,        // "#! interpreter": is what that is
  kStatic,        // without a loader that could preload anything
  kOtherRights,   // set-user-id and the like: its loader ignores LD_PRELOAD (ld.so(8))
  kOtherMachine,  // its loader complains about our library
  kOtherLibc,     // its loader is not glibc's, and refuses to run with our library
};

// For kScript `interpreter` gets the path behind "#!". `size` is at least 2.
ProgramKind program_kind(const char* path, char* interpreter, size_t size) noexcept;

// "is statically linked"; null for a kind that can be traced.
const char* why_untraced(ProgramKind kind) noexcept;

// A preload that cannot be had is silent for most kinds, and does harm to these.
inline bool preload_harms(ProgramKind kind) noexcept {
  return kind == ProgramKind::kOtherMachine || kind == ProgramKind::kOtherLibc;
}

}  // namespace memscope
