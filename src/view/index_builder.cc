// HOT PATH: feed, begins, ends, append.
#include "view/index_builder.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope::view {
namespace {

constexpr size_t kMaxNames = 100'000;

}  // namespace

IndexBuilder::IndexBuilder(InputIndex& index, std::filesystem::path directory, TimeOf time_of)
    : index_(index), directory_(std::move(directory)), time_of_(std::move(time_of)) {
  pool_index_.resize(1u << 16);
}

void IndexBuilder::feed(const Event& event) {
  if (!any_) [[unlikely]] {
    any_ = true;
    origin_ = event.time;
  }
  last_ = std::max(last_, event.time);
  switch (event.kind) {
    case EventKind::kAlloc:
      blocks_.alloc(event, *this);
      break;
    case EventKind::kFree:
      blocks_.free(event, *this);
      break;
    case EventKind::kSeed:
      blocks_.seed(event, *this);
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

IndexBuilder::Pool& IndexBuilder::pool_of(Where where) {
  uint16_t& at = pool_index_[where.packed()];
  if (at == 0) [[unlikely]] {
    const std::string number = std::to_string(index_.pools.size());
    index_.pools.push_back(std::make_shared<PoolIndex>(
        directory_.empty() ? std::filesystem::path() : directory_ / ("p" + number + ".")));
    PoolIndex& pool = *index_.pools.back();
    pool.where = where;
    // Block 0 is none: of no size, never alive.
    pool.alloc_event.push_back(0), pool.free_event.push_back(0), pool.address.push_back(0);
    pool.sized.push_back(0), pool.stack.push_back(0), pool.owner.push_back(0);
    pool.thread.push_back(0), pool.free_thread.push_back(0);
    pools_.push_back({.index = &pool});
    at = static_cast<uint16_t>(pools_.size());
  }
  return pools_[at - 1u];
}

void IndexBuilder::append(Pool& pool, uint64_t time, uint32_t word, uint64_t bytes_after) {
  PoolIndex& index = *pool.index;
  const uint32_t number = index.events();
  const uint32_t in_group = number % kGroupEvents;
  if (in_group == 0) {
    if (number != 0) index.groups.push_back(pool.group);
    pool.group = {.before = pool.live_bytes, .most = bytes_after, .least = bytes_after};
  } else if (bytes_after > pool.group.most) {
    pool.group.most = bytes_after;
    pool.group.most_at = static_cast<uint8_t>(in_group);
  } else if (bytes_after < pool.group.least) {
    pool.group.least = bytes_after;
    pool.group.least_at = static_cast<uint8_t>(in_group);
  }
  pool.live_bytes = bytes_after;
  if (bytes_after > index.peak.bytes) index.peak = {number + 1, bytes_after};
  index.time.push_back(since(time));
  index.event.push_back(word);
}

uint32_t IndexBuilder::begin_block(Pool& pool, const Event& event, uint64_t flags) {
  PoolIndex& index = *pool.index;
  // The free of every live block must still fit.
  if (index.events() >= kMaxEvents - pool.live_blocks - 2) [[unlikely]] {
    pool.full = true;
    return 0;
  }
  const auto block = static_cast<uint32_t>(index.alloc_event.size());
  const uint64_t size = event.size & kSizeMask;
  index.alloc_event.push_back(index.events());
  index.free_event.push_back(kAlive);
  index.address.push_back(event.addr);
  index.sized.push_back(size | flags);
  const uint32_t stack = (flags & kSeeded) != 0 ? 0 : event.stack.value;
  index.stack.push_back(stack);
  index.owner.push_back(0);
  index.thread.push_back(static_cast<uint16_t>(std::min<uint32_t>(event.thread.value, 65535)));
  index.free_thread.push_back(0);
  if (stack >= stack_used_.size()) [[unlikely]]
    stack_used_.resize(std::max<size_t>(stack + size_t{1}, stack_used_.size() * 2));
  if (!stack_used_[stack]) [[unlikely]] {
    stack_used_[stack] = true;
    if (stack != 0) index_.used_stacks.push_back(stack);
  }
  ++pool.live_blocks;
  append(pool, event.time, block, pool.live_bytes + size);
  return block;
}

void IndexBuilder::end_block(Pool& pool, uint32_t block, uint64_t time, ThreadId thread,
                             uint64_t flags) {
  PoolIndex& index = *pool.index;
  index.free_event[block] = index.events();
  index.free_thread[block] = static_cast<uint16_t>(std::min<uint32_t>(thread.value, 65535));
  if (flags != 0) [[unlikely]]
    index.sized[block] |= flags;
  --pool.live_blocks;
  append(pool, time, block | kFreeBit, pool.live_bytes - index.size(block));
}

void IndexBuilder::totals(Pool& pool, const Event& event) {
  PoolIndex& index = *pool.index;
  const auto reserved = static_cast<int64_t>(event.reserved);
  if (reserved != pool.reserved) {
    pool.reserved = reserved;
    index.reserved.states.push_back(index.events());
    index.reserved.values.push_back(reserved);
  }
  const auto untracked = static_cast<int64_t>(event.allocated - pool.live_bytes);
  if (untracked != pool.untracked || index.untracked.states.empty()) {
    pool.untracked = untracked;
    index.untracked.states.push_back(index.events());
    index.untracked.values.push_back(untracked);
  }
}

bool IndexBuilder::begins(Live& live, const Event& event) {
  Pool& pool = pool_of(event.where);
  if (pool.full) return false;
  uint64_t flags = live.fate_unknown != 0 ? kFateUnknown : 0;
  if (event.kind == EventKind::kSeed) {
    flags |= kSeeded;
    if (live.preexisting()) flags |= kPreexisting;
  }
  live.block = begin_block(pool, event, flags);
  if (live.block == 0) return false;
  if (event.has_totals) totals(pool, event);
  return true;
}

void IndexBuilder::ends(const Live& live, const BlockEnd& end) {
  Pool& pool = pool_of(live.place());
  const bool freed = end.how == BlockEnding::kFreed;
  end_block(pool, live.block, end.time, end.thread, freed ? 0 : kEndUnseen);
  if (freed && end.event->has_totals) totals(pool, *end.event);
}

void IndexBuilder::returns(Live& live, const Event&) {
  Pool& pool = pool_of(live.place());
  PoolIndex& index = *pool.index;
  uint32_t& free_event = index.free_event[live.block];
  index.event[free_event] = kFreeBit;  // of no block: nothing happens there
  free_event = kAlive;
  index.free_thread[live.block] = 0;
  pool.live_bytes += live.size;
  ++pool.live_blocks;
  pool.undone = true;
}

void IndexBuilder::unknown_free(const Event& event) {
  ++index_.unknown_frees;
  if (event.has_totals) totals(pool_of(event.where), event);
}

void IndexBuilder::window(const Event& event) {
  const WindowChange change = blocks_.window(event, *this);
  index_.side.window(event, change);
  if (blocks_.windows().recording) {
    index_.windows.push_back({since(event.time), since(event.time)});
  } else if (change.was_recording) {
    index_.windows.back().end = since(event.time);
  }
}

// -- records --------------------------------------------------------------------------------------

void IndexBuilder::record(const Event& event) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kUndo:
      blocks_.undo(event, *this);
      break;
    case Kind::kOwner:
      owner(event);
      break;
    case Kind::kStep:
    case Kind::kFolded:
    case Kind::kFoldedStep:
      steps_.add(event);
      break;
    case Kind::kMark:
      steps_.add(event);
      mark(event);
      break;
    case Kind::kPhase:
      if (const auto phase = decode_record<PhaseRecord>(event.words)) {
        if (index_.phases.size() >= kMaxRecords) {
          ++index_.left_out;
        } else {
          index_.phases.push_back({since(event.time),
                                   static_cast<uint32_t>(std::min<uint64_t>(phase->phase, 4)),
                                   name(phase->module)});
        }
      }
      break;
    case Kind::kCounter:
      counter(event);
      break;
    case Kind::kOom:
      if (const auto oom = decode_record<OomRecord>(event.words)) {
        if (index_.ooms.size() >= kMaxNames) {
          ++index_.left_out;
        } else {
          index_.ooms.push_back({since(event.time), oom->size, oom->allocated, oom->reserved,
                                 Where::unpack(static_cast<uint16_t>(oom->where)),
                                 event.stack.value});
        }
      }
      break;
    case Kind::kHolder:
      holder(event);
      break;
    case Kind::kAccess:
      access(event);
      break;
    default:
      index_.side.add(event, time_of_);
      break;
  }
}

void IndexBuilder::owner(const Event& event) {
  const auto record = decode_record<OwnerRecord>(event.words);
  if (!record) return;
  std::string text(record->owner);
  if (!record->label.empty()) {
    if (!text.empty()) text += '@';
    text += record->label;
  }
  const auto known = owner_ids_.find(text);
  uint32_t id = known == owner_ids_.end() ? 0 : known->second;
  if (known == owner_ids_.end()) {
    if (index_.owners.size() >= kMaxNames) {
      ++index_.left_out;
      return;
    }
    id = static_cast<uint32_t>(index_.owners.size());
    owner_ids_.emplace(text, id);
    index_.owners.push_back(std::move(text));
  }
  for (Pool& pool : pools_) {
    const auto at = blocks_.live().find(block_key(record->addr, pool.index->where));
    if (at == blocks_.live().end()) continue;
    if (record->birth != 0) {
      const uint64_t birth = time_of_(record->birth), own = at->second.birth;
      if (std::max(birth, own) - std::min(birth, own) > blocks_.skew()) continue;
    }
    pool.index->owner[at->second.block] = id;
  }
}

// Of the block that begins at the address: where the record says, else anywhere on its device.
void IndexBuilder::access(const Event& event) {
  const auto record = decode_record<AccessRecord>(event.words);
  if (!record) return;
  for (const bool exact : {true, false}) {
    for (Pool& pool : pools_) {
      const Where where = pool.index->where;
      if (exact != (where == event.where) || where.device != event.where.device) continue;
      const auto at = blocks_.live().find(block_key(record->addr, where));
      if (at == blocks_.live().end()) continue;
      // In the order of time even where clocks differ: what is looked up by it is found.
      PoolIndex& index = *pool.index;
      const uint64_t time = since(event.time);
      const uint64_t last = index.access_time.empty() ? 0 : index.access_time.back();
      uint32_t what = name(record->op) & (PoolIndex::kRead - 1);
      if (record->mode == 1) what |= PoolIndex::kRead;
      if (record->mode == 2) what |= PoolIndex::kWritten;
      index.access_time.push_back(std::max(time, last));
      index.access_block.push_back(at->second.block);
      index.access_what.push_back(what);
      return;
    }
  }
}

uint32_t IndexBuilder::name(std::string_view text) {
  const auto known = name_ids_.find(text);
  if (known != name_ids_.end()) return known->second;
  if (text.empty()) return 0;
  if (index_.names.size() >= kMaxNames) {
    ++index_.left_out;
    return 0;
  }
  const auto id = static_cast<uint32_t>(index_.names.size());
  name_ids_.emplace(std::string(text), id);
  index_.names.emplace_back(text);
  return id;
}

void IndexBuilder::mark(const Event& event) {
  const auto record = decode_record<MarkRecord>(event.words);
  if (!record) return;
  constexpr uint64_t kBegin = 1, kEnd = 2;
  const uint64_t time = since(event.time);
  if (record->action == kEnd) {
    const auto open = open_marks_.find(record->range);
    if (open == open_marks_.end()) return;
    index_.marks[open->second].end = time;
    open_marks_.erase(record->range);
    return;
  }
  if (index_.marks.size() >= kMaxRecords) {
    ++index_.left_out;
    return;
  }
  if (record->action == kBegin) open_marks_[record->range] = index_.marks.size();
  index_.marks.push_back({time, MarkSeen::kMoment, name(record->text), name(record->domain)});
}

void IndexBuilder::counter(const Event& event) {
  const auto record = decode_record<CounterRecord>(event.words);
  if (!record) return;
  constexpr size_t kMaxCounters = 256;
  const auto where = static_cast<uint16_t>(record->where);
  const std::pair<std::string, uint16_t> key(record->name, where);
  auto known = counter_ids_.find(key);
  if (known == counter_ids_.end()) {
    if (index_.counters.size() >= kMaxCounters) {
      ++index_.left_out;
      return;
    }
    known = counter_ids_.emplace(key, index_.counters.size()).first;
    index_.counters.push_back({key.first, Where::unpack(where), {}, {}});
  }
  CounterSeen& seen = index_.counters[known->second];
  if (seen.times.size() >= kMaxRecords) {
    ++index_.left_out;
    return;
  }
  seen.times.push_back(since(event.time));
  seen.values.push_back(record->value);
}

void IndexBuilder::holder(const Event& event) {
  const auto record = decode_record<HolderRecord>(event.words);
  if (!record) return;
  if (index_.side.holders.size() >= SideRecords::kMaxHolders) {
    ++index_.left_out;
    return;
  }
  index_.side.holders.push_back({.addr = record->addr,
                                 .birth = record->birth == 0 ? 0 : time_of_(record->birth),
                                 .root = std::string(record->root),
                                 .path = std::string(record->path),
                                 .file = std::string(record->file),
                                 .function = std::string(record->function),
                                 .text = std::string(record->text),
                                 .cause = std::string(record->cause),
                                 .line = record->line,
                                 .end_line = record->end_line});
}

// -- the end --------------------------------------------------------------------------------------

void IndexBuilder::finish() {
  blocks_.forget_unseeded(*this);
  index_.origin = origin_;
  index_.end = since(last_);
  index_.begin = index_.end;
  for (const auto& pool : index_.pools) {
    if (!pool->time.empty()) index_.begin = std::min(index_.begin, pool->time[0]);
  }
  if (!index_.windows.empty()) {
    index_.begin = std::min(index_.begin, index_.windows.front().begin);
    if (blocks_.windows().recording) index_.windows.back().end = index_.end;
  }
  const bool dated = any_ && steps_.needs_range();
  StepPlan plan = steps_.plan(dated ? TimeRange{origin_ + index_.begin, last_} : TimeRange{});
  if (plan.begin != 0) plan.begin = since(plan.begin);
  for (uint64_t& end : plan.ends) end = since(end);
  index_.steps = std::move(plan);
  index_.ambiguous = blocks_.ambiguous();
  for (Pool& pool : pools_) {
    PoolIndex& index = *pool.index;
    if (pool.undone) {
      index.make_groups();
    } else if (index.events() != 0) {
      index.groups.push_back(pool.group);
    }
    index.live_bytes = pool.live_bytes;
    index.live_blocks = pool.live_blocks;
    PoolIndex::for_each_column(index, [](const char*, auto& column) { column.finish(); });
    if (pool.full) {
      index_.damage.push_back(
          "more events than an index holds in one place: what follows the first " +
          std::to_string(kMaxEvents) + " is not shown");
    }
  }
  index_.make_sites();
}

}  // namespace memscope::view
