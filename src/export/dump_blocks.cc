// HOT PATH: feed().
#include "export/dump_blocks.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope {
namespace {

// As ReplayOptions::skew_ns: dump and diagnosis must see the same blocks.
constexpr uint64_t kSkewNs = 3000;

}  // namespace

DumpBlocks::DumpBlocks() : order_(kSkewNs), used_(1u << 16) {}

std::span<const BlockChange> DumpBlocks::feed(const Event& event) {
  settle(event.time);
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
      if (event.record_kind == static_cast<uint8_t>(Kind::kUndo)) undo(event);
      break;
  }
  return changes_;
}

std::span<const BlockChange> DumpBlocks::finish() {
  changes_.clear();
  if (forget_pending_) forget_unseeded();
  return changes_;
}

void DumpBlocks::begins(const DumpBlock& block, uint64_t addr, uint64_t time, bool shadow) {
  uint64_t& used = used_[block.where];
  used += block.size;
  changes_.push_back({true, shadow, time, addr, block, used});
}

void DumpBlocks::ends(const DumpBlock& block, uint64_t addr, uint64_t time, bool shadow) {
  uint64_t& used = used_[block.where];
  used -= std::min(used, block.size);
  changes_.push_back({false, shadow, time, addr, block, used});
}

void DumpBlocks::alloc(const Event& event) {
  const uint64_t size = event.size & kSizeMask;
  if (size == 0) return;
  const uint64_t key = block_key(event.addr, event.where);
  const auto [at, fresh] = live_.try_emplace(key);
  DumpBlock& block = at.value();
  if (!fresh) [[unlikely]] {
    ends(block, event.addr, event.time, true);
    order_.displaced(key, event.thread, event.time);
  }
  block = {++last_id_, size, event.time, window_, event.where.packed()};
  begins(block, event.addr, event.time, false);
}

void DumpBlocks::free(const Event& event) {
  const uint64_t key = block_key(event.addr, event.where);
  if (!order_.quiet() && order_.takes(key, event.thread, event.time)) [[unlikely]]
    return;
  const auto at = live_.find(key);
  if (at == live_.end()) [[unlikely]] {
    if (event.size == 0) {
      ++frees_left_out_;
      return;
    }
    const DumpBlock unknown{++last_id_, event.size & kSizeMask, 0, window_, event.where.packed()};
    changes_.push_back({false, false, event.time, event.addr, unknown, used_[unknown.where]});
    return;
  }
  const DumpBlock block = at->second;
  // Not by iterator: that looks for the next element, far away in a table that was once larger.
  live_.erase(key, BlockKeyHash{}(key));
  freed_[freed_at_++ % kUndoDepth] = {key, block};
  ends(block, event.addr, event.time, false);
}

void DumpBlocks::undo(const Event& event) {
  const auto record = decode_record<UndoRecord>(event.words);
  if (!record) return;
  const Where where = Where::unpack(static_cast<uint16_t>(record->where));
  const uint64_t key = block_key(record->addr, where);
  for (size_t back = 1; back <= kUndoDepth; ++back) {
    Freed& freed = freed_[(freed_at_ + kUndoDepth - back) % kUndoDepth];
    if (freed.key != key || freed.block.size == 0) continue;
    if (live_.try_emplace(key, freed.block).second) {
      begins(freed.block, record->addr, event.time, true);
    }
    freed = {};
    return;
  }
}

void DumpBlocks::window(const Event& event) {
  constexpr uint64_t kStart = 1;
  if (forget_pending_) forget_unseeded();
  if (event.size == kStart) {
    forget_pending_ = stop_time_ != 0 && !recording_;
    ++window_;
    window_time_ = event.time;
    recording_ = true;
    return;
  }
  if (recording_) stop_time_ = event.time;
  recording_ = false;
}

void DumpBlocks::seed(const Event& event) {
  const uint64_t size = event.size & kSizeMask;
  if (size == 0) return;
  const auto [at, fresh] = live_.try_emplace(block_key(event.addr, event.where));
  DumpBlock& block = at.value();
  if (!fresh) {
    const uint64_t apart = std::max(block.birth, event.birth) - std::min(block.birth, event.birth);
    if (apart <= kSkewNs && block.size == size) {  // the same block, told again
      block.window = window_;
      return;
    }
    if (block.window == window_ && block.birth >= window_time_) return;  // the seed is older
    ends(block, event.addr, event.time, true);
  }
  block = {++last_id_, size, event.birth, window_, event.where.packed()};
  begins(block, event.addr, event.time, true);
}

// What was alive at stop() and is not seeded at start() was freed in between.
void DumpBlocks::forget_unseeded() {
  forget_pending_ = false;
  std::vector<std::pair<uint64_t, uint64_t>> gone;  // allocation_id, key
  for (const auto& [key, block] : live_) {
    if (block.window < window_ && block.birth <= stop_time_) gone.emplace_back(block.id, key);
  }
  std::sort(gone.begin(), gone.end());
  for (const auto& [id, key] : gone) {
    const DumpBlock block = live_.find(key)->second;
    live_.erase(key, BlockKeyHash{}(key));
    ends(block, block_addr(key, Where::unpack(block.where)), window_time_, true);
  }
}

const DumpBlock* DumpBlocks::find(uint64_t addr, Where where) const {
  const auto at = live_.find(block_key(addr, where));
  return at == live_.end() ? nullptr : &at->second;
}

std::vector<BlockChange> DumpBlocks::live(uint64_t time) const {
  std::vector<BlockChange> blocks;
  blocks.reserve(live_.size());
  for (const auto& [key, block] : live_) {
    const uint64_t addr = block_addr(key, Where::unpack(block.where));
    blocks.push_back({true, true, time, addr, block, used_[block.where]});
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const BlockChange& a, const BlockChange& b) { return a.block.id < b.block.id; });
  return blocks;
}

}  // namespace memscope
