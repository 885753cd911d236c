// Where the calling thread's own stack ends, so that a walk over it never leaves it.
//
// Guarantees
//  * What is found holds for the thread's life: the end is the thread's control block, which lies
//    at the top of the stack that the thread was started on, or for the first thread the place
//    where the program's arguments begin.
//  * A thread that is on another stack when asked (a signal's, a coroutine's) has no bounds yet.
//  * No allocation, no lock; /proc/self/maps is read, once a thread. errno is kept.
#pragma once

#include <cstdint>

namespace memscope::capture {

struct StackBounds {
  uint64_t low = 0, high = 0;
  bool holds(uint64_t sp) const { return sp - low < high - low; }
};

namespace native_bounds {

// Before the first find(). False where the loader does not tell what is needed.
bool prepare() noexcept;
// Empty where the stack that `sp` lies on is not the thread's own.
StackBounds find(uint64_t sp) noexcept;

// Reads the beginning of a line of /proc/self/maps; false where it is none. `*writable`: may be
// read and written.
bool parse_mapping(const char* line, uint64_t* begin, uint64_t* end, bool* writable) noexcept;

}  // namespace native_bounds
}  // namespace memscope::capture
