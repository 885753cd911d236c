#include "analysis/suspect_groups.h"

#include <algorithm>

namespace memscope {
namespace {

constexpr size_t kMaxFrames = 64;

// Spread over births, the oldest and the newest among them.
std::vector<SuspectBlock> sample(const Candidate& candidate, const ReplayResult& replay) {
  std::vector<SuspectBlock> blocks;
  const size_t count = candidate.live.size();
  for (size_t k = 0; k < std::min(kMaxSuspectBlocks, count); ++k) {
    const size_t at = count <= kMaxSuspectBlocks ? k : k * (count - 1) / (kMaxSuspectBlocks - 1);
    const LiveBlock& block = replay.live[candidate.live[at]];
    blocks.push_back({block.addr, block.size, block.birth});
  }
  return blocks;
}

}  // namespace

std::vector<SuspectGroup> suspect_groups(std::span<const LeakInput> inputs,
                                         std::span<const Candidate> candidates,
                                         const std::vector<std::vector<size_t>>& clusters) {
  enum { kLargest, kCompanion, kOther, kTurns };
  std::vector<SuspectGroup> groups;
  for (int turn = kLargest; turn < kTurns; ++turn) {
    for (const std::vector<size_t>& cluster : clusters) {
      for (size_t rank = 0; rank < cluster.size(); ++rank) {
        const Candidate& candidate = candidates[cluster[rank]];
        const int when = candidate.companion ? kCompanion : rank == 0 ? kLargest : kOther;
        if (when != turn || candidate.live.empty()) continue;
        // The glue knows Python objects by their tensors' memory.
        if (candidate.where.layer == Layer::kHost) continue;
        if (groups.size() == kMaxSuspectGroups) return groups;
        const LeakInput& in = inputs[candidate.input];
        SuspectGroup group;
        if (candidate.site != 0) group.site = in.sites->frame(candidate.site);
        group.stack = in.sites->describe_stack(candidate.stack, kMaxFrames);
        group.blocks = sample(candidate, *in.replay);
        groups.push_back(std::move(group));
      }
    }
  }
  return groups;
}

}  // namespace memscope
