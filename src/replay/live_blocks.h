// The blocks alive at this moment of the replay, by address. HOT PATH: one look-up an event.
//
// Layers nest, so a driver's segment and the pool's first block in it share an address: the key is
// the address mixed with where. Memory is bounded by the number of live blocks, 40 B each.
#pragma once

#include <cstdint>

#include "core/where.h"
#include "tsl/robin_map.h"

namespace memscope {

// What must be known of any live block to tell which event ends it (block_tracker.h).
struct BlockLife {
  uint64_t size : 48 = 0;
  uint64_t where : 16 = 0;        // Where::packed
  uint64_t birth = 0;             // ns since the epoch, 0 = before the hooks came
  uint32_t window : 31 = 0;       // the last recording window that saw it
  uint32_t fate_unknown : 1 = 0;  // its history has a hole: never accused

  Where place() const { return Where::unpack(static_cast<uint16_t>(where)); }
  bool preexisting() const { return birth == 0; }
};

// What replay keeps of it.
struct Block : BlockLife {
  uint32_t group = 0;  // index into the replay's groups
  uint32_t step = 0;   // in which it was born; 0 = before start() or the first range
  uint32_t owner = 0;  // index into the replay's owners, 0 = not told
};
static_assert(sizeof(Block) == 32);

// Addresses use 48 bits on x86-64 and AArch64 Linux unless a program asks for more; where the top
// bits are in use, two layers' keys could collide only for addresses 2^48 apart.
constexpr uint64_t block_key(uint64_t addr, Where where) {
  return addr ^ uint64_t { where.packed() } << 48;
}
constexpr uint64_t block_addr(uint64_t key, Where where) {
  return block_key(key, where);
}

struct BlockKeyHash {
  size_t operator()(uint64_t key) const noexcept {
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
  }
};

template <typename Kept>
using BlockMap = tsl::robin_map<uint64_t, Kept, BlockKeyHash>;
using LiveBlocks = BlockMap<Block>;

}  // namespace memscope
