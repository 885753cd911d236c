// What the live blocks add up to over the steps: a curve for each stack in each place, and one for
// each place as a whole.
//
//   add(group, size), remove(group, size)    at each alloc and free
//   end_step()                               at each boundary: a point for what has changed
//   freeze(live)                             after the last one: of the blocks born in each bucket,
//                                            those still alive
//
// Memory is bounded by the distinct stacks, not by events or steps. HOT PATH: what is inline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/event.h"
#include "replay/history.h"
#include "replay/live_blocks.h"
#include "replay/sampled_blocks.h"
#include "replay/steps.h"
#include "trace/records.h"

namespace memscope {

class StepCurves {
 public:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  StepCurves() = default;
  // Steps before `first_step` are one bucket, and no part of levels and gaps; 0 = from the first.
  StepCurves(StepPlan plan, uint32_t first_step);

  uint32_t step() const { return step_; }          // the current one; plan().count() + 1 = open
  uint64_t step_end() const { return step_end_; }  // its last nanosecond; kNever: open
  const StepPlan& plan() const { return plan_; }
  const Buckets& buckets() const { return buckets_; }
  std::vector<Group>& groups() { return groups_; }
  const std::vector<Group>& groups() const { return groups_; }
  std::vector<Pool>& pools() { return pools_; }
  const std::vector<Pool>& pools() const { return pools_; }

  uint32_t group_of(StackId stack, Where where) {
    if (stack.value < first_group_.size()) [[likely]] {
      for (uint32_t at = first_group_[stack.value]; at != 0; at = groups_[at].next) {
        if (groups_[at].where == where) [[likely]]
          return at;
      }
    }
    return new_group(stack, where);
  }
  // Of blocks first seen at a window's start: their stack was never seen.
  uint32_t seeded_group_of(Where where);
  uint32_t pool_of(Where where) {
    const uint16_t index = pool_index_[where.packed()];
    return index != 0 ? index - 1u : new_pool(where);
  }
  Pool& pool_of_group(uint32_t group) { return pools_[groups_[group].pool]; }

  void add(uint32_t index, uint64_t size) {
    touch(groups_[index], index);
    add_folded(index, size);
  }
  // A block of the folded past: no change in this step.
  void add_folded(uint32_t index, uint64_t size) {
    Group& group = groups_[index];
    group.live_bytes += size;
    ++group.live_blocks;
    Pool& pool = pools_[group.pool];
    pool.live_bytes += size;
    ++pool.live_blocks;
  }
  void remove(uint32_t index, uint64_t size) {
    Group& group = groups_[index];
    touch(group, index);
    group.live_bytes -= size;
    --group.live_blocks;
    Pool& pool = pools_[group.pool];
    pool.live_bytes -= size;
    --pool.live_blocks;
  }
  // Of a sampled block that comes or goes (sampling.h).
  void add_noise(uint32_t index, uint64_t noise) {
    groups_[index].live_noise += noise;
    pool_of_group(index).live_noise += noise;
  }
  void remove_noise(uint32_t index, uint64_t noise) {
    groups_[index].live_noise -= noise;
    pool_of_group(index).live_noise -= noise;
  }
  // The pool's level after an event that changed it by so many bytes.
  void totals(Pool& pool, const Event& event, int64_t change) {
    if (event.has_totals) {
      told(pool, event, change);
    } else if (!pool.has_totals) {
      pool.now = pool.live_bytes;
    }
    pool.allocated.peak = std::max(pool.allocated.peak, pool.now);
    pool.step_min = std::min(pool.step_min, pool.now);
    pool.step_max = std::max(pool.step_max, pool.now);
  }
  // Where the pool does not tell its totals: the level is what is alive.
  void settle(uint32_t group) {
    Pool& pool = pool_of_group(group);
    if (!pool.has_totals) pool.now = pool.live_bytes;
  }

  // What a folded past says of a stack and of a pool (fold.h); a stack's groups are made in the
  // order of their first points. After the blocks: how a pool stands.
  void fold(const FoldRecord& record, StackId stack);
  void fold(const FoldedPoolRecord& record);
  void fold(const FoldedLevelRecord& record);
  // The step of this plan in which a block of the folded past was born.
  uint32_t step_of_folded(uint64_t step, uint64_t birth) const;

  // True where that was the last one.
  bool end_step();
  void freeze(const LiveBlocks& live, const SampledBlocks& sampled);
  // The levels at the end.
  void finish_pools();

 private:
  void touch(Group& group, uint32_t index) {
    if (group.touched != step_) {
      group.touched = step_;
      touched_.push_back(index);
    }
  }
  uint32_t new_group(StackId stack, Where where);
  uint32_t new_pool(Where where);
  void told(Pool& pool, const Event& event, int64_t change);
  void point(Group& group, uint32_t bucket);
  void point(Pool& pool, uint32_t bucket);
  // The bucket of a folded one that ends with this step; nullopt where it is not of this plan.
  std::optional<uint32_t> bucket_of_folded(uint64_t to_step) const;

  StepPlan plan_;
  Buckets buckets_;
  uint32_t first_step_ = 1;
  uint32_t step_ = 1;
  uint64_t step_end_ = kNever;
  std::vector<Group> groups_;
  std::vector<Pool> pools_;
  std::vector<uint32_t> first_group_;  // by StackId
  std::vector<uint32_t> touched_;      // groups changed in this step
  std::vector<uint32_t> seeded_groups_;
  std::vector<uint16_t> pool_index_;  // by Where::packed, + 1
};

}  // namespace memscope
