#include "replay/step_curves.h"

#include <algorithm>

#include "tsl/robin_map.h"

namespace memscope {

StepCurves::StepCurves(StepPlan plan, uint32_t first_step)
    : plan_(std::move(plan)),
      buckets_(plan_.count(), std::max(1u, first_step)),
      first_step_(std::max(1u, first_step)),
      groups_(1),  // 0 means "none" in Group::next and first_group_
      pool_index_(1u << 16) {
  if (plan_.count() == 0) return;
  if (plan_.folded != 0) {
    step_ = plan_.folded + 1;
    step_end_ = plan_.folded < plan_.count() ? plan_.ends[plan_.folded] : kNever;
  } else if (plan_.begin != 0) {
    step_ = 0;
    step_end_ = plan_.begin - 1;
  } else {
    step_end_ = plan_.ends[0];
  }
}

// -- a folded past --------------------------------------------------------------------------------

std::optional<uint32_t> StepCurves::bucket_of_folded(uint64_t to_step) const {
  const uint64_t step = (to_step + plan_.stride - 1) / plan_.stride;
  if (!plan_.has_curves || step == 0 || step > plan_.folded) return std::nullopt;
  return buckets_.of_step(static_cast<uint32_t>(step));
}

uint32_t StepCurves::step_of_folded(uint64_t step, uint64_t birth) const {
  if (step == 0) return 0;
  if (!plan_.has_curves) {
    if (plan_.begin > birth) return 0;
    const auto end = std::lower_bound(plan_.ends.begin(), plan_.ends.end(), birth);
    return static_cast<uint32_t>(end - plan_.ends.begin()) + 1;
  }
  return static_cast<uint32_t>(
      std::min<uint64_t>((step + plan_.stride - 1) / plan_.stride, plan_.folded + uint64_t{1}));
}

void StepCurves::fold(const FoldRecord& record, StackId stack) {
  const Where where = Where::unpack(static_cast<uint16_t>(record.where));
  const uint32_t index = record.seeded != 0 ? seeded_group_of(where) : group_of(stack, where);
  Group& group = groups_[index];
  group.allocs += record.allocs;
  group.stands_for += record.stands_for;
  const auto bucket = bucket_of_folded(record.to_step);
  if (record.changed != 0 || (!bucket && record.to_step != 0)) touch(group, index);
  if (!bucket || (!group.live.empty() && group.live.back().bucket > *bucket)) return;
  const CurvePoint point{*bucket, static_cast<uint32_t>(record.live_blocks), record.live_bytes,
                         record.noise};
  if (!group.live.empty() && group.live.back().bucket == *bucket) {
    group.live.back() = point;
  } else {
    group.live.push_back(point);
  }
}

void StepCurves::fold(const FoldedPoolRecord& record) {
  Pool& pool = pools_[pool_of(Where::unpack(static_cast<uint16_t>(record.where)))];
  const auto bucket = bucket_of_folded(record.to_step);
  if (!bucket || *bucket + size_t{1} < pool.buckets.size()) return;
  const PoolBucket next{record.min, record.max, record.end, record.reserved_end};
  if (*bucket + size_t{1} == pool.buckets.size()) {
    PoolBucket& in = pool.buckets.back();
    in = {std::min(in.min, next.min), std::max(in.max, next.max), next.end, next.reserved_end};
  } else {
    pool.buckets.resize(*bucket, {pool.buckets.empty() ? 0 : pool.buckets.back().end, 0, 0, 0});
    pool.buckets.push_back(next);
  }
}

void StepCurves::fold(const FoldedLevelRecord& record) {
  Pool& pool = pools_[pool_of(Where::unpack(static_cast<uint16_t>(record.where)))];
  pool.has_totals = record.has_totals != 0;
  pool.allocated = {record.start, record.peak, 0};
  pool.reserved = {record.reserved_start, record.reserved_peak, 0};
  pool.peak_noise = record.peak_noise;
  pool.now = record.now;
  pool.reserved_now = record.reserved_now;
  pool.step_min = record.step_min;
  pool.step_max = record.step_max;
  if (!plan_.has_curves || plan_.from == StepsFrom::kTime) return;
  const auto gap = [&](uint64_t step, double ratio, uint64_t bytes) {
    return step < first_step_ ? PoolGap{} : PoolGap{static_cast<uint32_t>(step), ratio, bytes};
  };
  pool.min_gap = gap(record.least_step, record.least_ratio, record.least_bytes);
  pool.max_gap = gap(record.most_step, record.most_ratio, record.most_bytes);
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
  const CurvePoint point{bucket, group.live_blocks, group.live_bytes, group.live_noise};
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
    pool.peak_noise = pool.live_noise;
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

void StepCurves::freeze(const LiveBlocks& live, const SampledBlocks& sampled) {
  struct Sum {
    uint64_t bytes = 0, noise = 0;
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
  sampled.for_each([&](uint64_t key, uint64_t recorded) {
    const auto at = live.find(key);
    if (at == live.end() || at->second.step == 0) return;
    const Block& block = at->second;
    sums[uint64_t{block.group} << 32 | buckets_.of_step(block.step)].noise +=
        sampling_noise(block.size, recorded);
  });
  for (const auto& [key, sum] : sums) {
    groups_[key >> 32].survivors.push_back(
        {static_cast<uint32_t>(key), sum.blocks, sum.bytes, sum.noise});
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
