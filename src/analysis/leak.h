// Growth -> verdicts: one a root cause, over sites, layers, processes and ranks.
//
// What is counted is what is alive at the end of the input, was born after warm-up and has its
// whole history in the trace. Of nested layers the inner one's bytes count.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/candidates.h"
#include "analysis/diagnosis.h"

namespace memscope {

// A block of a leak, for the report lines kept compatible with msMemScope.
struct LeakedBlock {
  size_t input = 0;
  Where where;
  uint64_t addr = 0, size = 0;
  uint32_t step = 0;  // in which it was born
};

struct Leak {
  Verdict verdict;
  std::vector<LeakedBlock> blocks;  // by step; at most kMaxBlocks, the newest left out
  static constexpr size_t kMaxBlocks = 1000;
  struct Share {
    size_t input = 0;
    Where where;
    int64_t bytes = 0, blocks = 0;
  };
  std::vector<Share> shares;  // of the verdict's bytes, by input and place
};

struct FoundLeaks {
  std::vector<Leak> leaks;                   // everything that grows enough, largest first
  std::vector<SuspectGroup> suspect_groups;  // most telling first
};
FoundLeaks find_leaks(std::span<const LeakInput> inputs);

// The same for the same cause, layer and site's file, function and text.
std::string verdict_id(const Verdict& verdict);

}  // namespace memscope
