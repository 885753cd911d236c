#include "replay/step_curves.h"

#include "tsl/robin_map.h"

namespace memscope {

StepCurves::StepCurves(StepPlan plan, uint32_t first_step)
    : plan_(std::move(plan)),
      buckets_(plan_.count(), std::max(1u, first_step)),
      first_step_(std::max(1u, first_step)),
      groups_(1),  // 0 means "none" in Group::next and first_group_
      pool_index_(1u << 16) {
  if (plan_.count() == 0) return;
  if (plan_.begin != 0) {
    step_ = 0;
    step_end_ = plan_.begin - 1;
  } else {
    step_end_ = plan_.ends[0];
  }
}

uint32_t StepCurves::new_pool(Where where) {
  pools_.push_back({.where = where});
  pool_index_[where.packed()] = static_cast<uint16_t>(pools_.size());
  return static_cast<uint32_t>(pools_.size() - 1);
}

uint32_t StepCurves::new_group(StackId stack, Where where) {
  if (stack.value >= first_group_.size()) {
    first_group_.resize(std::max<size_t>(stack.value + size_t{1}, first_group_.size() * 2));
  }
  uint32_t* at = &first_group_[stack.value];
  while (*at != 0) at = &groups_[*at].next;
  const auto index = static_cast<uint32_t>(groups_.size());
  *at = index;  // before the vector moves
  groups_.push_back({.stack = stack, .where = where, .pool = pool_of(where)});
  return index;
}

uint32_t StepCurves::seeded_group_of(Where where) {
  for (const uint32_t index : seeded_groups_) {
    if (groups_[index].where == where) return index;
  }
  const auto index = static_cast<uint32_t>(groups_.size());
  groups_.push_back({.where = where, .seeded = true, .pool = pool_of(where)});
  seeded_groups_.push_back(index);
  return index;
}

void StepCurves::told(Pool& pool, const Event& event, int64_t change) {
  if (!pool.has_totals) {
    pool.has_totals = true;
    pool.allocated.start = event.allocated - static_cast<uint64_t>(change);
    if (change > 0 && event.allocated < static_cast<uint64_t>(change)) pool.allocated.start = 0;
    pool.allocated.peak = pool.allocated.start;
    pool.reserved.start = event.reserved;
  }
  pool.now = event.allocated;
  pool.reserved_now = event.reserved;
  pool.reserved.peak = std::max(pool.reserved.peak, event.reserved);
}

void StepCurves::point(Group& group, uint32_t bucket) {
  const CurvePoint point{bucket, group.live_blocks, group.live_bytes};
  if (!group.live.empty() && group.live.back().bucket == bucket) {
    group.live.back() = point;
  } else if (group.live.empty() ? point.bytes != 0
                                : group.live.back().bytes != point.bytes ||
                                      group.live.back().blocks != point.blocks) {
    group.live.push_back(point);
  }
}

void StepCurves::point(Pool& pool, uint32_t bucket) {
  const uint64_t low = std::min(pool.step_min, pool.now);
  const uint64_t high = std::max(pool.step_max, pool.now);
  pool.buckets.resize(bucket + 1, {pool.buckets.empty() ? 0 : pool.buckets.back().end, 0, 0, 0});
  PoolBucket& in = pool.buckets.back();
  const bool first = step_ == buckets_.first_step(bucket);
  in.min = first ? low : std::min(in.min, low);
  in.max = first ? high : std::max(in.max, high);
  in.end = pool.now;
  in.reserved_end = pool.reserved_now;
  if (step_ > 1 && step_ >= first_step_ && high != 0) {
    const double ratio = static_cast<double>(low) / static_cast<double>(high);
    const PoolGap gap{step_, ratio, low};
    if (pool.min_gap.step == 0 || ratio < pool.min_gap.ratio) pool.min_gap = gap;
    if (pool.max_gap.step == 0 || ratio > pool.max_gap.ratio) pool.max_gap = gap;
  }
  pool.step_min = kNever;
  pool.step_max = 0;
  if (step_ + 1 == first_step_) {
    // Here begins what is asked for.
    pool.allocated = {pool.now, pool.now, 0};
    pool.reserved = {pool.reserved_now, pool.reserved_now, 0};
  }
}

bool StepCurves::end_step() {
  if (step_ != 0) {
    const uint32_t bucket = buckets_.of_step(step_);
    for (const uint32_t index : touched_) point(groups_[index], bucket);
    for (Pool& pool : pools_) point(pool, bucket);
  }
  touched_.clear();
  ++step_;
  const bool last = step_ > plan_.count();
  step_end_ = last ? kNever : plan_.ends[step_ - 1];
  return last;
}

void StepCurves::freeze(const LiveBlocks& live) {
  struct Sum {
    uint64_t bytes = 0;
    uint32_t blocks = 0;
  };
  tsl::robin_map<uint64_t, Sum, BlockKeyHash> sums;
  for (const auto& [key, block] : live) {
    Group& group = groups_[block.group];
    if (block.step == 0) {
      group.survivors_of_start.bytes += block.size;
      ++group.survivors_of_start.blocks;
      continue;
    }
    Sum& sum = sums[uint64_t{block.group} << 32 | buckets_.of_step(block.step)];
    sum.bytes += block.size;
    ++sum.blocks;
  }
  for (const auto& [key, sum] : sums) {
    groups_[key >> 32].survivors.push_back({static_cast<uint32_t>(key), sum.blocks, sum.bytes});
  }
  for (Group& group : groups_) {
    std::sort(group.survivors.begin(), group.survivors.end(),
              [](const CurvePoint& a, const CurvePoint& b) { return a.bucket < b.bucket; });
  }
}

void StepCurves::finish_pools() {
  for (Pool& pool : pools_) {
    pool.allocated.end = pool.now;
    pool.allocated.peak = std::max(pool.allocated.peak, pool.now);
    pool.reserved.end = pool.reserved_now;
  }
}

}  // namespace memscope
