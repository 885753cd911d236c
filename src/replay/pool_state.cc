#include "replay/pool_state.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/mix_hash.h"
#include "tsl/robin_map.h"

namespace memscope {
namespace {

// More than this is split off a block of the large pool (should_split()): so up to it may stay.
constexpr uint64_t kMostUnsplit = kPoolSmallSize;
constexpr uint64_t kMaxSize = uint64_t{1} << 60;  // more is damage

class BackwardPool {
 public:
  BackwardPool(const PoolHistory& history, const PoolRounding& rounding)
      : history_(history), rounding_(rounding) {
    for (const PoolSegment& segment : history.segments) {
      PoolSegment kept = segment;
      kept.allocated = kept.active = kept.requested = 0;
      segments_[kept.addr] = kept;
    }
    for (const PoolBlock& block : history.blocks) blocks_[block.addr] = block;
  }

  PoolStart run() {
    for (size_t i = history_.entries.size(); i-- > 0;) undo(history_.entries[i], i);
    for (const auto& [addr, segment] : segments_) start_.segments.push_back(segment);
    for (const auto& [addr, block] : blocks_) start_.blocks.push_back(block);
    std::sort(start_.blocks.begin(), start_.blocks.end(),
              [](const PoolBlock& a, const PoolBlock& b) { return a.addr < b.addr; });
    std::reverse(start_.got.begin(), start_.got.end());
    find_sizes();
    return std::move(start_);
  }

 private:
  void undo(const PoolEntry& entry, uint64_t index);
  void undo_alloc(const PoolEntry& entry, uint64_t index);
  void undo_free(const PoolEntry& entry);
  void undo_map(const PoolEntry& entry);
  void undo_unmap(const PoolEntry& entry);
  void find_sizes();
  bool large_nearby(const PoolEntry& entry) const;

  const PoolHistory& history_;
  const PoolRounding& rounding_;
  std::map<uint64_t, PoolSegment> segments_;
  tsl::robin_map<uint64_t, PoolBlock, MixHash> blocks_;
  PoolStart start_;
};

void BackwardPool::undo(const PoolEntry& entry, uint64_t index) {
  if (entry.size >= kMaxSize || entry.addr > ~uint64_t{0} - kMaxSize) {
    ++start_.odd;
    return;
  }
  switch (entry.action) {
    case PoolAction::kAlloc:
      undo_alloc(entry, index);
      break;
    case PoolAction::kFreeCompleted:
      undo_free(entry);
      break;
    case PoolAction::kFreeRequested:
      // Where its end is not in the history either, the block is not in the pool's hands any more.
      if (const auto block = blocks_.find(entry.addr); block != blocks_.end()) {
        block.value().state = PoolBlockState::kAllocated;
      } else {
        ++start_.odd;
      }
      break;
    case PoolAction::kSegmentAlloc:
      if (segments_.erase(entry.addr) == 0) ++start_.odd;
      break;
    case PoolAction::kSegmentFree:
      segments_[entry.addr] = {.addr = entry.addr,
                               .size = entry.size,
                               .stream = entry.stream,
                               .pool = entry.pool,
                               .large = entry.size != kPoolSmallSegment};
      break;
    case PoolAction::kSegmentMap:
      undo_map(entry);
      break;
    case PoolAction::kSegmentUnmap:
      undo_unmap(entry);
      break;
    default:
      break;
  }
}

void BackwardPool::undo_alloc(const PoolEntry& entry, uint64_t index) {
  const auto block = blocks_.find(entry.addr);
  if (block == blocks_.end()) {
    ++start_.odd;
    return;
  }
  if (block->second.exact) start_.got.push_back({index, block->second.size});
  blocks_.erase(block);
}

void BackwardPool::undo_free(const PoolEntry& entry) {
  PoolBlock block{.addr = entry.addr,
                  .size = rounded_request(entry.size, rounding_),
                  .requested = entry.size,
                  .stream = entry.stream,
                  .pool = entry.pool,
                  .state = PoolBlockState::kPendingFree,
                  .exact = false};
  const auto [at, fresh] = blocks_.try_emplace(entry.addr, block);
  if (fresh) return;
  ++start_.odd;
  at.value() = block;
}

// Takes a range out of those that are mapped.
void BackwardPool::undo_map(const PoolEntry& entry) {
  auto range = segments_.upper_bound(entry.addr);
  if (range == segments_.begin()) {
    ++start_.odd;
    return;
  }
  --range;
  PoolSegment& whole = range->second;
  const uint64_t end = entry.addr + entry.size, whole_end = whole.addr + whole.size;
  if (!whole.expandable || end > whole_end) {
    ++start_.odd;
    return;
  }
  PoolSegment behind = whole;
  behind.addr = end;
  behind.size = whole_end - end;
  whole.size = entry.addr - whole.addr;
  if (whole.size == 0) segments_.erase(range);
  if (behind.size != 0) segments_[behind.addr] = behind;
}

// Whether a range is of the large pool: as the nearest one of its stream is.
bool BackwardPool::large_nearby(const PoolEntry& entry) const {
  constexpr int kLooks = 64;  // to each side
  auto up = segments_.lower_bound(entry.addr), down = up;
  const PoolSegment *above = nullptr, *below = nullptr;
  const auto fits = [&](const PoolSegment& segment) {
    return segment.expandable && segment.stream == entry.stream;
  };
  for (int i = 0; i < kLooks && up != segments_.end() && above == nullptr; ++i, ++up) {
    if (fits(up->second)) above = &up->second;
  }
  for (int i = 0; i < kLooks && down != segments_.begin() && below == nullptr; ++i) {
    --down;
    if (fits(down->second)) below = &down->second;
  }
  if (above == nullptr || below == nullptr) {
    return above != nullptr ? above->large : below != nullptr && below->large;
  }
  return above->addr - entry.addr < entry.addr - below->addr ? above->large : below->large;
}

// Adds a range; neighbours that it touches are the same one.
void BackwardPool::undo_unmap(const PoolEntry& entry) {
  PoolSegment range{.addr = entry.addr,
                    .size = entry.size,
                    .stream = entry.stream,
                    .pool = entry.pool,
                    .expandable = true};
  range.large = large_nearby(entry);
  const auto joins = [&](const PoolSegment& other) {
    return other.expandable && other.stream == range.stream && other.large == range.large;
  };
  auto next = segments_.lower_bound(entry.addr);
  if (next != segments_.begin()) {
    const auto before = std::prev(next);
    if (before->second.addr + before->second.size == range.addr && joins(before->second)) {
      range.size += before->second.size;
      range.addr = before->second.addr;
      segments_.erase(before);
    }
  }
  next = segments_.lower_bound(range.addr + range.size);
  if (next != segments_.end() && next->first == range.addr + range.size && joins(next->second)) {
    range.size += next->second.size;
    segments_.erase(next);
  }
  segments_[range.addr] = range;
}

// How far the blocks reach of which only the request is known.
void BackwardPool::find_sizes() {
  std::map<uint64_t, PoolBlock*> open;  // not known yet, by address
  size_t segment = 0;
  const std::vector<PoolSegment>& segments = start_.segments;
  for (size_t i = 0; i < start_.blocks.size(); ++i) {
    PoolBlock& block = start_.blocks[i];
    while (segment < segments.size() &&
           segments[segment].addr + segments[segment].size <= block.addr) {
      ++segment;
    }
    if (block.exact || segment == segments.size() || segments[segment].addr > block.addr) continue;
    const PoolSegment& in = segments[segment];
    // The small pool and expandable segments split off everything.
    if (!in.large || in.expandable) continue;
    uint64_t end = in.addr + in.size;
    if (i + 1 < start_.blocks.size()) end = std::min(end, start_.blocks[i + 1].addr);
    const uint64_t gap = end - std::min(end, block.addr + block.size);
    if (gap == 0) continue;
    if (gap <= kMostUnsplit) {
      block.size += gap;
    } else {
      open[block.addr] = &block;
    }
  }
  if (open.empty()) return;
  // A block that is put within the rest while this one lives tells where it ends.
  std::map<uint64_t, uint64_t> ends;
  for (const PoolEntry& entry : history_.entries) {
    if (open.empty()) break;
    if (entry.action == PoolAction::kFreeCompleted) {
      open.erase(entry.addr);
    } else if (entry.action == PoolAction::kAlloc) {
      auto at = open.upper_bound(entry.addr);
      if (at == open.begin()) continue;
      const PoolBlock& block = *(--at)->second;
      const uint64_t end = block.addr + block.size;
      if (entry.addr <= end || entry.addr - end > kMostUnsplit) continue;
      const auto [known, fresh] = ends.try_emplace(block.addr, entry.addr);
      if (!fresh) known->second = std::min(known->second, entry.addr);
    }
  }
  for (PoolBlock& block : start_.blocks) {
    if (const auto end = ends.find(block.addr); end != ends.end() && !block.exact) {
      block.size = end->second - block.addr;
    }
  }
}

}  // namespace

PoolStart work_back(const PoolHistory& history, const PoolRounding& rounding) {
  return BackwardPool(history, rounding).run();
}

bool pads_requests(const PoolHistory& history, const PoolRounding& rounding) {
  PoolRounding padded = rounding;
  padded.pad = kPoolNpuPad;
  PoolRounding plain = rounding;
  plain.pad = 0;
  size_t with = 0, without = 0;
  for (const PoolBlock& block : history.blocks) {
    if (block.requested >= kMaxSize) continue;
    const uint64_t as_padded = rounded_request(block.requested, padded);
    const uint64_t as_plain = rounded_request(block.requested, plain);
    if (as_padded == as_plain) continue;
    with += block.size == as_padded ? 1 : 0;
    without += block.size == as_plain ? 1 : 0;
  }
  return with > without;
}

}  // namespace memscope
