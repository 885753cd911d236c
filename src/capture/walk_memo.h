// The last walk over a thread's stack, so that the next one need not repeat what has not changed
// since: successive events of a thread share nearly all of their callers. HOT PATH.
//
//   steps_[0]  the outermost frame       { pc, sp, fp: the state in it; module;
//   ...                                    the words of the stack from which the state of the
//   steps_[n-1]  the innermost             frame above it came }
//
// A frame's caller follows from its pc, sp and fp (where its rule asks for that) and from those
// words alone: its return address, and its caller's fp where it is saved. A walk that comes to a
// state which is noted here therefore goes on as that one did for as long as the words still hold
// what they held: a load and a comparison a word, instead of a look-up and an unwinding step. Where
// the whole walk would be the last one's again, what its caller made of that one (`summary`) need
// not be made anew either.
//
// Guarantees
//  * The frames visited, and how the walk ends, are those of walk_native().
//  * Only words of the stack above the first frame's stack pointer are read.
//  * What was noted of another stack, or before the cache of rules began a new epoch, is forgotten.
//  * A walk that a longjmp cuts short leaves a memo that holds less, never one that is wrong.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/unwind_walk.h"

namespace memscope::capture {

class alignas(128) WalkMemo {
 public:
  // walk_native(), by what is noted, and noting anew. One thread's own.
  template <typename LookUp, typename Visit>
  [[gnu::always_inline]] inline WalkEnd walk(const UnwindCache& cache, UnwindState state,
                                             uint64_t stack_end, LookUp look_up, Visit visit);

  // What was made of the last walk, if one from `state` would now visit the same frames and reach
  // the outermost; 0 where it might not.
  [[gnu::always_inline]] inline uint64_t summary(const UnwindCache& cache, const UnwindState& state,
                                                 uint64_t stack_end) const;
  // What was made of the walk that just ended, at the outermost frame, for summary(); not 0.
  void summarize(uint64_t summary) { summary_ = noted_ ? summary : 0; }

  size_t steps() const { return count_; }

 private:
  static constexpr size_t kSteps = 128, kFresh = 128;

  struct Step {
    uint64_t pc, sp, fp, module;
    uint64_t return_at, fp_at;  // where the caller's pc and fp lie; 0 = no caller, no saved fp
    // All bits where what is further out follows from fp too; none where the function keeps data of
    // its own in it and its caller's on the stack.
    uint64_t fp_mask;
    [[gnu::always_inline]] bool is(uint64_t its_pc, uint64_t its_fp) const {
      return pc == its_pc && ((fp ^ its_fp) & fp_mask) == 0;
    }
  };
  enum class Met : uint8_t { kEnd, kEnough, kChanged };

  // Where the words lie that lead on from `state` by `rule`. False for the rules that are not
  // noted: signal frames, a return address in a register, a CFA read from the stack.
  static bool note(const UnwindState& state, PackedRule rule, uint64_t module, Step* step) {
    *step = {state.pc, state.sp, state.fp, module, 0, 0, 0};
    if (rule.cfa() == UnwindRule::Cfa::kEnd) return true;
    const bool by_sp = rule.cfa() == UnwindRule::Cfa::kSp;
    if ((!by_sp && rule.cfa() != UnwindRule::Cfa::kFp) || rule.return_in_register()) return false;
    const uint64_t cfa = (by_sp ? state.sp : state.fp) + static_cast<uint64_t>(rule.cfa_offset());
    step->return_at = cfa + static_cast<uint64_t>(rule.return_offset());
    if (rule.fp() != UnwindRule::Fp::kSame) {
      step->fp_at = (rule.fp() == UnwindRule::Fp::kAtCfa ? cfa : state.fp) +
                    static_cast<uint64_t>(rule.fp_offset());
    }
    if (!by_sp || rule.fp() != UnwindRule::Fp::kAtCfa) step->fp_mask = ~uint64_t{0};
    return true;
  }

  // Visits the frames from steps_[*at] on. kChanged: *at is the frame of which something else is
  // above now; it has not been visited.
  template <typename Visit>
  [[gnu::always_inline]] inline Met follow(const unwind_detail::StackReader& stack, size_t* at,
                                           Visit& visit) const;

  void keep(size_t kept, size_t fresh, bool whole) {
    if (kept + fresh > kSteps) {
      kept = fresh = 0;
      whole = false;
    }
    count_ = kept;
    for (size_t i = fresh; i-- > 0;) steps_[kept++] = fresh_[i];
    whole_ = whole;
    count_ = kept;
    noted_ = !exact_;
  }

  size_t count_ = 0;
  bool whole_ = false;  // steps_[0] has no caller; else it was not asked for
  bool exact_ = false;  // the last walk began where execution stood, which is not noted
  bool noted_ = false;  // the steps are the last walk's, from its first frame on
  uint64_t epoch_ = 0, stack_end_ = 0;
  uint64_t summary_ = 0;  // of a walk that began at steps_[count_ - 1]; 0 = none
  Step steps_[kSteps] = {};
  Step fresh_[kFresh] = {};
};

template <typename Visit>
[[gnu::always_inline]] inline WalkMemo::Met WalkMemo::follow(
    const unwind_detail::StackReader& stack, size_t* at, Visit& visit) const {
  for (;; --*at) {
    const Step& step = steps_[*at];
    NativeFrame frame{step.pc - 1, step.module, step.sp, stack.end()};
    const bool last = *at == 0;
    if (last && !whole_) return Met::kChanged;
    if (step.return_at != 0) {
      uint64_t pc = 0, fp = step.fp;
      if (!stack.load(step.return_at, &pc)) return Met::kChanged;
      if (step.fp_at != 0 && !stack.load(step.fp_at, &fp)) return Met::kChanged;
      pc &= unwind_detail::kAddressMask;
      if (last) {
        if (pc != 0) return Met::kChanged;
      } else {
        const Step& caller = steps_[*at - 1];
        if (!caller.is(pc, fp)) return Met::kChanged;
        frame.end = caller.sp;
      }
    }
    if (!visit(frame)) return Met::kEnough;
    if (last) return Met::kEnd;
  }
}

inline uint64_t WalkMemo::summary(const UnwindCache& cache, const UnwindState& state,
                                  uint64_t stack_end) const {
  if (summary_ == 0 || !whole_ || state.exact || count_ == 0 || state.sp >= stack_end) return 0;
  if (epoch_ != cache.epoch() || stack_end_ != stack_end) return 0;
  const Step* step = &steps_[count_ - 1];
  if (step->sp != state.sp || !step->is(state.pc, state.fp)) return 0;
  const unwind_detail::StackReader stack(state.sp, stack_end);
  for (;; --step) {
    uint64_t pc = 0, fp = step->fp;
    if (step->return_at != 0 && !stack.load(step->return_at, &pc)) return 0;
    if (step->fp_at != 0 && !stack.load(step->fp_at, &fp)) return 0;
    pc &= unwind_detail::kAddressMask;
    if (step == steps_) return pc == 0 ? summary_ : 0;
    if (step->return_at == 0 || !step[-1].is(pc, fp)) return 0;
  }
}

template <typename LookUp, typename Visit>
[[gnu::always_inline]] inline WalkEnd WalkMemo::walk(const UnwindCache& cache, UnwindState state,
                                                     uint64_t stack_end, LookUp look_up,
                                                     Visit visit) {
  summary_ = 0;
  noted_ = false;
  exact_ = state.exact;
  if (state.sp >= stack_end) return WalkEnd::kLost;
  const unwind_detail::StackReader stack(state.sp, stack_end);
  const uint64_t epoch = cache.epoch();
  if (epoch_ != epoch || stack_end_ != stack_end) {
    count_ = 0;
    epoch_ = epoch;
    stack_end_ = stack_end;
  }
  size_t left = count_;  // noted steps that may still be met
  size_t fresh = 0;
  bool noting = true;
  for (;;) {
    const uint64_t pc = state.exact ? state.pc : state.pc - 1;
    if (state.pc == 0) {
      if (noting) keep(0, fresh, true);
      return WalkEnd::kOutermost;
    }
    while (left != 0 && steps_[left - 1].sp < state.sp) --left;
    if (left != 0 && !state.exact) {
      const Step& met = steps_[left - 1];
      if (met.sp == state.sp && met.is(state.pc, state.fp)) {
        size_t at = left - 1;
        const Met how = follow(stack, &at, visit);
        if (how != Met::kChanged) {
          if (noting) keep(left, fresh, whole_);
          return how == Met::kEnd ? WalkEnd::kOutermost : WalkEnd::kEnough;
        }
        // By the rules from here on, until a noted state is met again further out: what is saved of
        // fp is often the program's data.
        for (size_t i = left; noting && i-- > at + 1;) {
          noting = fresh < kFresh;
          if (noting) fresh_[fresh++] = steps_[i];
        }
        state = {.pc = steps_[at].pc, .sp = steps_[at].sp, .fp = steps_[at].fp};
        left = at;
        continue;
      }
    }
    PackedRule rule;
    uint64_t module = 0;
    if (!cache.find(pc, epoch, &rule, &module)) [[unlikely]] {
      if (!look_up(pc, epoch, &rule, &module)) return WalkEnd::kLost;
    }
    NativeFrame frame{pc, module, state.sp, stack_end};
    if (noting && !state.exact) {
      noting = fresh < kFresh && note(state, rule, module, &fresh_[fresh]);
      ++fresh;
    }
    bool gone_on = false;
    if (rule.cfa() >= UnwindRule::Cfa::kSp) [[likely]] {
      frame.end = step_out(stack, rule, &state);
      gone_on = frame.end != 0;
      if (!gone_on) frame.end = frame.begin + 1;
    }
    if (!visit(frame)) {
      if (noting) keep(0, fresh, false);
      return WalkEnd::kEnough;
    }
    if (!gone_on) {
      if (rule.cfa() != UnwindRule::Cfa::kEnd) return WalkEnd::kLost;
      if (noting) keep(0, fresh, true);
      return WalkEnd::kOutermost;
    }
  }
}

}  // namespace memscope::capture
