// The state of a pool where its history begins: the end, which is known, undone entry by entry.
//
//   PoolStart start = work_back(history, rounding);
//
// An alloc undone takes its block away; a free undone brings one back, of which the request is
// known and the size follows (`exact` false): as rounded, up to the next block or the segment's end
// where that is too near to have been split off, or up to where something else was put while it
// lived. Segments and mapped ranges likewise. What does not fit (an alloc of which the end knows
// nothing) is counted in `odd` and left out.
//
// Promises: linear in the entries but for look-ups by address; any history is fine. Memory: what is
// alive at a time, and 16 B for each block that is alive at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/pool_history.h"
#include "replay/pool_rules.h"

namespace memscope {

struct PoolStart {
  std::vector<PoolSegment> segments;  // by address
  std::vector<PoolBlock> blocks;      // by address
  // Blocks that are alive at the end: what their alloc got. By entry, ascending.
  struct Got {
    uint64_t entry = 0, size = 0;
  };
  std::vector<Got> got;
  uint64_t odd = 0;
};

PoolStart work_back(const PoolHistory& history, const PoolRounding& rounding);

// Whether a history's blocks are those of torch_npu, which pads requests; judged by the blocks that
// are alive at the end.
bool pads_requests(const PoolHistory& history, const PoolRounding& rounding);

}  // namespace memscope
