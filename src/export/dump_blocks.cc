// HOT PATH: feed().
#include "export/dump_blocks.h"

#include <algorithm>

#include "trace/records.h"

namespace memscope {

std::span<const BlockChange> DumpBlocks::feed(const Event& event) {
  settle(event.time);
  blocks_.feed(event, *this);
  return changes_;
}

std::span<const BlockChange> DumpBlocks::finish() {
  changes_.clear();
  blocks_.forget_unseeded(*this);
  return changes_;
}

void DumpBlocks::change(bool alloc, bool shadow, const DumpBlock& block, uint64_t addr,
                        uint64_t time) {
  uint64_t& used = used_[block.where];
  used = alloc ? used + block.size : used - std::min<uint64_t>(used, block.size);
  changes_.push_back({alloc, shadow, time, addr, block, used});
}

bool DumpBlocks::begins(DumpBlock& block, const Event& event) {
  block.id = ++last_id_;
  block.sampled_size = event.sampled_size;
  change(true, event.kind == EventKind::kSeed, block, event.addr, event.time);
  return true;
}

void DumpBlocks::ends(const DumpBlock& block, const BlockEnd& end) {
  const bool unseen = end.how != BlockEnding::kFreed;
  change(false, unseen, block, block_addr(end.key, block.place()), end.time);
}

void DumpBlocks::returns(DumpBlock& block, const Event& event) {
  const auto record = decode_record<UndoRecord>(event.words);
  change(true, true, block, record->addr, event.time);
}

void DumpBlocks::unknown_free(const Event& event) {
  if (event.size == 0) {
    ++frees_left_out_;
    return;
  }
  DumpBlock unknown;
  unknown.id = ++last_id_;
  unknown.size = event.size & kSizeMask;
  unknown.where = event.where.packed();
  changes_.push_back({false, false, event.time, event.addr, unknown, used_[unknown.where]});
}

const DumpBlock* DumpBlocks::find(uint64_t addr, Where where) const {
  const auto at = blocks_.live().find(block_key(addr, where));
  return at == blocks_.live().end() ? nullptr : &at->second;
}

std::vector<BlockChange> DumpBlocks::live(uint64_t time) const {
  std::vector<BlockChange> blocks;
  blocks.reserve(blocks_.live().size());
  for (const auto& [key, block] : blocks_.live()) {
    const uint64_t addr = block_addr(key, block.place());
    blocks.push_back({true, true, time, addr, block, used_[block.where]});
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const BlockChange& a, const BlockChange& b) { return a.block.id < b.block.id; });
  return blocks;
}

}  // namespace memscope
