// HOT PATH: feed, begins, ends.
#include "replay/replay.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope {
namespace {

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
      blocks_(options_.skew_ns),
      notes_(options_.skew_ns, time_of_) {
  const uint32_t count = plan.count();
  if (plan.from == StepsFrom::kTime) options_.first_step = 0;
  if (plan.folded != 0 && !plan.has_curves) {
    // Of these steps only the last state is known.
    options_.first_step = std::max(options_.first_step, plan.folded + 1);
  }
  plan = asked_for(std::move(plan), options_);
  if (plan.count() == count) options_.last_step = 0;  // nothing is left out
  curves_ = StepCurves(std::move(plan), options_.first_step);
}

void Replay::feed(const Event& event) {
  if (result_.range.first == 0) result_.range.first = event.time;
  result_.range.last = event.time;
  if (event.time > curves_.step_end()) [[unlikely]]
    end_steps(event);
  switch (event.kind) {
    case EventKind::kAlloc:
      if (event.size == 0 || left_out(event)) return;
      ++result_.events;
      blocks_.alloc(event, *this);
      break;
    case EventKind::kFree:
      if (left_out(event)) return;
      ++result_.events;
      blocks_.free(event, *this);
      break;
    case EventKind::kSeed:
      if (event.size == 0 || left_out(event)) return;
      // One of a folded past is in that past's count.
      result_.events += event.record_kind != static_cast<uint8_t>(Kind::kFoldedBlock) ? 1 : 0;
      blocks_.seed(event, *this);
      break;
    case EventKind::kWindow:
      result_.side.window(event, blocks_.window(event, *this));
      break;
    case EventKind::kRecord:
      record(event);
      break;
  }
}

void Replay::end_steps(const Event& event) {
  // What was freed in a pause is no longer there when a step ends.
  blocks_.forget_unseeded(*this);
  while (event.time > curves_.step_end()) end_step();
}

void Replay::stand_at(uint64_t time) {
  blocks_.forget_unseeded(*this);
  while (time >= curves_.step_end()) end_step();
}

void Replay::end_step() {
  if (!curves_.end_step()) return;
  curves_.freeze(blocks_.live(), sampled_);
  if (options_.last_step == 0) return;
  result_.live = list_live();
  curves_.finish_pools();
  result_.pools = curves_.pools();
}

// -- blocks ---------------------------------------------------------------------------------------

bool Replay::begins(Block& block, const Event& event) {
  if (event.kind == EventKind::kAlloc) [[likely]] {
    block.group = curves_.group_of(event.stack, event.where);
    block.step = curves_.step();
    Group& group = curves_.groups()[block.group];
    ++group.allocs;
    curves_.add(block.group, block.size);
    curves_.totals(curves_.pools()[group.pool], event, static_cast<int64_t>(block.size));
    if (event.sampled_size != 0) [[unlikely]]
      begins_sampled(block, event);
    return true;
  }
  if (event.record_kind == static_cast<uint8_t>(Kind::kFoldedBlock)) {
    return begins_folded(block, event);
  }
  const bool first_window = blocks_.windows().number <= 1;
  block.group = curves_.seeded_group_of(event.where);
  block.step = first_window ? 0 : curves_.step();
  if (block.preexisting()) ++result_.preexisting;
  curves_.add(block.group, block.size);
  Pool& pool = curves_.pool_of_group(block.group);
  if (event.sampled_size != 0) begins_sampled(block, event);
  if (pool.has_totals) return true;
  pool.now = pool.live_bytes;
  if (first_window) pool.allocated.start = std::max(pool.allocated.start, pool.now);
  if (pool.now >= pool.allocated.peak) pool.peak_noise = pool.live_noise;
  pool.allocated.peak = std::max(pool.allocated.peak, pool.now);
  return true;
}

void Replay::begins_sampled(const Block& block, const Event& event) {
  const uint64_t key = block_key(event.addr, event.where);
  curves_.add_noise(block.group, sampled_.begins(key, block.size, event.sampled_size));
  if (event.record_kind == static_cast<uint8_t>(Kind::kFoldedBlock)) return;
  curves_.groups()[block.group].stands_for += sampled_count(block.size, event.sampled_size);
  Pool& pool = curves_.pool_of_group(block.group);
  if (event.kind == EventKind::kAlloc && pool.now == pool.allocated.peak) {
    pool.peak_noise = pool.live_noise;
  }
  if (result_.host_sample == 0) result_.host_sample = sampling_rate(block.size, event.sampled_size);
}

// The pool's level follows, in a record of its own.
bool Replay::begins_folded(Block& block, const Event& event) {
  const auto record = decode_record<FoldedBlockRecord>(event.words);
  if (!record) return false;
  const bool seeded = (record->flags & kFoldedSeeded) != 0;
  block.group =
      seeded ? curves_.seeded_group_of(event.where) : curves_.group_of(event.stack, event.where);
  block.step = curves_.step_of_folded(record->step, event.birth);
  curves_.add_folded(block.group, block.size);
  if (event.sampled_size != 0) begins_sampled(block, event);
  return true;
}

void Replay::ends(const Block& block, const BlockEnd& end) {
  curves_.remove(block.group, block.size);
  if (!sampled_.empty()) [[unlikely]]
    curves_.remove_noise(block.group, sampled_.ends(end.key, block.size));
  if (end.how == BlockEnding::kFreed) [[likely]] {
    curves_.totals(curves_.pool_of_group(block.group), *end.event,
                   -static_cast<int64_t>(block.size));
  } else {
    curves_.settle(block.group);
  }
}

void Replay::returns(Block& block, const Event& event) {
  curves_.add(block.group, block.size);
  const auto undo = decode_record<UndoRecord>(event.words);
  const uint64_t key = undo ? block_key(undo->addr, block.place()) : 0;
  curves_.add_noise(block.group, sampled_.returns(key, block.size));
  curves_.settle(block.group);
}

void Replay::unknown_free(const Event& event) {
  ++result_.unknown_frees;
  if (event.has_totals) curves_.totals(curves_.pools()[curves_.pool_of(event.where)], event, 0);
}

// -- records --------------------------------------------------------------------------------------

void Replay::record(const Event& event) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kUndo:
      blocks_.undo(event, *this);
      break;
    case Kind::kFolded:
    case Kind::kFold:
    case Kind::kFoldedPool:
    case Kind::kFoldedLevel:
      folded(event);
      break;
    case Kind::kHolder:
      notes_.holder(event, blocks_.live(), curves_.pools(), result_.side);
      break;
    case Kind::kOwner:
      notes_.owner(event, blocks_.live(), curves_.pools(), result_.side);
      break;
    case Kind::kPoolSnapshot:
      // What a pool reserves may have changed since its last block.
      if (const auto state = decode_record<PoolSnapshotRecord>(event.words);
          state && state->reserved != 0) {
        Event told = event;
        told.where = Where::unpack(static_cast<uint16_t>(state->where));
        if (!is_pool(told.where.layer) || left_out(told)) break;
        told.has_totals = true;
        told.allocated = state->allocated;
        told.reserved = state->reserved;
        curves_.totals(curves_.pools()[curves_.pool_of(told.where)], told, 0);
      }
      break;
    case Kind::kConfig:
      if (const auto config = decode_record<ConfigRecord>(event.words);
          config && config->key == kHostSampleKey) {
        result_.host_sample = host_sampling(config->value).rate;
      }
      [[fallthrough]];
    default:
      result_.side.add(event, time_of_);
      break;
  }
}

void Replay::folded(const Event& event) {
  if (event.record_kind == static_cast<uint8_t>(Kind::kFolded)) {
    const auto record = decode_record<FoldedRecord>(event.words);
    if (!record || result_.folded.to != 0) return;
    result_.folded = {time_of_(record->from_ticks), event.time, curves_.plan().folded,
                      record->events, record->folds};
    result_.range.first = std::min(result_.range.first, result_.folded.from);
    if (options_.device) return;  // these are of all devices
    result_.events += record->events;
    result_.preexisting += record->preexisting;
    result_.unknown_frees += record->unknown_frees;
    folded_ambiguous_ = record->ambiguous;
    return;
  }
  const auto wanted = [&](uint64_t where) {
    return !options_.device ||
           Where::unpack(static_cast<uint16_t>(where)).device == *options_.device;
  };
  if (const auto point = decode_record<FoldRecord>(event.words);
      point && event.record_kind == static_cast<uint8_t>(Kind::kFold)) {
    if (wanted(point->where)) curves_.fold(*point, event.stack);
  } else if (const auto bucket = decode_record<FoldedPoolRecord>(event.words);
             bucket && event.record_kind == static_cast<uint8_t>(Kind::kFoldedPool)) {
    if (wanted(bucket->where)) curves_.fold(*bucket);
  } else if (const auto level = decode_record<FoldedLevelRecord>(event.words);
             level && event.record_kind == static_cast<uint8_t>(Kind::kFoldedLevel)) {
    if (wanted(level->where)) curves_.fold(*level);
  }
}

// -- the end --------------------------------------------------------------------------------------

std::vector<LiveBlock> Replay::list_live() const {
  std::vector<LiveBlock> list;
  list.reserve(blocks_.live().size());
  // What is older than the end of a gap may have been freed in it.
  uint64_t hole = 0;
  for (const GapSeen& gap : result_.side.gaps) {
    if (!gap.healed) hole = std::max(hole, gap.to);
  }
  for (const auto& [key, block] : blocks_.live()) {
    list.push_back({block_addr(key, block.place()), block.size, block.birth, block.group,
                    block.step, block.preexisting(), block.fate_unknown != 0 || block.birth < hole,
                    block.owner, sampled_.recorded(key)});
  }
  return list;
}

ReplayResult Replay::finish() {
  blocks_.forget_unseeded(*this);
  notes_.finish(blocks_.live(), curves_.pools(), result_.side);
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
  result_.ambiguous = ambiguous();
  return std::move(result_);
}

}  // namespace memscope
