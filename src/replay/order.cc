#include "replay/order.h"

#include <algorithm>

namespace memscope {

void AddressOrder::expire(uint64_t time) {
  const auto old = [&](const Note& note) { return note.time + skew_ < time; };
  ambiguous_ += std::erase_if(notes_, old);
}

void AddressOrder::displaced(uint64_t key, ThreadId thread, uint64_t time) {
  expire(time);
  if (notes_.size() >= kMaxNotes) {
    notes_.erase(notes_.begin());
    ++ambiguous_;
  }
  notes_.push_back({key, time, thread});
}

bool AddressOrder::takes(uint64_t key, ThreadId thread, uint64_t time) {
  expire(time);
  // The oldest note first: frees of one address happen in the order of its blocks.
  const auto note = std::find_if(notes_.begin(), notes_.end(),
                                 [&](const Note& n) { return n.key == key && n.thread != thread; });
  if (note == notes_.end()) return false;
  notes_.erase(note);
  return true;
}

void AddressOrder::unknown_free(uint64_t key, ThreadId thread, uint64_t time) {
  recent_[recent_at_++ % kRecent] = {key, time, thread};
  unknown_until_ = std::max(unknown_until_, time + skew_);
}

bool AddressOrder::maybe_freed(uint64_t key, ThreadId thread, uint64_t time) {
  for (Note& note : recent_) {
    if (note.key == key && note.thread != thread && note.time + skew_ >= time) {
      note = {};
      ++ambiguous_;
      return true;
    }
  }
  return false;
}

}  // namespace memscope
