// The call stacks a lane has already defined, in the lane's own numbering. HOT PATH: find().
//
//   hash of a raw stack  -> node          what find() asks: one look-up an event
//   (parent node, frame) -> node          the trie: stacks that share callers share nodes
//   frame key            -> frame
//   hash of a text       -> string
//
// All tables are fixed arrays with linear probing, keys 64-bit hashes (two different stacks of a
// lane meet with probability n^2 / 2^65). When one is full the lane forgets them all and starts a
// new numbering, so memory is bounded however long the job runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/python_stack.h"

namespace memscope::capture {

// A fixed hash table from non-zero keys to non-zero ids.
class FixedTable {
 public:
  static constexpr size_t bytes_for(size_t places) {
    return places * (sizeof(uint64_t) + sizeof(uint32_t));
  }
  void attach(void* memory, size_t places);  // `places` a power of two
  void clear();
  uint32_t find(uint64_t key) const {
    for (size_t at = key & mask_;; at = (at + 1) & mask_) {
      if (keys_[at] == key) return ids_[at];
      if (keys_[at] == 0) return 0;
    }
  }
  // The key is not in it. The table is never filled beyond three quarters: ask full() first.
  void insert(uint64_t key, uint32_t id);
  bool full() const { return used_ > mask_ - mask_ / 4; }
  uint32_t used() const { return static_cast<uint32_t>(used_); }

 private:
  uint64_t* keys_ = nullptr;
  uint32_t* ids_ = nullptr;
  size_t mask_ = 0, used_ = 0;
};

struct StackTables {
  FixedTable raw, nodes, frames, strings;
  uint32_t next_node = 1, next_frame = 1, next_string = 1;
  RawFrame* walked = nullptr;  // max_frames, scratch for the walk

  // Sizes of a lane's tables; the first lanes get large ones.
  struct Sizes {
    size_t raw, nodes, frames, strings;
  };
  static constexpr Sizes kLarge = {4096, 8192, 4096, 2048};
  static constexpr Sizes kSmall = {512, 2048, 1024, 1024};
  // The deepest stack that fits into empty tables.
  size_t max_frames = kMaxFrames;
  static constexpr size_t max_frames_for(const Sizes& sizes) {
    return kMaxFrames < sizes.frames / 2 ? kMaxFrames : sizes.frames / 2;
  }
  static size_t bytes_for(const Sizes& sizes);
  void attach(void* memory, const Sizes& sizes);
  void forget();  // all tables empty, numbering from 1
  bool full() const { return raw.full() || nodes.full() || frames.full() || strings.full(); }
};

struct Lane;

// The node of the calling thread's Python stack, defining what is new to the lane; 0 for no stack
// or where a definition found no slot.
uint32_t python_stack_node(Lane& lane) noexcept;

// Defines the stack whose `count` frames lie in the lane's `walked`, Python and native
// (native_stack.h), innermost first, and keeps its node under `hash`. As above.
uint32_t define_stack(Lane& lane, size_t count, uint64_t hash) noexcept;

}  // namespace memscope::capture
