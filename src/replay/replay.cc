// HOT PATH: feed, alloc, free.
#include "replay/replay.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope {
namespace {

// Frees of unknown addresses remembered in a window, against seeds that arrive after them.
constexpr size_t kMaxFreedInWindow = 1u << 16;

// The steps up to the last one asked for; windows of time are no steps that one could name.
StepPlan asked_for(StepPlan plan, const ReplayOptions& options) {
  if (plan.from != StepsFrom::kTime && options.last_step != 0 && options.last_step < plan.count()) {
    plan.ends.resize(options.last_step);
  }
  return plan;
}

}  // namespace

Replay::Replay(StepPlan plan, ReplayOptions options, TimeOf time_of)
    : options_(options),
      time_of_(std::move(time_of)),
      order_(options_.skew_ns),
      notes_(options_.skew_ns, time_of_) {
  const uint32_t count = plan.count();
  if (plan.from == StepsFrom::kTime) options_.first_step = 0;
  plan = asked_for(std::move(plan), options_);
  if (plan.count() == count) options_.last_step = 0;  // nothing is left out
  curves_ = StepCurves(std::move(plan), options_.first_step);
  attention_ = curves_.step_end();
}

void Replay::feed(const Event& event) {
  if (result_.range.first == 0) result_.range.first = event.time;
  result_.range.last = event.time;
  if (event.time > attention_) [[unlikely]]
    attend(event);
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

void Replay::attend(const Event& event) {
  // A window's seeds come before its first event.
  const bool block = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
  if (forget_pending_ && (block || event.time > curves_.step_end())) forget_unseeded();
  while (event.time > curves_.step_end()) end_step();
  attention_ = forget_pending_ ? 0 : curves_.step_end();
}

void Replay::end_step() {
  if (!curves_.end_step()) return;
  curves_.freeze(live_);
  if (options_.last_step == 0) return;
  result_.live = list_live();
  curves_.finish_pools();
  result_.pools = curves_.pools();
}

// -- blocks ---------------------------------------------------------------------------------------

void Replay::alloc(const Event& event) {
  if (event.size == 0) return;
  if (options_.device && event.where.device != *options_.device) return;
  ++result_.events;
  const uint64_t key = block_key(event.addr, event.where);
  const auto [at, fresh] = live_.try_emplace(key);
  Block& block = at.value();
  if (!fresh) [[unlikely]] {
    curves_.remove(block.group, block.size);
    order_.displaced(key, event.thread, event.time);
    block = {};
  } else if (order_.unknown_near(event.time)) [[unlikely]] {
    block.fate_unknown = order_.maybe_freed(key, event.thread, event.time);
  }
  block.size = event.size & kSizeMask;
  block.birth = event.time;
  block.group = curves_.group_of(event.stack, event.where);
  block.step = curves_.step();
  block.window = window_;
  Group& group = curves_.groups()[block.group];
  ++group.allocs;
  curves_.add(block.group, block.size);
  curves_.totals(curves_.pools()[group.pool], event, static_cast<int64_t>(block.size));
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
    if (event.has_totals) curves_.totals(curves_.pools()[curves_.pool_of(event.where)], event, 0);
    return;
  }
  const Block block = at->second;
  curves_.remove(block.group, block.size);
  // Not by iterator: that looks for the next element, far away in a table that was once larger.
  live_.erase(key, BlockKeyHash{}(key));
  freed_[freed_at_++ % kUndoDepth] = {key, block};
  curves_.totals(curves_.pool_of_group(block.group), event, -static_cast<int64_t>(block.size));
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
    curves_.add(freed.block.group, freed.block.size);
    Pool& pool = curves_.pool_of_group(freed.block.group);
    if (!pool.has_totals) pool.now = pool.live_bytes;
    freed = {};
    return;
  }
}

// -- windows --------------------------------------------------------------------------------------

void Replay::window(const Event& event) {
  const auto action = static_cast<WindowAction>(event.size);
  if (forget_pending_) forget_unseeded();
  freed_in_window_.clear();
  if (action == WindowAction::kStart) {
    if (stop_time_ != 0 && !recording_) {
      result_.side.gaps.push_back({stop_time_, event.time, "recording was stopped", true});
      forget_pending_ = true;
      attention_ = 0;
    }
    first_window_ = window_ == 0;
    ++window_;
    window_time_ = event.time;
    recording_ = true;
    result_.side.ended = "unknown";
    return;
  }
  if (recording_ || result_.side.ended == "unknown") {
    result_.side.ended = action == WindowAction::kExit ? "exit" : "stop";
  }
  if (recording_) stop_time_ = event.time;
  recording_ = false;
}

// What was alive at stop() and is not seeded at start() was freed in between. Before the window's
// first event: that may be an alloc at one of these addresses.
void Replay::forget_unseeded() {
  forget_pending_ = false;
  for (auto at = live_.begin(); at != live_.end();) {
    if (at->second.window < window_ && at->second.birth <= stop_time_) {
      curves_.remove(at->second.group, at->second.size);
      at = live_.erase(at);
    } else {
      ++at;
    }
  }
  curves_.settle();
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
    curves_.remove(block.group, block.size);
  }
  block = {};
  block.size = event.size & kSizeMask;
  block.preexisting = event.birth == 0;
  block.fate_unknown = event.birth != 0;
  block.birth = event.birth;
  block.group = curves_.seeded_group_of(event.where);
  block.step = first_window_ ? 0 : curves_.step();
  block.window = window_;
  if (block.preexisting) ++result_.preexisting;
  curves_.add(block.group, block.size);
  Pool& pool = curves_.pool_of_group(block.group);
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
      notes_.holder(event, live_, curves_.pools(), result_.side);
      break;
    case Kind::kOwner:
      notes_.owner(event, live_, curves_.pools(), result_.side);
      break;
    default:
      result_.side.add(event, time_of_);
      break;
  }
}

// -- the end --------------------------------------------------------------------------------------

std::vector<LiveBlock> Replay::list_live() const {
  std::vector<LiveBlock> list;
  list.reserve(live_.size());
  // What is older than the end of a gap may have been freed in it.
  uint64_t hole = 0;
  for (const GapSeen& gap : result_.side.gaps) {
    if (!gap.healed) hole = std::max(hole, gap.to);
  }
  for (const auto& [key, block] : live_) {
    const Where where = curves_.groups()[block.group].where;
    list.push_back({block_addr(key, where), block.size, block.birth, block.group, block.step,
                    block.preexisting != 0, block.fate_unknown != 0 || block.birth < hole,
                    block.owner});
  }
  return list;
}

ReplayResult Replay::finish() {
  if (forget_pending_) forget_unseeded();
  notes_.finish(live_, curves_.pools(), result_.side);
  // A boundary with no event after it: its step is over all the same.
  while (curves_.step() <= curves_.plan().count()) end_step();
  if (options_.last_step == 0) {
    curves_.finish_pools();
    result_.pools = std::move(curves_.pools());
    result_.live = list_live();
  }
  result_.groups = std::move(curves_.groups());
  result_.plan = curves_.plan();
  result_.buckets = curves_.buckets();
  result_.last_step = result_.plan.count();
  result_.ambiguous = order_.ambiguous();
  return std::move(result_);
}

}  // namespace memscope
