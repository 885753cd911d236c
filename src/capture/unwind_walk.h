// The walk from frame to frame over the calling thread's own stack. HOT PATH.
//
// Guarantees
//  * Only words between the first frame's stack pointer and the stack's end are read, and each
//    frame lies above the one before it: the walk ends, and cannot fault.
//  * An address without a rule ends it; the result says whether the outermost frame was reached.
//  * One cache look-up a frame; on the first sight of an address the rule is read from its module
//    (no lock, no allocation, no system call).
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/unwind_cache.h"

// A walk reads its callers' frames, of which the sanitizers think that nobody may.
#define MEMSCOPE_READS_STACK \
  __attribute__((always_inline, no_sanitize("address"), no_sanitize("thread")))

namespace memscope::capture {

struct UnwindState {
  uint64_t pc = 0, sp = 0, fp = 0;
  uint64_t link = 0;   // aarch64's x30 in the first frame and in one a signal interrupted
  bool exact = false;  // pc is where execution stands or was interrupted, not a return address
};

// A frame as the visitor sees it.
struct NativeFrame {
  uint64_t pc;          // the call (return address minus one), or where a signal came
  uint64_t module;      // its serial
  uint64_t begin, end;  // the frame's part of the stack: its sp, and its caller's
};

enum class WalkEnd : uint8_t {
  kOutermost,  // the thread's first frame was reached
  kEnough,     // the visitor had enough
  kLost,       // an address without a rule, or a frame that is not above the last
};

namespace unwind_detail {

// The 48 bits of a user address: what AArch64's pointer authentication puts above them is not part
// of it.
inline constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;

// Where the kernel puts registers for a signal handler, from the handler's return on: `ucontext_t`
// at sp on x86-64; siginfo_t, then ucontext_t on AArch64 (arch/x86/include/asm/sigframe.h,
// arch/arm64/kernel/signal.c).
#if defined(__x86_64__)
inline constexpr uint64_t kSignalFp = 120, kSignalSp = 160, kSignalPc = 168, kSignalLink = 168;
#elif defined(__aarch64__)
inline constexpr uint64_t kSignalFp = 544, kSignalLink = 552, kSignalSp = 560, kSignalPc = 568;
#endif

class StackReader {
 public:
  [[gnu::always_inline]] StackReader(uint64_t low, uint64_t high) : low_(low), size_(high - low) {}
  [[gnu::always_inline]] bool holds(uint64_t address) const {
    return address - low_ < size_ && address % 8 == 0;
  }
  MEMSCOPE_READS_STACK bool load(uint64_t address, uint64_t* value) const {
    if (!holds(address)) return false;
    *value = *reinterpret_cast<const volatile uint64_t*>(address);
    return true;
  }
  uint64_t end() const { return low_ + size_; }

 private:
  uint64_t low_, size_;
};

}  // namespace unwind_detail

// The calling function's own state, for it and for who it calls to walk from.
#if defined(__x86_64__)
#define MEMSCOPE_UNWIND_HERE(state)                                          \
  do {                                                                       \
    asm volatile("lea 0(%%rip), %0; mov %%rsp, %1; mov %%rbp, %2"            \
                 : "=&r"((state).pc), "=&r"((state).sp), "=&r"((state).fp)); \
    (state).exact = true;                                                    \
  } while (false)
#elif defined(__aarch64__)
#define MEMSCOPE_UNWIND_HERE(state)                                                               \
  do {                                                                                            \
    asm volatile("adr %0, .; mov %1, sp; mov %2, x29; mov %3, x30"                                \
                 : "=&r"((state).pc), "=&r"((state).sp), "=&r"((state).fp), "=&r"((state).link)); \
    (state).exact = true;                                                                         \
  } while (false)
#endif

// The frame's end (its caller's sp), and `*state` moved on to the caller. 0 where there is none:
// the rule does not fit the stack.
[[gnu::always_inline]] inline uint64_t step_out(const unwind_detail::StackReader& stack,
                                                PackedRule rule, UnwindState* state) {
  using namespace unwind_detail;  // NOLINT(google-build-using-namespace)
  UnwindState next;
  if (rule.cfa() == UnwindRule::Cfa::kSignal) [[unlikely]] {
    next.exact = true;
    if (!stack.load(state->sp + kSignalPc, &next.pc) ||
        !stack.load(state->sp + kSignalSp, &next.sp) ||
        !stack.load(state->sp + kSignalFp, &next.fp) ||
        !stack.load(state->sp + kSignalLink, &next.link)) {
      return 0;
    }
  } else {
    const bool by_sp = rule.cfa() == UnwindRule::Cfa::kSp;
    next.sp = (by_sp ? state->sp : state->fp) + static_cast<uint64_t>(rule.cfa_offset());
    if (rule.cfa() == UnwindRule::Cfa::kFpValue && !stack.load(next.sp, &next.sp)) return 0;
    next.fp = state->fp;
    if (rule.fp() != UnwindRule::Fp::kSame) {
      const uint64_t from = rule.fp() == UnwindRule::Fp::kAtCfa ? next.sp : state->fp;
      if (!stack.load(from + static_cast<uint64_t>(rule.fp_offset()), &next.fp)) return 0;
    }
    if (rule.return_in_register()) [[unlikely]] {
      // Only the innermost function, or one that a signal interrupted, has not saved it.
      if (!state->exact) return 0;
      next.pc = state->link;
    } else if (!stack.load(next.sp + static_cast<uint64_t>(rule.return_offset()), &next.pc)) {
      return 0;
    }
  }
  next.pc &= kAddressMask;
  // A frame takes room, but for a leaf that keeps everything in registers; its caller is never
  // below it.
  const bool above = next.sp > state->sp || (next.sp == state->sp && rule.return_in_register());
  if (!above || next.sp > stack.end()) return 0;
  *state = next;
  return next.sp;
}

// Calls visit(frame) from the innermost frame outwards until it returns false. `look_up(pc, epoch,
// &rule, &module)` finds what the cache does not have; false where there is no module at pc.
template <typename LookUp, typename Visit>
[[gnu::always_inline]] inline WalkEnd walk_native(const UnwindCache& cache, UnwindState state,
                                                  uint64_t stack_end, LookUp look_up, Visit visit) {
  if (state.sp >= stack_end) return WalkEnd::kLost;
  const unwind_detail::StackReader stack(state.sp, stack_end);
  const uint64_t epoch = cache.epoch();
  for (;;) {
    const uint64_t pc = state.exact ? state.pc : state.pc - 1;
    if (state.pc == 0) return WalkEnd::kOutermost;
    PackedRule rule;
    uint64_t module = 0;
    if (!cache.find(pc, epoch, &rule, &module)) [[unlikely]] {
      if (!look_up(pc, epoch, &rule, &module)) return WalkEnd::kLost;
    }
    NativeFrame frame{pc, module, state.sp, stack_end};
    bool gone_on = false;
    if (rule.cfa() >= UnwindRule::Cfa::kSp) [[likely]] {
      frame.end = step_out(stack, rule, &state);
      gone_on = frame.end != 0;
      if (!gone_on) frame.end = frame.begin + 1;
    }
    if (!visit(frame)) return WalkEnd::kEnough;
    if (!gone_on) {
      return rule.cfa() == UnwindRule::Cfa::kEnd ? WalkEnd::kOutermost : WalkEnd::kLost;
    }
  }
}

}  // namespace memscope::capture
