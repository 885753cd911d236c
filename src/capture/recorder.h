// What a source calls from inside a hook: enter, record, leave. HOT PATH: no lock, no system call,
// no allocation, no GIL, no look-up of symbols, whatever the event.
//
//   void New_hook(void* self, void* ptr, size_t bytes) {
//     HookScope scope;                 // RAII: the real function may throw
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

class HookScope {
 public:
  HookScope() noexcept;
  ~HookScope() noexcept;
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  bool outermost() const { return outermost_; }
  Lane* lane() const { return lane_; }  // null where the process has none to give

 private:
  bool enter() noexcept;

  Lane* lane_;
  bool outermost_;
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
