// Which blocks begin and end, as the dump tells it: every block has an allocation_id and a size,
// also where it ends, and a block that was made or freed while nothing was recorded has `shadow`.
//
//   recorded                     in the dump
//   alloc ... free               MALLOC ... FREE
//   alive at start()             MALLOC shadow at start()
//   freed after stop()           FREE shadow at the next start()
//   alive at the end             no FREE
//   alloc on a live address      FREE shadow of the old block first; its own FREE, if it comes
//   within
//                                the clocks' skew from another thread, is then swallowed
//   undone free                  MALLOC shadow of the same block
//   free of an unknown address   nothing, unless the input knows its size; counted
//
// Memory is bounded by the live blocks. HOT PATH: feed().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/event.h"
#include "replay/live_blocks.h"
#include "replay/order.h"
#include "tsl/robin_map.h"

namespace memscope {

struct DumpBlock {
  uint64_t id = 0;  // allocation_id: 1, 2, ...
  uint64_t size = 0;
  uint64_t birth = 0;   // ns since the epoch, 0 = before the hooks came
  uint32_t window = 0;  // the last recording window that saw it
  uint16_t where = 0;   // Where::packed
};

struct BlockChange {
  bool alloc = false;
  bool shadow = false;
  uint64_t time = 0;
  uint64_t addr = 0;
  DumpBlock block;
  uint64_t used = 0;  // bytes of the live blocks in this place, after the change

  Where where() const { return Where::unpack(block.where); }
};

class DumpBlocks {
 public:
  DumpBlocks();

  // What the event changes, in order; valid until the next call.
  std::span<const BlockChange> feed(const Event& event);
  // Before the events of `time`: what earlier ones left open. feed() includes it.
  std::span<const BlockChange> settle(uint64_t time) {
    changes_.clear();
    if (forget_pending_ && time > window_time_) [[unlikely]]
      forget_unseeded();
    return changes_;
  }
  // What is still due when there are no more events.
  std::span<const BlockChange> finish();

  const DumpBlock* find(uint64_t addr, Where where) const;
  // All live blocks by allocation_id, as shadow allocs at `time`.
  std::vector<BlockChange> live(uint64_t time) const;

  uint64_t frees_left_out() const { return frees_left_out_; }
  bool recording() const { return recording_; }
  uint64_t stop_time() const { return stop_time_; }  // of the last stop, 0 = none

 private:
  using Blocks = tsl::robin_map<uint64_t, DumpBlock, BlockKeyHash>;
  void alloc(const Event& event);
  void free(const Event& event);
  void seed(const Event& event);
  void undo(const Event& event);
  void window(const Event& event);
  void forget_unseeded();
  void begins(const DumpBlock& block, uint64_t addr, uint64_t time, bool shadow);
  void ends(const DumpBlock& block, uint64_t addr, uint64_t time, bool shadow);

  Blocks live_;
  AddressOrder order_;
  std::vector<BlockChange> changes_;
  std::vector<uint64_t> used_;  // by Where::packed
  uint64_t last_id_ = 0, frees_left_out_ = 0;

  uint32_t window_ = 0;
  bool recording_ = false, forget_pending_ = false;
  uint64_t window_time_ = 0, stop_time_ = 0;

  struct Freed {
    uint64_t key = 0;
    DumpBlock block;
  };
  static constexpr size_t kUndoDepth = 64;
  std::array<Freed, kUndoDepth> freed_{};
  size_t freed_at_ = 0;
};

}  // namespace memscope
