// What the record functions of every source are made of. HOT PATH.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/agent_state.h"
#include "capture/lane.h"

namespace memscope::capture {

// Says "between reading `recording` and acting on it": start() and stop() wait for it, with a
// membarrier on their side, so that here a plain store is enough.
class BusyScope {
 public:
  explicit BusyScope(Lane* lane) : lane_(lane) {
    lane_->busy.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~BusyScope() { lane_->busy.store(0, std::memory_order_release); }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  Lane* lane_;
};

inline bool recording() {
  return state.recording.load(std::memory_order_acquire) != 0;
}

// A lane with a slot to write to, so that the trace exists and knows what is alive before this
// event changes the shadow map.
inline bool ready(Lane& lane, size_t words) {
  return reserve(lane, words + kTimeWords) != nullptr && recording();
}

// Counts an event that found no slot, by kind and stack.
void count_drop(Lane& lane, Kind kind, uint32_t stack, uint64_t bytes);

}  // namespace memscope::capture
