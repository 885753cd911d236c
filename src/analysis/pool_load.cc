// The beginning of a simulation: what is there already (PoolSimulator::load()).
#include <algorithm>

#include "analysis/pool_simulator.h"

namespace memscope {
namespace {

struct Piece {
  uint64_t addr = 0, size = 0, requested = 0;
  bool used = false, mapped = true;
};

// The blocks of a segment, and what lies free between them. False where they do not fit in it.
bool pieces_of(const PoolSegment& segment, const std::vector<PoolBlock>& blocks,
               std::vector<Piece>& pieces) {
  const uint64_t end = segment.addr + segment.size;
  auto block =
      std::lower_bound(blocks.begin(), blocks.end(), segment.addr,
                       [](const PoolBlock& one, uint64_t addr) { return one.addr < addr; });
  uint64_t at = segment.addr;
  for (; block != blocks.end() && block->addr < end; ++block) {
    if (block->addr < at || block->size > end - block->addr || block->size == 0) return false;
    if (block->addr > at) pieces.push_back({.addr = at, .size = block->addr - at});
    pieces.push_back(
        {.addr = block->addr, .size = block->size, .requested = block->requested, .used = true});
    at = block->addr + block->size;
  }
  if (at < end) pieces.push_back({.addr = at, .size = end - at});
  return true;
}

}  // namespace

bool PoolSimulator::load(const PoolStart& start, const PoolTables& tables,
                         std::span<const Base> bases) {
  std::vector<Piece> pieces;
  const auto chain = [&](uint64_t stream, uint32_t pool, uint32_t range) {
    uint32_t before = kNone;
    for (const Piece& piece : pieces) {
      const uint32_t number = new_block();
      Block& block = blocks_[number];
      block.addr = piece.addr;
      block.size = piece.size;
      block.requested = piece.requested;
      block.stream = stream;
      block.pool = pool;
      block.range = range;
      block.used = piece.used;
      block.mapped = piece.mapped;
      block.prev = before;
      if (before != kNone) blocks_[before].next = number;
      before = number;
      if (piece.used) {
        used_[piece.addr] = number;
        allocated_ += piece.size;
        requested_ += piece.requested;
      } else if (piece.mapped) {
        insert_free(number);
      } else {
        pools_[pool].unmapped.emplace(stream, piece.addr, number);
      }
    }
  };
  size_t placed = 0;
  const auto count = static_cast<size_t>(
      std::count_if(start.segments.begin(), start.segments.end(),
                    [](const PoolSegment& segment) { return !segment.workspace; }));
  for (const PoolSegment& segment : start.segments) {
    if (segment.expandable || segment.workspace) continue;
    pieces.clear();
    if (!pieces_of(segment, start.blocks, pieces)) return false;
    chain(tables.streams[segment.stream], pool_of(segment.pool, !segment.large), kNone);
    reserved_ += segment.size;
    ++segments_;
    ++placed;
  }
  for (const Base& base : bases) {
    pieces.clear();
    uint64_t at = base.addr, mapped = 0;
    uint16_t id = 0;
    for (const PoolSegment& segment : start.segments) {
      if (!segment.expandable || segment.large != base.large || segment.addr < base.addr ||
          segment.addr - base.addr >= base.size || tables.streams[segment.stream] != base.stream) {
        continue;
      }
      if (segment.size > base.size - (segment.addr - base.addr) || segment.addr < at) return false;
      if (segment.addr > at) {
        pieces.push_back({.addr = at,
                          .size = segment.addr - at,
                          .requested = 0,
                          .used = false,
                          .mapped = false});
      }
      if (!pieces_of(segment, start.blocks, pieces)) return false;
      at = segment.addr + segment.size;
      mapped += segment.size;
      id = segment.pool;
      ++placed;
    }
    const uint64_t left = base.addr + base.size - at;
    if (left != 0) {
      pieces.push_back({.addr = at, .size = left, .requested = 0, .used = false, .mapped = false});
    }
    const auto range = static_cast<uint32_t>(ranges_.size());
    ranges_.push_back({.base = base.addr,
                       .size = base.size,
                       .mapped = mapped,
                       .page = base.large ? settings_.large_page : settings_.small_page});
    chain(base.stream, pool_of(id, !base.large), range);
    reserved_ += mapped;
    segments_ += mapped != 0 ? 1 : 0;
  }
  return placed == count;
}

}  // namespace memscope
