#include "view/pool_index.h"

namespace memscope::view {
namespace {

// A block that began and ended leaves no trace in the totals; block 0 is no block.
uint64_t after(const PoolIndex& pool, uint32_t event, uint64_t bytes) {
  const uint32_t word = pool.event[event];
  const uint64_t size = pool.size(word & ~kFreeBit);
  return (word & kFreeBit) != 0 ? bytes - size : bytes + size;
}

}  // namespace

PoolIndex::PoolIndex(const std::filesystem::path& prefix) {
  if (prefix.empty()) return;
  for_each_column(*this, [&](const char* name, auto& column) {
    column =
        std::remove_reference_t<decltype(column)>(std::filesystem::path(prefix.string() + name));
  });
}

void PoolIndex::make_groups() {
  groups.resize(0);
  uint64_t bytes = 0;
  peak = {};
  const uint32_t count = events();
  for (uint32_t from = 0; from < count; from += kGroupEvents) {
    EventGroup group{.before = bytes, .most = 0, .least = ~uint64_t{0}};
    const uint32_t to = std::min(from + kGroupEvents, count);
    for (uint32_t at = from; at < to; ++at) {
      bytes = after(*this, at, bytes);
      if (bytes > group.most || at == from) {
        group.most = bytes;
        group.most_at = static_cast<uint8_t>(at - from);
      }
      if (bytes < group.least) {
        group.least = bytes;
        group.least_at = static_cast<uint8_t>(at - from);
      }
    }
    if (group.most > peak.bytes) peak = {from + group.most_at + 1, group.most};
    groups.push_back(group);
  }
  live_bytes = bytes;
  live_blocks = 0;
  for (uint32_t block = 1; block <= blocks(); ++block) {
    live_blocks += free_event[block] == kAlive ? 1 : 0;
  }
}

uint64_t PoolIndex::bytes_in(uint32_t state) const {
  if (state == 0 || groups.empty()) return 0;
  state = std::min(state, events());
  const uint32_t group = (state - 1) / kGroupEvents;
  uint64_t bytes = groups[group].before;
  for (uint32_t at = group * kGroupEvents; at < state; ++at) bytes = after(*this, at, bytes);
  return bytes;
}

std::pair<Extreme, Extreme> PoolIndex::extremes(uint32_t first, uint32_t last) const {
  last = std::min(last, events());
  first = std::min(first, last);
  uint64_t bytes = bytes_in(first);
  Extreme most{first, bytes}, least{first, bytes};
  const auto take = [&](uint32_t state, uint64_t value) {
    if (value > most.bytes) most = {state, value};
    if (value < least.bytes) least = {state, value};
  };
  for (uint32_t at = first; at < last;) {
    if (at % kGroupEvents == 0 && at + kGroupEvents <= last) {
      const EventGroup& group = groups[at / kGroupEvents];
      take(at + group.most_at + 1, group.most);
      take(at + group.least_at + 1, group.least);
      at += kGroupEvents;
      if (at < last) bytes = groups[at / kGroupEvents].before;
    } else {
      bytes = after(*this, at, bytes);
      ++at;
      take(at, bytes);
    }
  }
  return {most, least};
}

}  // namespace memscope::view
