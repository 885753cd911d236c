// What a source calls from inside a hook: enter, record, leave. HOT PATH: no lock, no system call,
// no allocation, no GIL, no look-up of symbols, whatever the event.
//
//   void New_hook(void* self, void* ptr, size_t bytes) {
//     HookScope scope(MEMSCOPE_CALLER());   // RAII: the real function may throw
//     original(self, ptr, bytes);
//     record_alloc(scope, kCpuTensor, ptr, bytes);   // after the real call returned
//   }
//   void Delete_hook(void* self, void* ptr) {
//     HookScope scope;
//     record_free(scope, kCpuTensor, ptr);           // before the real call starts
//     original(self, ptr);
//   }
//
// A hook entered while its thread is inside another one is not `outermost()`: the record functions
// then do nothing, so that one allocation is one event. A hook that was left by longjmp is noticed
// by the next one that is entered from less deep in the stack. Outside a recording they keep the
// shadow map of live blocks and write nothing. Errors are never reported to the caller: an event
// that finds no slot is counted by kind and stack.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/where.h"

namespace memscope::capture {

struct Lane;

// Where the function that calls a hook goes on: what the hook's own frame would be unwound to. A
// walk that begins here need not unwind the agent's own frames.
struct CallerState {
  uint64_t pc = 0, sp = 0, fp = 0;  // pc 0: not known, the walk begins where it is asked for
};

// The state of the caller of the function that this is written in, which it gives a frame pointer.
// On x86-64 every function that has one keeps its caller's where it points to (System V
// ABI, 3.2.2).
#if defined(__x86_64__)
#define MEMSCOPE_CALLER()                                                                    \
  (::memscope::capture::CallerState{reinterpret_cast<uint64_t>(__builtin_return_address(0)), \
                                    reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()),       \
                                    *static_cast<const uint64_t*>(__builtin_frame_address(0))})
#else
#define MEMSCOPE_CALLER() (::memscope::capture::CallerState{})
#endif

class HookScope {
 public:
  explicit HookScope(const CallerState& caller = {}) noexcept;
  ~HookScope() noexcept;
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  bool outermost() const { return outermost_; }
  Lane* lane() const { return lane_; }  // null where the process has none to give
  const CallerState& caller() const { return caller_; }

 private:
  bool enter() noexcept;

  Lane* lane_;
  bool outermost_;
  CallerState caller_;
};

// A block at `addr` was handed out. Zero sizes are ignored by the callee.
void record_alloc(HookScope& scope, Where where, const void* addr, uint64_t size) noexcept;
// The block at `addr` is about to be freed.
void record_free(HookScope& scope, Where where, const void* addr) noexcept;
// As above, with the pool's totals after the event, in bytes.
void record_pool_alloc(HookScope& scope, Where where, const void* addr, uint64_t size,
                       uint64_t allocated, uint64_t reserved) noexcept;
void record_pool_free(HookScope& scope, Where where, const void* addr, uint64_t allocated,
                      uint64_t reserved) noexcept;
// An allocation of `size` bytes failed.
void record_oom(HookScope& scope, Where where, uint64_t size, uint64_t allocated,
                uint64_t reserved) noexcept;

// Something is switched off or limited: one line on stderr, once, and a notice in the trace. Not
// for the hot path.
void notice(const char* what, const char* why) noexcept;

}  // namespace memscope::capture
