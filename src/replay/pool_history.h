// What a caching allocator (PyTorch's, torch_npu's) told of itself on one device: its segments and
// blocks at the end, and what it did before, in order; as a snapshot has it.
//
// Words are PyTorch's: a segment is what the allocator took from the driver, a block a piece of it;
// blocks are requested by the program in bytes (`requested`) and handed out rounded (`size`). The
// history is a ring: what came before its first entry is known by what it left behind only, which
// pool_state.h works out.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/where.h"

namespace memscope {

enum class PoolAction : uint8_t {
  kAlloc,          // addr, size as requested
  kFreeRequested,  // the program freed the block
  kFreeCompleted,  // it can be handed out again: no stream uses it any more
  kSegmentAlloc,   // from the driver
  kSegmentFree,
  kSegmentMap,  // a part of an expandable segment
  kSegmentUnmap,
  kOom,       // size rounded; no address; `addr` is what the device had left
  kSnapshot,  // somebody took a snapshot
  kAnnotate,  // text for the block at addr
  kOther,     // a newer version's: `text` is its name
};

struct PoolEntry {
  uint64_t addr = 0, size = 0;
  uint64_t time = 0;  // ns since the epoch; 0 where the recorder has no clock
  StackId stack{};
  StringId text{};                // what the user said of it, or an unknown action's name
  uint16_t stream = 0, pool = 0;  // indices into PoolTables
  PoolAction action = PoolAction::kOther;
  bool workspace = false;  // of torch_npu's other allocator, which has one block a stream
};

struct PoolSegment {
  uint64_t addr = 0, size = 0;
  uint16_t stream = 0, pool = 0;
  bool large = false;       // of the pool for more than 1 MiB
  bool expandable = false;  // one contiguous mapped range of an expandable segment
  bool workspace = false;
  StackId stack{};  // of the request that took it
  // As the allocator counts them, at the end; 0 in a state that was worked out.
  uint64_t allocated = 0, active = 0, requested = 0;
};

enum class PoolBlockState : uint8_t {
  kAllocated,
  kPendingFree,  // freed by the program, still in use on another stream
};

struct PoolBlock {
  uint64_t addr = 0, size = 0, requested = 0;
  uint16_t stream = 0, pool = 0;
  PoolBlockState state = PoolBlockState::kAllocated;
  bool exact = true;  // `size` was told; else it follows from what was requested
  bool workspace = false;
  StackId stack{};
};

// What entries refer to by number, of all devices.
struct PoolTables {
  struct PoolId {
    uint32_t first = 0, second = 0;  // (0, 0) is the default; (0, n) a MemPool; (n, 0) a graph's
    friend bool operator==(const PoolId&, const PoolId&) = default;
  };
  std::vector<uint64_t> streams{0};
  std::vector<PoolId> pools{PoolId{}};
};

struct PoolHistory {
  Device device;
  std::deque<PoolEntry> entries;      // oldest first
  std::vector<PoolSegment> segments;  // at the end, by address
  std::vector<PoolBlock> blocks;      // at the end, by address; free ones are left out
};

}  // namespace memscope
