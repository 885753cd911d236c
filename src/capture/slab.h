// The hot slab: a fixed, pre-allocated file of slots that threads write and the agent's thread
// empties (trace/layout.h has its bytes). What is in it survives any death of the process.
//
//   acquire()          free -> owned     a lane, lock-free: two bitmaps of slots, lowest first, so
//   finish()           owned -> full     that few pages are used and stay warm
//   next_full()        ...               the agent's thread only
//   release()          full -> free      the agent's thread only, after the log has the bytes
//
// posix_fallocate reserves the space first: a full disk is an error here, not a SIGBUS later.
// The mapping is not inherited over fork().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/layout.h"

namespace memscope::capture {

struct Slot {
  SlotHeader* header = nullptr;
  uint64_t* records = nullptr;  // kSlotRecordBytes
  uint32_t index = 0;
};

class Slab {
 public:
  static constexpr uint32_t kMaxSlots = 4096;

  // Makes the file (0600, must not exist) with as many slots as fit in `bytes` and the reserve, and
  // touches the first ones. 0, or errno with nothing left behind.
  int create(const char* path, size_t bytes);
  // Touches the remaining pages, so that no thread faults on them. The agent's thread, once.
  void populate();
  bool mapped() const { return base_.load(std::memory_order_acquire) != nullptr; }
  size_t bytes() const { return mapped() ? bytes_ : 0; }  // of the file, all of it in memory
  uint32_t slot_count() const { return count_; }
  Slot slot(uint32_t index) const;

  // A free slot, emptied, with its header filled and its base at the present time; records == null
  // if there is none.
  Slot acquire(uint32_t lane, uint64_t lane_seq) noexcept;
  void finish(uint32_t index) noexcept;
  // The next full slot at or after `from`, or kMaxSlots.
  uint32_t next_full(uint32_t from) const noexcept;
  bool any_full() const noexcept { return next_full(0) != kMaxSlots; }
  void release(uint32_t index) noexcept;

  // One slot more, which no lane gets: lane 0's, for when the log takes nothing any more. Its
  // header is filled but for lane_seq. records == null without a slab.
  Slot reserve() const { return mapped() ? slot(count_) : Slot{}; }

  // How far the agent's thread has written a slot to the log.
  struct Drained {
    uint32_t to = 0;     // bytes
    uint64_t ticks = 0;  // clock there
  };
  Drained& drained(uint32_t index) { return drained_[index]; }

  void destroy(bool keep_file = false);  // unmaps, deletes the file
  void forget_after_fork();              // in the child: the mapping is not there
  const char* path() const { return path_; }

 private:
  std::atomic<char*> base_ = nullptr;  // set when the slots can be had
  uint32_t count_ = 0;
  size_t bytes_ = 0;
  std::atomic<uint64_t> free_[kMaxSlots / 64] = {};
  std::atomic<uint64_t> full_[kMaxSlots / 64] = {};
  Drained drained_[kMaxSlots] = {};
  char path_[4096] = {};
};

}  // namespace memscope::capture
