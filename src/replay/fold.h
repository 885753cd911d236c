// Folding: what is older than the disk budget allows becomes a curve for every stack (a point for
// each of at most 256 buckets of steps) and the blocks that are alive where the past ends.
//
// Replay of a folded trace gives what replay of the whole one would: the same live blocks, the same
// live bytes of each stack and pool at the ends of the buckets, the same counts. It can, because a
// bucket is a power of two of steps: a longer run merges buckets in pairs and needs no boundary
// that an earlier fold did not keep. What only single events tell (the life of a block that is
// dead, the level between two steps) is gone, and TraceInfo::folded says up to when.
//
// Made by a process of its own (`msmemscope offline-fold`, started by the agent), never in the
// program: it needs memory for the live blocks and stacks. fold_log.h has what is done to the
// files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/result.h"

namespace memscope {

struct FoldReport {
  bool folded = false;                         // false: too little would be won
  uint64_t bytes_before = 0, bytes_after = 0;  // of the files that were replaced
  uint64_t steps = 0;                          // in the folded past
};

// Folds the process's trace so that about `keep_bytes` of its closed files stay as they are.
Result<FoldReport> fold_trace(const std::filesystem::path& directory, uint64_t keep_bytes);

}  // namespace memscope
