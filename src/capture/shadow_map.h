// The live blocks of the process: address -> (size and where, birth). Kept from the moment the
// hooks are in, recorded or not, so that a recording can begin with what is already alive.
// HOT PATH: one cache line searched and one compare-and-swap an event; no lock, no shared counter.
//
//   segment 0  [bucket x 2 Ki]  segment 1  [bucket x 8 Ki]  ...    a new one where buckets are full
//   bucket     { 7 keys, spilled | 7 sized | 7 births }            three cache lines, 7 blocks
//   key        0 free, 1 being written, else the address
//
// An address has two buckets in a segment; the second is used, and looked at, only where the first
// was once full (`spilled`). Insertions try the newest segment and then add one; older ones drain.
// Two threads never write one address at once: its allocator gives it to one of them. Different
// addresses meet only when claiming a free key, which the swap settles. An address that is already
// there (its free was unseen) is overwritten.
//
// Memory: about 28 B a block, in segments of which at least half fills up. Where no segment can be
// had, the block is counted in lost(), and is missing from later recordings' start.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memscope::capture {

class ShadowMap {
 public:
  struct Block {
    uint64_t addr, sized, birth;  // sized as in pack_sized(); birth in ticks, 0 = before the hooks
  };

  void insert(uint64_t addr, uint64_t sized, uint64_t birth) noexcept;
  // The same for an address that is not in the map, without looking for it in every segment: for
  // sources of millions of blocks. Where its free was unseen, the old block may stay beside it.
  void insert_fresh(uint64_t addr, uint64_t sized, uint64_t birth) noexcept;
  bool contains(uint64_t addr) const noexcept;
  // Whether the address was there; what it was goes to `*gone`.
  bool erase(uint64_t addr, Block* gone = nullptr) noexcept;

  // Calls visit(Block) for each block in the map. Blocks inserted or erased meanwhile may or may
  // not be seen; a block inserted meanwhile may be seen with the size of the one it replaced.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t s = 0; s < kSegments; ++s) {
      const Bucket* buckets = segments_[s].load(std::memory_order_acquire);
      if (buckets == nullptr) return;
      for (size_t b = 0; b < bucket_count(s); ++b) {
        for (size_t i = 0; i < kKeys; ++i) {
          const uint64_t key = buckets[b].key[i].load(std::memory_order_acquire);
          if (key <= kClaimed) continue;
          visit(Block{key, buckets[b].sized[i].load(std::memory_order_relaxed),
                      buckets[b].birth[i].load(std::memory_order_relaxed)});
        }
      }
    }
  }

  size_t count() const;  // by walking it
  void clear();          // while nobody uses it
  size_t bytes() const;  // of its segments, most of which may never have been touched
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kFree = 0, kClaimed = 1;
  static constexpr size_t kKeys = 7;
  static constexpr size_t kSegments = 12;

  struct alignas(64) Bucket {
    std::atomic<uint64_t> key[kKeys];
    std::atomic<uint64_t> spilled;
    std::atomic<uint64_t> sized[kKeys];
    uint64_t unused0;
    std::atomic<uint64_t> birth[kKeys];
    uint64_t unused1;
  };
  static_assert(sizeof(Bucket) == 192);

  struct Place {
    Bucket* bucket = nullptr;
    size_t index = 0;
  };

  static constexpr size_t bucket_count(size_t segment) { return size_t{2048} << (2 * segment); }
  Place find(uint64_t addr, size_t segment) const;
  Place claim_new(uint64_t addr);
  static void fill(Place place, uint64_t addr, uint64_t sized, uint64_t birth);
  static Place claim(Bucket& bucket);
  Bucket* segment_at(size_t segment);

  std::atomic<Bucket*> segments_[kSegments] = {};
  std::atomic<size_t> newest_ = 0;
  std::atomic<uint64_t> lost_ = 0;
};

}  // namespace memscope::capture
