// HOT PATH: feed, alloc, free.
#include "replay/replay.h"

#include <algorithm>
#include <limits>

#include "trace/records.h"

namespace memscope {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
// Frees of unknown addresses remembered in a window, against seeds that arrive after them.
constexpr size_t kMaxFreedInWindow = 1u << 16;

}  // namespace

Replay::Replay(StepPlan plan, ReplayOptions options, TimeOf time_of)
    : options_(options), time_of_(std::move(time_of)), order_(options_.skew_ns) {
  pool_index_.resize(1u << 16);
  result_.groups.resize(1);  // 0 means "none" in Group::next and first_group_
  result_.plan = std::move(plan);
  if (options_.last_step != 0 && options_.last_step < result_.plan.count()) {
    result_.plan.ends.resize(options_.last_step);
  } else {
    options_.last_step = 0;
  }
  result_.buckets = Buckets(result_.plan.count());
  result_.last_step = result_.plan.count();
  if (result_.plan.count() == 0) {
    step_end_ = kNever;
  } else if (result_.plan.begin != 0) {
    step_ = 0;
    step_end_ = result_.plan.begin - 1;
  } else {
    step_end_ = result_.plan.ends[0];
  }
}

void Replay::feed(const Event& event) {
  if (result_.range.first == 0) result_.range.first = event.time;
  result_.range.last = event.time;
  if (event.time > step_end_) [[unlikely]]
    pass_time(event.time);
  switch (event.kind) {
    case EventKind::kAlloc:
      alloc(event);
      break;
    case EventKind::kFree:
      free(event);
      break;
    case EventKind::kSeed:
      seed(event);
      break;
    case EventKind::kWindow:
      window(event);
      break;
    case EventKind::kRecord:
      record(event);
      break;
  }
}

// -- blocks ---------------------------------------------------------------------------------------

uint32_t Replay::pool_of(Where where) {
  uint16_t& index = pool_index_[where.packed()];
  if (index == 0) [[unlikely]] {
    result_.pools.push_back({.where = where});
    index = static_cast<uint16_t>(result_.pools.size());
  }
  return index - 1u;
}

uint32_t Replay::group_of(StackId stack, Where where) {
  if (stack.value >= first_group_.size()) [[unlikely]] {
    first_group_.resize(std::max<size_t>(stack.value + size_t{1}, first_group_.size() * 2));
  }
  uint32_t* at = &first_group_[stack.value];
  while (*at != 0) {
    if (result_.groups[*at].where == where) [[likely]]
      return *at;
    at = &result_.groups[*at].next;
  }
  const uint32_t index = static_cast<uint32_t>(result_.groups.size());
  *at = index;  // before the vector moves
  result_.groups.push_back({.stack = stack, .where = where, .pool = pool_of(where)});
  return index;
}

uint32_t Replay::seeded_group_of(Where where) {
  for (uint32_t index : seeded_groups_) {
    if (result_.groups[index].where == where) return index;
  }
  const uint32_t index = static_cast<uint32_t>(result_.groups.size());
  result_.groups.push_back({.where = where, .seeded = true, .pool = pool_of(where)});
  seeded_groups_.push_back(index);
  return index;
}

void Replay::touch(Group& group, uint32_t index) {
  if (group.touched != step_) {
    group.touched = step_;
    touched_.push_back(index);
  }
}

void Replay::totals(Pool& pool, const Event& event, int64_t change) {
  if (event.has_totals) {
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
  } else if (!pool.has_totals) {
    pool.now = pool.live_bytes;
  }
  pool.allocated.peak = std::max(pool.allocated.peak, pool.now);
  pool.step_min = std::min(pool.step_min, pool.now);
  pool.step_max = std::max(pool.step_max, pool.now);
}

void Replay::add(Group& group, uint64_t size) {
  group.live_bytes += size;
  ++group.live_blocks;
  Pool& pool = result_.pools[group.pool];
  pool.live_bytes += size;
  ++pool.live_blocks;
}

void Replay::remove(const Block& block) {
  Group& group = result_.groups[block.group];
  touch(group, block.group);
  group.live_bytes -= block.size;
  --group.live_blocks;
  Pool& pool = result_.pools[group.pool];
  pool.live_bytes -= block.size;
  --pool.live_blocks;
}

void Replay::alloc(const Event& event) {
  if (event.size == 0) return;
  if (options_.device && event.where.device != *options_.device) return;
  ++result_.events;
  const uint64_t key = block_key(event.addr, event.where);
  const auto [at, fresh] = live_.try_emplace(key);
  Block& block = at.value();
  if (!fresh) [[unlikely]] {
    remove(block);
    order_.displaced(key, event.thread, event.time);
    block = {};
  } else if (order_.unknown_near(event.time)) [[unlikely]] {
    block.fate_unknown = order_.maybe_freed(key, event.thread, event.time);
  }
  block.size = event.size & kSizeMask;
  block.birth = event.time;
  block.group = group_of(event.stack, event.where);
  block.step = step_;
  block.window = window_;
  Group& group = result_.groups[block.group];
  ++group.allocs;
  touch(group, block.group);
  add(group, block.size);
  totals(result_.pools[group.pool], event, static_cast<int64_t>(block.size));
}

void Replay::free(const Event& event) {
  if (options_.device && event.where.device != *options_.device) return;
  ++result_.events;
  const uint64_t key = block_key(event.addr, event.where);
  if (!order_.quiet() && order_.takes(key, event.thread, event.time)) [[unlikely]]
    return;
  const auto at = live_.find(key);
  if (at == live_.end()) [[unlikely]] {
    ++result_.unknown_frees;
    order_.unknown_free(key, event.thread, event.time);
    if (window_ != 0 && freed_in_window_.size() < kMaxFreedInWindow) {
      freed_in_window_[key] = event.time;
    }
    if (event.has_totals) totals(result_.pools[pool_of(event.where)], event, 0);
    return;
  }
  const Block block = at->second;
  remove(block);
  // Not by iterator: that looks for the next element, far away in a table that was once larger.
  live_.erase(key, BlockKeyHash{}(key));
  freed_[freed_at_++ % kUndoDepth] = {key, block};
  totals(result_.pools[result_.groups[block.group].pool], event, -static_cast<int64_t>(block.size));
}

void Replay::undo(const Event& event) {
  const auto record = decode_record<UndoRecord>(event.words);
  if (!record) return;
  const Where where = Where::unpack(static_cast<uint16_t>(record->where));
  const uint64_t key = block_key(record->addr, where);
  for (size_t back = 1; back <= kUndoDepth; ++back) {
    Freed& freed = freed_[(freed_at_ + kUndoDepth - back) % kUndoDepth];
    if (freed.key != key || freed.block.size == 0) continue;
    if (!live_.try_emplace(key, freed.block).second) return;
    Group& group = result_.groups[freed.block.group];
    touch(group, freed.block.group);
    add(group, freed.block.size);
    Pool& pool = result_.pools[group.pool];
    if (!pool.has_totals) pool.now = pool.live_bytes;
    freed = {};
    return;
  }
}

// -- windows --------------------------------------------------------------------------------------

void Replay::window(const Event& event) {
  constexpr uint64_t kStart = 1, kExit = 4;
  if (forget_pending_) forget_unseeded();
  freed_in_window_.clear();
  if (event.size == kStart) {
    if (stop_time_ != 0 && !recording_) {
      result_.side.gaps.push_back({stop_time_, event.time, "recording was stopped", true});
      forget_pending_ = true;
    }
    first_window_ = window_ == 0;
    ++window_;
    window_time_ = event.time;
    recording_ = true;
    result_.side.ended = "unknown";
    return;
  }
  if (recording_ || result_.side.ended == "unknown") {
    result_.side.ended = event.size == kExit ? "exit" : "stop";
  }
  if (recording_) stop_time_ = event.time;
  recording_ = false;
}

// What was alive at stop() and is not seeded at start() was freed in between.
void Replay::forget_unseeded() {
  forget_pending_ = false;
  for (auto at = live_.begin(); at != live_.end();) {
    if (at->second.window < window_ && at->second.birth <= stop_time_) {
      remove(at->second);
      at = live_.erase(at);
    } else {
      ++at;
    }
  }
  for (Pool& pool : result_.pools) {
    if (!pool.has_totals) pool.now = pool.live_bytes;
  }
}

void Replay::seed(const Event& event) {
  if (event.size == 0) return;
  if (options_.device && event.where.device != *options_.device) return;
  ++result_.events;
  const uint64_t key = block_key(event.addr, event.where);
  // Seeds are written while other threads go on: one that was freed meanwhile is not alive.
  if (!freed_in_window_.empty() && freed_in_window_.erase(key) != 0) return;
  const auto [at, fresh] = live_.try_emplace(key);
  Block& block = at.value();
  if (!fresh) {
    const uint64_t apart =
        block.birth > event.birth ? block.birth - event.birth : event.birth - block.birth;
    if (apart <= order_.skew() && block.size == (event.size & kSizeMask)) {
      block.window = window_;
      return;
    }
    if (block.window == window_ && block.birth >= window_time_) return;  // the seed is older
    remove(block);
  }
  block = {};
  block.size = event.size & kSizeMask;
  block.preexisting = event.birth == 0;
  block.fate_unknown = event.birth != 0;
  block.birth = event.birth;
  block.group = seeded_group_of(event.where);
  block.step = first_window_ ? 0 : step_;
  block.window = window_;
  if (block.preexisting) ++result_.preexisting;
  Group& group = result_.groups[block.group];
  touch(group, block.group);
  add(group, block.size);
  Pool& pool = result_.pools[group.pool];
  if (pool.has_totals) return;
  pool.now = pool.live_bytes;
  if (first_window_) pool.allocated.start = std::max(pool.allocated.start, pool.now);
  pool.allocated.peak = std::max(pool.allocated.peak, pool.now);
}

// -- records --------------------------------------------------------------------------------------

void Replay::record(const Event& event) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kUndo:
      undo(event);
      break;
    case Kind::kHolder:
      holder(event);
      break;
    default:
      result_.side.add(event, time_of_);
      break;
  }
}

void Replay::holder(const Event& event) {
  const auto record = decode_record<HolderRecord>(event.words);
  if (!record) return;
  if (result_.side.holders.size() + late_holders_.size() >= SideRecords::kMaxHolders) {
    ++result_.side.left_out;
    return;
  }
  HolderSeen seen{.addr = record->addr,
                  .birth = record->birth,
                  .root = std::string(record->root),
                  .path = std::string(record->path),
                  .file = std::string(record->file),
                  .function = std::string(record->function),
                  .text = std::string(record->text),
                  .cause = std::string(record->cause),
                  .line = record->line,
                  .end_line = record->end_line};
  if (join(seen)) {
    result_.side.holders.push_back(std::move(seen));
  } else if (seen.birth != 0) {
    // Its block may come yet: the record and the alloc may be of one time.
    late_holders_.push_back(std::move(seen));
  }
}

// Finds the live block a holder speaks of. `birth` comes in as the record has it.
bool Replay::join(HolderSeen& seen) {
  for (const Pool& pool : result_.pools) {
    const auto at = live_.find(block_key(seen.addr, pool.where));
    if (at == live_.end()) continue;
    const Block& block = at->second;
    if (seen.birth != 0) {
      // In ticks by the table; a writer that only knows epoch times (SuspectBlock) may give those.
      const auto near = [&](uint64_t time) {
        return std::max(time, block.birth) - std::min(time, block.birth) <= order_.skew();
      };
      if (!near(seen.birth) && !near(time_of_(seen.birth))) continue;
    }
    seen.birth = block.birth;
    seen.group = block.group;
    seen.size = block.size;
    return true;
  }
  return false;
}

// -- steps ----------------------------------------------------------------------------------------

void Replay::pass_time(uint64_t time) {
  if (forget_pending_) forget_unseeded();
  while (time > step_end_) end_step();
}

void Replay::end_step() {
  const std::vector<uint64_t>& ends = result_.plan.ends;
  if (step_ != 0) {
    const uint32_t bucket = result_.buckets.of_step(step_);
    for (const uint32_t index : touched_) {
      Group& group = result_.groups[index];
      const CurvePoint point{bucket, group.live_blocks, group.live_bytes};
      if (!group.live.empty() && group.live.back().bucket == bucket) {
        group.live.back() = point;
      } else if (group.live.empty() ? point.bytes != 0
                                    : group.live.back().bytes != point.bytes ||
                                          group.live.back().blocks != point.blocks) {
        group.live.push_back(point);
      }
    }
    for (Pool& pool : result_.pools) {
      const uint64_t low = std::min(pool.step_min, pool.now);
      const uint64_t high = std::max(pool.step_max, pool.now);
      pool.buckets.resize(bucket + 1,
                          {pool.buckets.empty() ? 0 : pool.buckets.back().end, 0, 0, 0});
      PoolBucket& in = pool.buckets.back();
      const bool first = (step_ - 1) % result_.buckets.width == 0;
      in.min = first ? low : std::min(in.min, low);
      in.max = first ? high : std::max(in.max, high);
      in.end = pool.now;
      in.reserved_end = pool.reserved_now;
      if (step_ > 1 && high != 0) {
        const double ratio = static_cast<double>(low) / static_cast<double>(high);
        const PoolGap gap{step_, ratio, low};
        if (pool.min_gap.step == 0 || ratio < pool.min_gap.ratio) pool.min_gap = gap;
        if (pool.max_gap.step == 0 || ratio > pool.max_gap.ratio) pool.max_gap = gap;
      }
      pool.step_min = kNever;
      pool.step_max = 0;
    }
  }
  touched_.clear();
  ++step_;
  if (step_ > ends.size()) {
    step_end_ = kNever;
    freeze();
  } else {
    step_end_ = ends[step_ - 1];
  }
}

// At the last step's end: which of the blocks born in each bucket are still alive.
void Replay::freeze() {
  frozen_ = true;
  struct Sum {
    uint64_t bytes = 0;
    uint32_t blocks = 0;
  };
  tsl::robin_map<uint64_t, Sum, BlockKeyHash> sums;
  for (const auto& [key, block] : live_) {
    Group& group = result_.groups[block.group];
    if (block.step == 0) {
      group.survivors_of_start.bytes += block.size;
      ++group.survivors_of_start.blocks;
      continue;
    }
    Sum& sum = sums[uint64_t{block.group} << 32 | result_.buckets.of_step(block.step)];
    sum.bytes += block.size;
    ++sum.blocks;
  }
  for (const auto& [key, sum] : sums) {
    result_.groups[key >> 32].survivors.push_back(
        {static_cast<uint32_t>(key), sum.blocks, sum.bytes});
  }
  for (Group& group : result_.groups) {
    std::sort(group.survivors.begin(), group.survivors.end(),
              [](const CurvePoint& a, const CurvePoint& b) { return a.bucket < b.bucket; });
  }
  if (options_.last_step != 0) result_.live = list_live();
}

std::vector<LiveBlock> Replay::list_live() const {
  std::vector<LiveBlock> list;
  list.reserve(live_.size());
  // What is older than the end of a gap may have been freed in it.
  uint64_t hole = 0;
  for (const GapSeen& gap : result_.side.gaps) {
    if (!gap.healed) hole = std::max(hole, gap.to);
  }
  for (const auto& [key, block] : live_) {
    const Where where = result_.groups[block.group].where;
    list.push_back({block_addr(key, where), block.size, block.birth, block.group, block.step,
                    block.preexisting != 0, block.fate_unknown != 0 || block.birth < hole});
  }
  return list;
}

ReplayResult Replay::finish() {
  if (forget_pending_) forget_unseeded();
  for (HolderSeen& seen : late_holders_) {
    if (join(seen)) result_.side.holders.push_back(std::move(seen));
  }
  // A boundary with no event after it: its step is over all the same.
  while (!frozen_ && step_ <= result_.plan.count()) end_step();
  for (Pool& pool : result_.pools) {
    pool.allocated.end = pool.now;
    pool.allocated.peak = std::max(pool.allocated.peak, pool.now);
    pool.reserved.end = pool.reserved_now;
  }
  if (options_.last_step == 0) result_.live = list_live();
  result_.ambiguous = order_.ambiguous();
  return std::move(result_);
}

}  // namespace memscope
