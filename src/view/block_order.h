// The total orders in which blocks are stacked: chosen once for the whole run, so that a band never
// jumps over another.
//
// Within a class blocks stand in the order of their allocation. Order `lifetime` puts what is never
// freed at the bottom, where a leak is one straight wedge; what is alive at the end only because it
// is young comes above it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "view/input_index.h"

namespace memscope::view {

enum class OrderBy : uint8_t { kAlloc, kSite, kOwner, kLifetime };
inline constexpr size_t kOrderCount = 4;
std::optional<OrderBy> order_from_name(std::string_view name);
std::string_view order_name(OrderBy by);

class BlockOrder {
 public:
  BlockOrder() = default;  // that of allocation
  BlockOrder(const InputIndex& input, const PoolIndex& pool, OrderBy by);
  // As it was kept: columns of blocks + 1 entries, each the other's inverse.
  BlockOrder(FileVector<uint32_t> rank, FileVector<uint32_t> block)
      : rank_(std::move(rank)), block_(std::move(block)) {}

  bool identity() const { return rank_.empty(); }
  uint32_t rank(uint32_t block) const { return identity() ? block : rank_[block]; }
  uint32_t block(uint32_t rank) const { return identity() ? rank : block_[rank]; }
  const uint32_t* ranks() const { return identity() ? nullptr : rank_.data(); }
  std::span<const uint32_t> rank_column() const { return rank_.span(); }
  std::span<const uint32_t> block_column() const { return block_.span(); }

 private:
  FileVector<uint32_t> rank_, block_;  // entry 0 is block 0, of rank 0
};

// Lifetime classes, also a colour: longest first, each four times as long as the next.
enum LifetimeClass : uint8_t {
  kNeverFreed = 0,
  kYoungAtEnd = 1,  // alive at the end, born in its last steps
  kFirstFreed = 2,
};
inline constexpr uint8_t kLifetimeClasses = 14;
class Lifetimes {
 public:
  Lifetimes(const InputIndex& input, const PoolIndex& pool);
  uint8_t of(uint32_t block) const {
    const uint32_t end = pool_.free_event[block];
    if (end == kAlive) return pool_.alloc_event[block] < young_ ? kNeverFreed : kYoungAtEnd;
    return of_duration(pool_.time[end] - pool_.time[pool_.alloc_event[block]]);
  }
  // The shortest lifetime of a class, ns.
  static uint64_t shortest(uint8_t lifetime_class);

 private:
  static uint8_t of_duration(uint64_t ns);
  const PoolIndex& pool_;
  uint32_t young_ = 0;  // the first event whose block is young
};

}  // namespace memscope::view
