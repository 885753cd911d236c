// Restores the order of events on one address where two threads' clocks disagree.
//
// A free is recorded before it starts and an alloc after it returned, so events on one address are
// in order unless the clocks of two processors differ by more than the time between them. Then an
// alloc arrives for an address that is still live, and the free that belongs before it follows
// within the skew, from another thread:
//
//     thread A:            free X  (100)          as merged:   alloc X (99, B)   <- X is live
//     thread B:  alloc X  (99)                                 free  X (100, A)  <- the old block's
//
// Nothing is buffered: the alloc displaces the old block at once and leaves a note; the free that
// takes the note is swallowed. A note that nobody takes within the skew is one `ambiguous`: the
// block's real end was never seen. At most kMaxNotes notes are held. HOT PATH where `quiet()`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ids.h"

namespace memscope {

// How far two threads' clocks may disagree.
inline constexpr uint64_t kClockSkewNs = 3000;

class AddressOrder {
 public:
  static constexpr size_t kMaxNotes = 1024;

  explicit AddressOrder(uint64_t skew_ns) : skew_(skew_ns) {}

  bool quiet() const { return notes_.empty(); }
  uint64_t skew() const { return skew_; }

  // An alloc by `thread` found `key` live.
  void displaced(uint64_t key, ThreadId thread, uint64_t time);
  // True where the free belongs to a displaced block: it has been dealt with.
  bool takes(uint64_t key, ThreadId thread, uint64_t time);
  // A free found nothing at `key`. If another thread's alloc of it follows within the skew, the two
  // may have happened the other way round: that block's fate is unknown.
  void unknown_free(uint64_t key, ThreadId thread, uint64_t time);
  bool maybe_freed(uint64_t key, ThreadId thread, uint64_t time);
  // Cheap test before maybe_freed.
  bool unknown_near(uint64_t time) const { return time <= unknown_until_; }

  // Notes nobody took, those still open included.
  uint64_t ambiguous() const { return ambiguous_ + notes_.size(); }

 private:
  struct Note {
    uint64_t key, time;
    ThreadId thread;
  };
  void expire(uint64_t time);

  uint64_t skew_;
  uint64_t ambiguous_ = 0;
  uint64_t unknown_until_ = 0;
  std::vector<Note> notes_;
  static constexpr size_t kRecent = 16;
  Note recent_[kRecent] = {};
  size_t recent_at_ = 0;
};

}  // namespace memscope
