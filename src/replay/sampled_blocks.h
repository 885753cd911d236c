// Of the live blocks that were sampled (core/sampling.h), the size as it was recorded: beside the
// map of all live blocks, so that a run without sampling pays nothing for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/sampling.h"
#include "replay/live_blocks.h"

namespace memscope {

class SampledBlocks {
 public:
  bool empty() const { return blocks_.empty(); }

  // The block's part of the noise, as it comes, goes and comes back after all.
  uint64_t begins(uint64_t key, uint64_t scaled, uint64_t recorded) {
    blocks_[key] = recorded;
    return sampling_noise(scaled, recorded);
  }
  uint64_t ends(uint64_t key, uint64_t scaled) {
    const auto at = blocks_.find(key);
    if (at == blocks_.end()) return 0;
    const uint64_t recorded = at->second;
    blocks_.erase(key, BlockKeyHash{}(key));
    ended_[ended_at_++ % ended_.size()] = {key, recorded};
    return sampling_noise(scaled, recorded);
  }
  uint64_t returns(uint64_t key, uint64_t scaled) {
    for (size_t back = 1; back <= ended_.size(); ++back) {
      const Ended& ended = ended_[(ended_at_ + ended_.size() - back) % ended_.size()];
      if (ended.key == key && ended.recorded != 0) return begins(key, scaled, ended.recorded);
    }
    return 0;
  }

  // 0: it was not sampled.
  uint64_t recorded(uint64_t key) const {
    const auto at = blocks_.find(key);
    return at == blocks_.end() ? 0 : at->second;
  }
  // visit(key, recorded)
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [key, recorded] : blocks_) visit(key, recorded);
  }

 private:
  struct Ended {
    uint64_t key = 0, recorded = 0;
  };
  BlockMap<uint64_t> blocks_;
  std::array<Ended, 64> ended_{};  // as many as the tracker can undo
  size_t ended_at_ = 0;
};

}  // namespace memscope
