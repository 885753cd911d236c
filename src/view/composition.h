// What memory is made of, as a tree: by owner, call stack, line, thread or size; at an instant, the
// difference of two, or over a window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "view/input_index.h"

namespace memscope::view {

enum class ComposeBy : uint8_t { kOwner, kStack, kStackInverted, kSite, kThread, kSize };
enum class Weight : uint8_t { kLive, kBlocks, kLeaked, kAllocs, kAllocBytes, kByteTime };
std::optional<ComposeBy> compose_from_name(std::string_view name);
std::optional<Weight> weight_from_name(std::string_view name);

struct CompositionQuery {
  ComposeBy by = ComposeBy::kOwner;
  Weight weight = Weight::kLive;
  uint32_t state = 0;            // live, blocks
  std::optional<uint32_t> base;  // live, blocks: the difference to this state
  uint64_t t0 = 0, t1 = 0;       // allocs, alloc_bytes, byte_time
  uint64_t leaked_after = 0;     // leaked: born then or later
  size_t limit = 4000;           // nodes
  std::optional<uint64_t> root;  // only this subtree
};

struct CompositionNode {
  uint64_t id = 0;      // the same for the same thing of one input; < 2^53
  int64_t parent = -1;  // index
  std::string name, detail;
  std::string_view kind;  // root owner frame site class other
  int64_t value = 0, base = 0, self = 0, blocks = 0;
  bool user = false;
  std::optional<std::string> file;
  std::optional<int64_t> line;
  uint32_t site = 0;
  uint32_t depth = 0;
};

struct Composition {
  std::vector<CompositionNode> nodes;  // parents first, heavier siblings first
  int64_t total = 0, base_total = 0;
};

// Empty where `root` is not there.
Composition compose(const InputIndex& input, const PoolIndex& pool, const CompositionQuery& query);

// visit(block, weight) for every block that counts.
template <typename Visit>
void weigh(const PoolIndex& pool, const CompositionQuery& query, uint32_t state, Visit&& visit) {
  switch (query.weight) {
    case Weight::kLive:
    case Weight::kBlocks: {
      const uint32_t blocks = pool.blocks_in(state);
      for (uint32_t block = 1; block <= blocks; ++block) {
        if (pool.free_event[block] < state) continue;
        visit(block, query.weight == Weight::kBlocks ? 1 : static_cast<int64_t>(pool.size(block)));
      }
      break;
    }
    case Weight::kLeaked: {
      const uint32_t first = pool.blocks_in(pool.state_before(query.leaked_after)) + 1;
      for (uint32_t block = first; block <= pool.blocks(); ++block) {
        if (pool.free_event[block] != kAlive) continue;
        if ((pool.sized[block] & kFateUnknown) != 0) continue;
        visit(block, static_cast<int64_t>(pool.size(block)));
      }
      break;
    }
    case Weight::kAllocs:
    case Weight::kAllocBytes: {
      const uint32_t first = pool.blocks_in(pool.state_before(query.t0)) + 1;
      const uint32_t last = pool.blocks_in(pool.state_before(query.t1));
      for (uint32_t block = first; block <= last; ++block) {
        if ((pool.sized[block] & kSeeded) != 0) continue;
        visit(block, query.weight == Weight::kAllocs ? 1 : static_cast<int64_t>(pool.size(block)));
      }
      break;
    }
    case Weight::kByteTime: {
      const uint32_t first = pool.state_before(query.t0);
      const uint32_t last = pool.blocks_in(pool.state_before(query.t1));
      for (uint32_t block = 1; block <= last; ++block) {
        const uint32_t end = pool.free_event[block];
        if (end < first) continue;
        const uint64_t from = std::max(query.t0, pool.begin_time(block));
        const uint64_t to = end == kAlive ? query.t1 : std::min(query.t1, pool.time[end]);
        if (from >= to) continue;
        visit(block, static_cast<int64_t>(static_cast<double>(pool.size(block)) *
                                          (static_cast<double>(to - from) * 1e-9)));
      }
      break;
    }
  }
}

}  // namespace memscope::view
