// A lane: what one thread needs to write events, and nothing it must share to do so. A thread takes
// a lane at its first event and keeps it until it ends; the lane then goes to the next thread.
// HOT PATH: reserve(), commit(), write_hot().
//
//   thread --t_lane--> Lane { cursor, end } --> its slot of the slab
//                           { StackTables   }     stacks it has already defined in its own
//                           numbering
//
// A record is written behind the cursor: its other words, a zero word after it, and last its first
// word. What a kill leaves behind therefore ends at a zero word.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/byte_sampler.h"
#include "capture/clock.h"
#include "capture/native_bounds.h"
#include "capture/slab.h"
#include "capture/stack_tables.h"
#include "trace/records.h"

namespace memscope::capture {

// Events that found no slot, by stack: the first few stacks, then all others under stack 0.
struct DropCount {
  uint32_t kind = 0, stack = 0;
  uint64_t count = 0, bytes = 0;
};

struct alignas(128) Lane {
  // -- written by the owning thread alone --
  uint64_t* cursor = nullptr;  // where the next record goes; null without a slot
  uint64_t* end = nullptr;
  uint64_t last_ticks = 0;
  uintptr_t hook = 0;      // address of the outermost HookScope the thread is inside of, or 0
  bool announced = false;  // the Lane record of this owner is written
  bool numbered = false;   // `stacks` holds what this trace has been told
  Slot slot;
  uint64_t lane_seq = 0;  // of the next slot
  StackTables stacks;
  static constexpr size_t kDropCounts = 16;
  DropCount drops[kDropCounts];
  size_t drops_used = 0;
  StackBounds own_stack;        // of the owner, once its native frames were asked for
  uint8_t own_stack_tries = 0;  // to find them
  ByteSampler sampler;          // of the host source
  int64_t host_told = 0;        // host_bytes when all lanes' were last added up

  // -- read by others --
  // Not 0 while the owner is between reading "recording" and having written what follows from it.
  std::atomic<uint32_t> busy = 0;
  std::atomic<uint64_t> events[16] = {};  // by hot kind, recorded
  std::atomic<uint64_t> dropped = 0;      // events, ever
  // Host memory that the owners allocated less what they freed, while there was no trace.
  std::atomic<int64_t> host_bytes = 0;
  std::atomic<int32_t> tid = 0;  // 0: the lane is free
  uint32_t index = 0;            // 1, 2, ...: its number in the trace
};

// A lane passes from a thread that has ended to the next one. The kernel orders the two (tgkill(2)
// says ESRCH once the first is gone), which ThreadSanitizer does not see: it is told.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
inline void note_lane_taken(Lane& lane) noexcept {
  __tsan_acquire(&lane);
}
inline void note_lane_used(Lane& lane) noexcept {
  __tsan_release(&lane);
}
#else
inline void note_lane_taken(Lane&) noexcept {}
inline void note_lane_used(Lane&) noexcept {}
#endif

namespace lanes {
// In a forked child: the thread that called fork() has no lane yet.
void forget_this_threads();
// For threads of the agent's own: none of their hooks is outermost, nothing of theirs is recorded.
void exclude_this_thread() noexcept;
// Takes back the lanes of threads that have ended. A reused thread id keeps a lane a little longer:
// until that thread ends. Changes errno.
void reap() noexcept;
}  // namespace lanes

// The calling thread's lane, taken if need be; null if all are in use.
Lane* lane_of_this_thread() noexcept;

// Writes the Lane record that starts the owner's numbering, if it is not written yet. False where
// no slot could be had.
bool announce(Lane& lane) noexcept;

// Room for `words` words and the zero behind them; null if no slot can be had. The pointer is to
// where word 0 goes. May make the trace (first event).
uint64_t* reserve_slow(Lane& lane, size_t words) noexcept;
inline uint64_t* reserve(Lane& lane, size_t words) noexcept {
  if (__builtin_expect(lane.cursor != nullptr && lane.cursor + words < lane.end, 1)) {
    return lane.cursor;
  }
  return reserve_slow(lane, words);
}

inline void commit(Lane& lane, uint64_t* at, size_t words, uint64_t word0) noexcept {
  __atomic_store_n(at + words, 0, __ATOMIC_RELAXED);
  __atomic_store_n(at, word0, __ATOMIC_RELEASE);
  lane.cursor = at + words;
}

// Moves the lane's clock to `ticks` (never backwards) and returns the step, bridging long gaps with
// a time record. `*at` moves with it. The caller has reserved kTimeWords more than it needs.
inline constexpr size_t kTimeWords = 2;
inline uint32_t advance_clock(Lane& lane, uint64_t ticks, uint64_t** at) noexcept {
  const uint64_t delta = ticks > lane.last_ticks ? ticks - lane.last_ticks : 0;
  lane.last_ticks += delta;
  if (__builtin_expect(delta >> 32 == 0, 1)) return static_cast<uint32_t>(delta);
  (*at)[1] = lane.last_ticks;
  commit(lane, *at, kTimeWords, hot_word(Kind::kTime, 0, 0));
  *at += kTimeWords;
  return 0;
}

// Writes one hot record. False where no slot could be had.
template <typename... Words>
inline bool write_hot(Lane& lane, Kind kind, uint32_t arg, uint64_t ticks,
                      Words... words) noexcept {
  constexpr size_t kWords = 1 + sizeof...(Words);
  uint64_t* at = reserve(lane, kWords + kTimeWords);
  if (__builtin_expect(at == nullptr, 0)) return false;
  const uint32_t dt = advance_clock(lane, ticks, &at);
  size_t next = 1;
  ((at[next++] = words), ...);
  commit(lane, at, kWords, hot_word(kind, arg, dt));
  std::atomic<uint64_t>& events = lane.events[static_cast<size_t>(kind)];
  events.store(events.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

inline void note_kind(Lane& lane, Kind kind) noexcept {
  lane.slot.header->kinds.fetch_or(uint64_t{1} << static_cast<unsigned>(kind),
                                   std::memory_order_relaxed);
}

// Writes one cold record at the present time. False where no slot could be had or it does not fit
// into one.
template <typename Record>
bool write_cold(Lane& lane, const Record& record) noexcept {
  const size_t words = encoded_words(record);
  uint64_t* at = reserve(lane, words + kTimeWords);
  if (at == nullptr) return false;
  note_kind(lane, Record::kKind);
  const uint32_t dt = advance_clock(lane, ticks_now(), &at);
  const uint64_t word0 = encode_record(record, 0, dt, at);
  commit(lane, at, words, word0);
  return true;
}

}  // namespace memscope::capture
