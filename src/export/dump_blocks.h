// Which blocks begin and end, as the dump tells it: every block has an allocation_id and a size,
// also where it ends, and a block that was made or freed while nothing was recorded has `shadow`.
//
//   recorded                     in the dump
//   alloc ... free               MALLOC ... FREE
//   alive at start()             MALLOC shadow at start()
//   freed after stop()           FREE shadow at the next start()
//   alive at the end             no FREE
//   alloc on a live address      FREE shadow of the old block first
//   undone free                  MALLOC shadow of the same block
//   free of an unknown address   nothing, unless the input knows its size; counted
//
// Which block an event begins or ends is replay's word (block_tracker.h), so that dump and
// diagnosis see the same blocks. Memory is bounded by the live blocks. HOT PATH: feed().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/event.h"
#include "replay/block_tracker.h"

namespace memscope {

struct DumpBlock : BlockLife {
  uint64_t id = 0;            // allocation_id: 1, 2, ...
  uint64_t sampled_size = 0;  // Event::sampled_size
};

struct BlockChange {
  bool alloc = false;
  bool shadow = false;
  uint64_t time = 0;
  uint64_t addr = 0;
  DumpBlock block;
  uint64_t used = 0;  // bytes of the live blocks in this place, after the change

  Where where() const { return block.place(); }
};

class DumpBlocks {
 public:
  DumpBlocks() : used_(size_t{1} << 16) {}

  // What the event changes, in order; valid until the next call.
  std::span<const BlockChange> feed(const Event& event);
  // Before the events of `time`: what earlier ones left open. feed() includes it.
  std::span<const BlockChange> settle(uint64_t time) {
    changes_.clear();
    if (blocks_.forget_pending() && time > blocks_.windows().start) [[unlikely]]
      blocks_.forget_unseeded(*this);
    return changes_;
  }
  // What is still due when there are no more events.
  std::span<const BlockChange> finish();

  const DumpBlock* find(uint64_t addr, Where where) const;
  // All live blocks by allocation_id, as shadow allocs at `time`.
  std::vector<BlockChange> live(uint64_t time) const;

  uint64_t frees_left_out() const { return frees_left_out_; }
  bool recording() const { return blocks_.windows().recording; }
  uint64_t stop_time() const { return blocks_.windows().stop; }  // of the last stop, 0 = none

  // As a BlockSink.
  bool begins(DumpBlock& block, const Event& event);
  void ends(const DumpBlock& block, const BlockEnd& end);
  void returns(DumpBlock& block, const Event& event);
  void unknown_free(const Event& event);

 private:
  void change(bool alloc, bool shadow, const DumpBlock& block, uint64_t addr, uint64_t time);

  BlockTracker<DumpBlock> blocks_;
  std::vector<BlockChange> changes_;
  std::vector<uint64_t> used_;  // by Where::packed
  uint64_t last_id_ = 0, frees_left_out_ = 0;
};

}  // namespace memscope
