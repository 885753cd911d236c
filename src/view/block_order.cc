#include "view/block_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

namespace memscope::view {
namespace {

constexpr std::array<std::string_view, kOrderCount> kNames = {"alloc", "site", "owner", "lifetime"};

// Classes whose bytes stay come first: what breathes would push what lies above it up and down.
std::vector<uint32_t> steady_first(size_t count, const std::vector<uint64_t>& alive,
                                   const std::vector<uint64_t>& turnover) {
  std::vector<uint32_t> order(count), position(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return alive[a] != alive[b] ? alive[a] > alive[b] : turnover[a] < turnover[b];
  });
  for (uint32_t i = 0; i < count; ++i) position[order[i]] = i;
  return position;
}

template <typename KeyOf>
std::vector<uint32_t> positions(const PoolIndex& pool, size_t count, KeyOf key_of) {
  std::vector<uint64_t> alive(count), turnover(count);
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    const uint32_t key = key_of(block);
    if (pool.free_event[block] == kAlive) {
      alive[key] += pool.size(block);
    } else {
      turnover[key] += pool.size(block);
    }
  }
  return steady_first(count, alive, turnover);
}

// A counting sort: stable, so that blocks of one key stay in the order of their allocation.
template <typename KeyOf>
void sort_blocks(const PoolIndex& pool, size_t keys, KeyOf key_of, FileVector<uint32_t>& rank,
                 FileVector<uint32_t>& block_at) {
  const uint32_t count = pool.blocks();
  std::vector<uint32_t> next(keys + 1);
  for (uint32_t block = 1; block <= count; ++block) ++next[key_of(block) + 1];
  next[0] = 1;  // rank 0 is block 0
  std::partial_sum(next.begin(), next.end(), next.begin());
  rank.resize(count + size_t{1});
  block_at.resize(count + size_t{1});
  for (uint32_t block = 1; block <= count; ++block) {
    const uint32_t at = next[key_of(block)]++;
    rank[block] = at;
    block_at[at] = block;
  }
}

}  // namespace

std::optional<OrderBy> order_from_name(std::string_view name) {
  const auto* at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<OrderBy>(at - kNames.begin());
}

std::string_view order_name(OrderBy by) {
  return kNames[static_cast<size_t>(by)];
}

BlockOrder::BlockOrder(const InputIndex& input, const PoolIndex& pool, OrderBy by) {
  const auto site = [&](uint32_t block) { return input.site_of_stack(pool.stack[block]); };
  const auto owner = [&](uint32_t block) { return pool.owner[block]; };
  switch (by) {
    case OrderBy::kAlloc:
      break;
    case OrderBy::kSite: {
      const auto position = positions(pool, input.site_count(), site);
      sort_blocks(
          pool, position.size(), [&](uint32_t block) { return position[site(block)]; }, rank_,
          block_);
      break;
    }
    case OrderBy::kOwner: {
      const auto position = positions(pool, input.owners.size(), owner);
      sort_blocks(
          pool, position.size(), [&](uint32_t block) { return position[owner(block)]; }, rank_,
          block_);
      break;
    }
    case OrderBy::kLifetime: {
      const Lifetimes lifetimes(input, pool);
      FileVector<uint8_t> classes;
      classes.resize(pool.blocks() + size_t{1});
      for (uint32_t block = 1; block <= pool.blocks(); ++block)
        classes[block] = lifetimes.of(block);
      sort_blocks(
          pool, kLifetimeClasses, [&](uint32_t block) { return classes[block]; }, rank_, block_);
      break;
    }
  }
}

Lifetimes::Lifetimes(const InputIndex& input, const PoolIndex& pool) : pool_(pool) {
  // Young: born in the last two steps, or the last twentieth of a run without steps.
  uint64_t from = input.end - (input.end - input.begin) / 20;
  const auto& ends = input.steps.ends;
  if (ends.size() >= 8) from = ends[ends.size() - 3];
  young_ = pool.state_at(from);
}

uint8_t Lifetimes::of_duration(uint64_t ns) {
  constexpr int kShortest = 14;  // 2^14 ns, 16 us, and less: the last class
  const int half = (std::bit_width(ns | 1) - kShortest) / 2;
  const int steps = std::clamp(half, 0, kLifetimeClasses - kFirstFreed - 1);
  return static_cast<uint8_t>(kLifetimeClasses - 1 - steps);
}

uint64_t Lifetimes::shortest(uint8_t lifetime_class) {
  if (lifetime_class >= kLifetimeClasses - 1) return 0;
  const int steps = kLifetimeClasses - 1 - lifetime_class;
  return uint64_t{1} << (14 + 2 * steps - 1);
}

}  // namespace memscope::view
