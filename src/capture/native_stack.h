// The calling thread's native frames, merged with its Python frames as a reader expects them.
// HOT PATH: node().
//
//   native frames         the interpreter's loops replaced by what they run
//   at::empty             at::empty
//   THPVariable_ones      THPVariable_ones
//   PyEval (loop 2)  -->  Python: make_block, train_step
//   _PyEval_Vector        _PyEval_Vector
//   slot_tp_call          slot_tp_call
//   PyEval (loop 1)  -->  Python: main, <module>
//
// Guarantees
//  * No lock, no allocation, no system call once a thread's stack is known and its addresses have
//    been seen; nothing outside the thread's own stack is read.
//  * The innermost `limit` native frames are kept, not counting the interpreter's loops; the Python
//    frames are always whole. The agent's own frames are left out. Where native frames are missing
//    before the limit, a frame in their place says so.
//  * While an object is being unloaded no native frames are recorded: an address is never unwound
//    or named by what lay there before. (Not noticed, until the next look at the loader's list: an
//    unloading that libc makes for itself, or that is made by a function pointer.)
//  * Off until prepare() has succeeded; costs nothing then but a test.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/agent_state.h"
#include "capture/module_map.h"
#include "capture/python_stack.h"
#include "capture/recorder.h"

namespace memscope::capture {

// A native frame among RawFrames: kNativeFrame | address of the call, and its module's serial. User
// addresses have at most 56 bits.
inline constexpr uint64_t kNativeFrame = uint64_t{1} << 63;

namespace native_stack {

// Memory for it all; within the agent's 8 MiB of tables.
size_t memory_bytes() noexcept;

// Finds out what is loaded and watches it from now on; then `limit` native frames are kept of each
// stack (0 = none any more). nullptr, or a static line saying why native stacks stay off. Not on
// the hot path; no lock held, since the loader's is taken.
const char* prepare(uint32_t limit) noexcept;
bool prepared() noexcept;

// The node of the calling thread's stack from `caller` on, native and Python, defining what is new
// to the lane; 0 for no stack or where a definition found no slot.
uint32_t node(Lane& lane, const CallerState& caller) noexcept;

// The module of a native frame of this very event.
bool module_of(const RawFrame& frame, Module* out) noexcept;

// Calls visit(module, data) for what is loaded; false where that changed meanwhile.
bool for_each_module(void (*visit)(const Module&, void* data), void* data) noexcept;

// By the agent's thread: looks at the loader's list where an address was met that is in no known
// object, or in any case if `always`.
void poll(bool always) noexcept;
void reset_after_fork() noexcept;

}  // namespace native_stack

// What a record function asks for: the node of the calling thread's stack, as far as it is wanted
// and can be had; else 0. HOT PATH.
inline uint32_t stack_node(Lane& lane, const CallerState& caller) noexcept {
  if (__builtin_expect(state.native_frames.load(std::memory_order_relaxed) != 0, 0)) {
    return native_stack::node(lane, caller);
  }
  return python_stack::on() ? python_stack_node(lane) : 0;
}

}  // namespace memscope::capture
