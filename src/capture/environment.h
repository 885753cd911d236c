// The environment of programs that this one becomes or starts: what the launcher left in ours is
// put back where the program took it out, so that the agent is loaded there too.
//
//  * Remembered once, when a preloaded agent is loaded; later changes of the program's are its own.
//  * No allocation, no lock, nothing shared: used between vfork() and exec.
//
//    what the program gives                what its child gets
//    OWN=1 LD_PRELOAD=libother.so   --->   LD_PRELOAD=<agent>:libother.so OWN=1
//                                          MSMEMSCOPE_CONFIG=... MSMEMSCOPE_RUN_ID=... ...
#pragma once

#include <cstddef>

namespace memscope::capture::environment {

// From the preloaded agent's constructor.
void remember() noexcept;
// Whether remember() found a preload to keep up. False in API mode.
bool followed() noexcept;

// Whether programs with this environment shall be left as they are: MSMEMSCOPE_DISABLE is set.
bool is_opted_out(const char* const* variables) noexcept;

enum class Preload { kKeepUp, kTakeOut };

// What is_complete() does not say of `variables`: room needed for another list of them, in bytes.
size_t bytes_needed(const char* const* variables) noexcept;
// Another list in `room`, of bytes_needed() bytes, aligned for pointers: our variables that are
// missing are added, and the agent is put into LD_PRELOAD or taken out of it. The strings of
// `variables` are referred to.
char** complete(char* const* variables, Preload preload, void* room) noexcept;
// Whether nothing would change.
bool is_complete(const char* const* variables, Preload preload) noexcept;

}  // namespace memscope::capture::environment
