#include "analysis/pool_simulator.h"

#include <algorithm>
#include <utility>

namespace memscope {
namespace {

constexpr uint64_t kMaxRequest = uint64_t{1} << 60;
// Of a new range. Real ones have 9/8 of the device's memory; a snapshot does not say how much it
// has.
constexpr uint64_t kRangeSize = uint64_t{1} << 42;

}  // namespace

uint64_t AscendingDriver::place(PoolAction action, uint64_t size) {
  const uint64_t at = next_;
  next_ += action == PoolAction::kSegmentMap ? kRangeSize : round_up(size, kPoolRoundLarge);
  return at;
}

// -- blocks and their chains ----------------------------------------------------------------------

uint32_t PoolSimulator::pool_of(uint16_t id, bool small) {
  for (uint32_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].id == id && pools_[i].small == small) return i;
  }
  pools_.emplace_back();
  pools_.back().id = id;
  pools_.back().small = small;
  return static_cast<uint32_t>(pools_.size() - 1);
}

uint32_t PoolSimulator::new_block() {
  if (unused_.empty()) {
    blocks_.emplace_back();
    return static_cast<uint32_t>(blocks_.size() - 1);
  }
  const uint32_t block = unused_.back();
  unused_.pop_back();
  blocks_[block] = {};
  return block;
}

void PoolSimulator::drop_block(uint32_t block) {
  unused_.push_back(block);
}

void PoolSimulator::insert_free(uint32_t number) {
  Block& block = blocks_[number];
  Pool& pool = pools_[block.pool];
  block.age = pool.searches;
  pool.free.emplace(block.stream, block.size, block.addr, number);
}

void PoolSimulator::erase_free(uint32_t number) {
  const Block& block = blocks_[number];
  pools_[block.pool].free.erase({block.stream, block.size, block.addr, number});
}

uint32_t PoolSimulator::split_off(uint32_t number, uint64_t size) {
  const uint32_t behind = new_block();
  Block& block = blocks_[number];
  Block& rest = blocks_[behind];
  rest = block;
  rest.addr += size;
  rest.size -= size;
  rest.requested = 0;
  rest.prev = number;
  if (rest.next != kNone) blocks_[rest.next].prev = behind;
  block.next = behind;
  block.size = size;
  return behind;
}

// Both in a chain, neither in a set.
uint32_t PoolSimulator::merge(uint32_t low, uint32_t high) {
  blocks_[low].size += blocks_[high].size;
  blocks_[low].next = blocks_[high].next;
  if (blocks_[low].next != kNone) blocks_[blocks_[low].next].prev = low;
  drop_block(high);
  return low;
}

// Makes a block free, together with its free neighbours.
uint32_t PoolSimulator::merge_free(uint32_t block) {
  const auto joins = [&](uint32_t other) {
    return other != kNone && !blocks_[other].used && blocks_[other].mapped;
  };
  if (const uint32_t prev = blocks_[block].prev; joins(prev)) {
    erase_free(prev);
    block = merge(prev, block);
  }
  if (const uint32_t next = blocks_[block].next; joins(next)) {
    erase_free(next);
    merge(block, next);
  }
  insert_free(block);
  return block;
}

std::optional<PoolSimulator::BlockNumber> PoolSimulator::at(uint64_t addr) const {
  const auto block = used_.find(addr);
  if (block == used_.end()) return std::nullopt;
  return block->second;
}

// -- requests -------------------------------------------------------------------------------------

std::optional<PoolSimulator::BlockNumber> PoolSimulator::alloc(const Request& request) {
  events_.clear();
  if (request.request >= kMaxRequest) return std::nullopt;
  const uint64_t size = rounded_request(request.request, settings_.rounding);
  const uint32_t pool = pool_of(request.pool, size <= kPoolSmallSize);
  uint32_t block = best_fit(pool, request.stream, size);
  if (block == kNone) {
    collect_garbage();
    block = new_memory(pool, request.stream, size);
  }
  if (block == kNone && give_up_oversize(pool, request.stream, size)) {
    block = new_memory(pool, request.stream, size);
  }
  if (block == kNone) {
    give_up_cache();
    ++retries_;
    block = new_memory(pool, request.stream, size);
  }
  if (block == kNone) return std::nullopt;
  return take(block, size, request.request);
}

void PoolSimulator::free(BlockNumber block) {
  events_.clear();
  blocks_[block].used = false;
  used_.erase(blocks_[block].addr);
  allocated_ -= blocks_[block].size;
  requested_ -= blocks_[block].requested;
  merge_free(block);
}

void PoolSimulator::empty_cache() {
  events_.clear();
  give_up_cache();
}

// How large an expandable block can be without one more of its neighbours.
uint64_t PoolSimulator::reach(uint32_t number) const {
  const Block& block = blocks_[number];
  const bool grows = block.next != kNone && !blocks_[block.next].mapped;
  return block.size + (grows ? blocks_[block.next].size : 0);
}

uint32_t PoolSimulator::best_fit(uint32_t number, uint64_t stream, uint64_t size) {
  Pool& pool = pools_[number];
  ++pool.searches;
  const auto block_of = [](const FreeKey& key) { return std::get<3>(key); };
  const auto same_stream = [&](auto at) {
    return at != pool.free.end() && std::get<0>(*at) == stream;
  };
  auto at = pool.free.lower_bound({stream, size, 0, 0});
  if (!same_stream(at)) return kNone;
  if (blocks_[block_of(*at)].range != kNone) {
    if (settings_.expandable) {
      // The one that can grow comes last.
      for (auto next = std::next(at); same_stream(next); ++next) {
        if (reach(block_of(*next)) >= reach(block_of(*at))) break;
        at = next;
      }
    } else {
      do {
        ++at;
      } while (same_stream(at) && blocks_[block_of(*at)].range != kNone);
      if (!same_stream(at)) return kNone;
    }
  }
  // This one or none: no other is looked at.
  const uint64_t found = std::get<1>(*at);
  if (size < settings_.max_split && found >= settings_.max_split) return kNone;
  if (size >= settings_.max_split && found >= size + settings_.max_unsplit) return kNone;
  const uint32_t block = block_of(*at);
  pool.free.erase(at);
  return block;
}

// Hands out the low end of a block that is in no set.
uint32_t PoolSimulator::take(uint32_t block, uint64_t size, uint64_t request) {
  if (settings_.expandable && settings_.align != 0 && size >= kPoolRoundLarge) {
    const uint64_t over = blocks_[block].addr % settings_.align;
    const uint64_t left_out = over == 0 ? 0 : settings_.align - over;
    if (left_out != 0 && left_out + size <= blocks_[block].size) {
      const uint32_t aligned = split_off(block, left_out);
      insert_free(block);
      block = aligned;
    }
  }
  const uint64_t rest = blocks_[block].size - size;
  const bool to_measure = pools_[blocks_[block].pool].small || settings_.expandable;
  if (to_measure ? rest >= kPoolMinBlock : size < settings_.max_split && rest > kPoolSmallSize) {
    insert_free(split_off(block, size));
  }
  Block& taken = blocks_[block];
  taken.used = true;
  taken.requested = request;
  used_[taken.addr] = block;
  allocated_ += taken.size;
  requested_ += request;
  return block;
}

// -- new memory -----------------------------------------------------------------------------------

bool PoolSimulator::refused(uint64_t bytes) {
  return driver_.refuses() ||
         (settings_.capacity != PoolSettings::kUnlimited &&
          bytes > settings_.capacity - std::min(settings_.capacity, reserved_));
}

uint64_t PoolSimulator::segment_bytes(uint64_t size) const {
  if (size <= kPoolSmallSize) return kPoolSmallSegment;
  if (size < kPoolMinLarge) return settings_.large_segment;
  return round_up(size, kPoolRoundLarge);
}

uint32_t PoolSimulator::new_memory(uint32_t pool, uint64_t stream, uint64_t size) {
  const uint64_t bytes = segment_bytes(size);
  if (settings_.limit != PoolSettings::kUnlimited && reserved_ + bytes > settings_.limit) {
    return kNone;
  }
  if (settings_.expandable) return grow(pool, stream, size);
  if (refused(bytes)) return kNone;
  const uint32_t block = new_block();
  blocks_[block].addr = driver_.place(PoolAction::kSegmentAlloc, bytes);
  blocks_[block].size = bytes;
  blocks_[block].stream = stream;
  blocks_[block].pool = pool;
  reserved_ += bytes;
  ++segments_;
  events_.push_back({PoolAction::kSegmentAlloc, blocks_[block].addr, bytes});
  return block;
}

// The first place of a range where enough lies together that is not used, mapped or not.
uint32_t PoolSimulator::room_to_grow(uint32_t number, uint64_t stream, uint64_t size) {
  const std::set<UnmappedKey>& unmapped = pools_[number].unmapped;
  for (auto at = unmapped.lower_bound({stream, 0, 0});
       at != unmapped.end() && std::get<0>(*at) == stream; ++at) {
    uint32_t first = std::get<2>(*at);
    const uint32_t prev = blocks_[first].prev;
    if (prev != kNone && blocks_[prev].mapped && !blocks_[prev].used) first = prev;
    uint64_t together = 0;
    for (uint32_t block = first; block != kNone && !blocks_[block].used && together < size;
         block = blocks_[block].next) {
      together += blocks_[block].size;
    }
    if (together >= size) return first;
  }
  const uint64_t page = pools_[number].small ? settings_.small_page : settings_.large_page;
  const uint64_t bytes = round_up(std::max(kRangeSize, size), page);
  const uint32_t block = new_block();
  Block& made = blocks_[block];
  made.addr = driver_.place(PoolAction::kSegmentMap, bytes);
  made.size = bytes;
  made.stream = stream;
  made.pool = number;
  made.range = static_cast<uint32_t>(ranges_.size());
  made.mapped = false;
  ranges_.push_back({.base = made.addr, .size = bytes, .mapped = 0, .page = page});
  pools_[number].unmapped.emplace(stream, made.addr, block);
  return block;
}

uint32_t PoolSimulator::grow(uint32_t pool, uint64_t stream, uint64_t size) {
  uint32_t block = room_to_grow(pool, stream, size);
  if (!blocks_[block].mapped) {
    block = map(block, std::min(blocks_[block].size, size));
    if (block == kNone) return kNone;
  }
  while (blocks_[block].size < size) {
    const uint32_t next = blocks_[block].next;
    // What was mapped before a failure stays mapped.
    block = map(next, std::min(size - blocks_[block].size, blocks_[next].size));
    if (block == kNone) return kNone;
  }
  erase_free(block);
  return block;
}

// Maps the beginning of an unmapped block, in whole pages. The free block that it is part of then.
uint32_t PoolSimulator::map(uint32_t number, uint64_t size) {
  Range& range = ranges_[blocks_[number].range];
  const uint64_t from = blocks_[number].addr - range.base;
  size = std::min(round_up(from + size, range.page) - from, blocks_[number].size);
  if (refused(size)) return kNone;
  pools_[blocks_[number].pool].unmapped.erase(
      {blocks_[number].stream, blocks_[number].addr, number});
  if (size < blocks_[number].size) {
    const uint32_t rest = split_off(number, size);
    pools_[blocks_[rest].pool].unmapped.emplace(blocks_[rest].stream, blocks_[rest].addr, rest);
  }
  Block& block = blocks_[number];
  block.mapped = true;
  if (range.mapped == 0) ++segments_;
  range.mapped += size;
  reserved_ += size;
  events_.push_back({PoolAction::kSegmentMap, block.addr, size});
  return merge_free(number);
}

// -- giving back ----------------------------------------------------------------------------------

// The whole pages of a free block.
void PoolSimulator::unmap(uint32_t number) {
  Range& range = ranges_[blocks_[number].range];
  const uint64_t begin = blocks_[number].addr - range.base;
  const uint64_t end = begin + blocks_[number].size;
  const uint64_t from = round_up(begin, range.page), to = end / range.page * range.page;
  if (from >= to) return;
  erase_free(number);
  if (from > begin) {
    const uint32_t behind = split_off(number, from - begin);
    insert_free(number);
    number = behind;
  }
  if (to < end) insert_free(split_off(number, to - from));
  blocks_[number].mapped = false;
  range.mapped -= to - from;
  reserved_ -= to - from;
  events_.push_back({PoolAction::kSegmentUnmap, blocks_[number].addr, to - from});
  std::set<UnmappedKey>& unmapped = pools_[blocks_[number].pool].unmapped;
  const auto joins = [&](uint32_t other) { return other != kNone && !blocks_[other].mapped; };
  const auto key = [&](uint32_t block) {
    return UnmappedKey{blocks_[block].stream, blocks_[block].addr, block};
  };
  if (const uint32_t prev = blocks_[number].prev; joins(prev)) {
    unmapped.erase(key(prev));
    number = merge(prev, number);
  }
  if (const uint32_t next = blocks_[number].next; joins(next)) {
    unmapped.erase(key(next));
    merge(number, next);
  }
  if (range.mapped == 0) {
    --segments_;
    drop_block(number);
  } else {
    unmapped.insert(key(number));
  }
}

void PoolSimulator::give_back(uint32_t number) {
  erase_free(number);
  const Block& block = blocks_[number];
  reserved_ -= block.size;
  --segments_;
  events_.push_back({PoolAction::kSegmentFree, block.addr, block.size});
  drop_block(number);
}

void PoolSimulator::give_up(uint32_t pool) {
  // In their order, which giving them up changes.
  std::vector<uint32_t> whole, ranges;
  for (const FreeKey& key : pools_[pool].free) {
    const uint32_t block = std::get<3>(key);
    if (blocks_[block].range != kNone) {
      ranges.push_back(block);
    } else if (blocks_[block].prev == kNone && blocks_[block].next == kNone) {
      whole.push_back(block);
    }
  }
  for (const uint32_t block : whole) give_back(block);
  for (const uint32_t block : ranges) unmap(block);
}

// The default pools'; those of graphs and MemPools are kept while they are in use.
void PoolSimulator::give_up_cache() {
  give_up(pool_of(0, false));
  give_up(pool_of(0, true));
}

// Whole blocks of the large pool that no request has wanted for longer than the others.
void PoolSimulator::collect_garbage() {
  if (settings_.limit == PoolSettings::kUnlimited || settings_.gc_threshold <= 0) return;
  const auto allowed =
      static_cast<uint64_t>(settings_.gc_threshold * static_cast<double>(settings_.limit));
  if (reserved_ <= allowed) return;
  const uint64_t wanted = reserved_ - allowed;
  const uint32_t pool = pool_of(0, false);
  struct Old {
    uint32_t block = 0, age = 0;
  };
  std::vector<Old> old;
  double ages = 0;
  for (const FreeKey& key : pools_[pool].free) {
    const uint32_t number = std::get<3>(key);
    const Block& block = blocks_[number];
    if (block.range != kNone || block.prev != kNone || block.next != kNone) continue;
    old.push_back({number, pools_[pool].searches - block.age});
    ages += old.back().age;
  }
  uint64_t given = 0;
  while (given < wanted && !old.empty()) {
    const double mean = ages / static_cast<double>(old.size());
    std::vector<Old> younger;
    for (const Old& one : old) {
      if (one.age < mean) {
        younger.push_back(one);
        continue;
      }
      given += blocks_[one.block].size;
      ages -= one.age;
      give_back(one.block);
    }
    if (younger.size() == old.size()) break;
    old = std::move(younger);
  }
}

// With max_split only: the smallest oversize block that is large enough, or the largest ones
// together.
bool PoolSimulator::give_up_oversize(uint32_t number, uint64_t stream, uint64_t size) {
  if (settings_.max_split == PoolSettings::kUnlimited) return false;
  std::set<FreeKey>& free = pools_[number].free;
  const uint64_t wanted = std::max(size, settings_.max_split);
  const auto is_range = [&](const FreeKey& key) {
    return blocks_[std::get<3>(key)].range != kNone;
  };
  auto at = free.lower_bound({stream, wanted, 0, 0});
  while (at != free.end() && std::get<0>(*at) == stream && is_range(*at)) ++at;
  if (at != free.end() && std::get<0>(*at) == stream) {
    give_back(std::get<3>(*at));
    return true;
  }
  std::vector<uint32_t> largest;
  uint64_t given = 0;
  at = free.lower_bound({stream, wanted, 0, 0});
  while (at != free.begin() && given < wanted) {
    --at;
    if (std::get<0>(*at) != stream || std::get<1>(*at) < settings_.max_split) break;
    if (is_range(*at)) continue;
    given += std::get<1>(*at);
    largest.push_back(std::get<3>(*at));
  }
  for (const uint32_t block : largest) give_back(block);
  return given >= wanted;
}

}  // namespace memscope
