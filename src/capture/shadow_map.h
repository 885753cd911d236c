// The live blocks of the process: address -> (size and where, birth). Kept from the moment the
// hooks are in, recorded or not, so that a recording can begin with what is already alive.
// HOT PATH: two cache lines and one compare-and-swap an event; no lock, no shared counter, no move.
//
//   segment 0  [bucket x 4096]  segment 1  [bucket x 2048]  segment 2  [bucket x 3072]  ...
//                                             each half as large as all before it together
//   bucket     128 bytes, 7 blocks of 18:
//     head[7]  address, 48 | size 0-15          0 free, 1 being written
//     tail[7]  birth after the origin, 56 | size 16-23
//     rest[7]  where's place in the list, 5 | size 24-34            spilled
//
// An address has three buckets in a segment; the next one is used, and looked at, only where the
// last was once full (`spilled`). The first is by place: 256 bytes of memory share a bucket, 64 KiB
// are a run of them, so that threads whose allocator keeps them apart write different cache lines.
// The others are spread. Insertions try the segment that took the last block of the same 64 KiB
// (hints_), then the newest ones, newest first, and then add one; look-ups likewise.
// Two threads never write one address at once: its allocator gives it to one of them. Different
// addresses meet only when claiming a free place, which the swap settles. An address that is
// already there (its free was unseen) is overwritten.
//
// Guarantees
//  * Memory: 512 KiB for the first 28 thousand blocks, touched as they come; then 18.3 B a place,
//    where a segment is begun when nearly all places of the newest ones are taken, and is a third
//    of all then. Measured (shadow_map_test.cc, tests/hostile/test_memory.py): 20 to 40 B a live
//    block while a program grows, and no more where blocks come and go.
//  * A block that does not fit into 18 bytes (32 GiB and more; an address beyond 48 bits; a birth
//    before the origin) goes to a list of kWide such blocks.
//  * Where no place can be had, the block is counted in lost(), and is missing from later
//    recordings' start.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memscope::capture {

class ShadowMap {
 public:
  struct Block {
    uint64_t addr, sized, birth;  // sized as in pack_sized(); birth in ticks, 0 = before the hooks
  };

  // Births are kept as ticks after this. Before the first insert().
  void set_origin(uint64_t ticks) { origin_ = ticks; }

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
      Bucket* buckets = segments_[s].load(std::memory_order_acquire);
      if (buckets == nullptr) break;
      for (size_t b = 0; b < kBuckets[s]; ++b) {
        for (size_t i = 0; i < kPlaces; ++i) {
          const uint64_t head = buckets[b].head[i].load(std::memory_order_acquire);
          if (head > kClaimed) visit(unpacked({buckets + b, i}, head));
        }
      }
    }
    for (const Wide& wide : wide_) {
      const uint64_t addr = wide.addr.load(std::memory_order_acquire);
      if (addr > kClaimed) visit(wide.block(addr));
    }
  }

  size_t count() const;  // by walking it
  void clear();          // while nobody uses it
  size_t bytes() const;  // of its segments, of which not every page need have been touched
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kFree = 0, kClaimed = 1;
  static constexpr size_t kPlaces = 7;
  static constexpr size_t kSegments = 32;
  static constexpr size_t kTried = 8, kChoices = 3;
  static constexpr unsigned kHintBits = 10;
  static constexpr size_t kWide = 64, kWheres = 31;
  static constexpr unsigned kAddrBits = 48, kBirthBits = 56, kSizeBits = 35;

  // Whole pages of 32 buckets.
  static constexpr std::array<size_t, kSegments> kBuckets = [] {
    std::array<size_t, kSegments> counts{4096};
    size_t sum = counts[0];
    for (size_t s = 1; s < kSegments; ++s) {
      counts[s] = sum / 2 / 32 * 32;
      sum += counts[s];
    }
    return counts;
  }();

  struct alignas(128) Bucket {
    std::atomic<uint64_t> head[kPlaces];
    std::atomic<uint64_t> tail[kPlaces];
    std::atomic<uint16_t> rest[kPlaces];
    std::atomic<uint16_t> spilled;
  };
  static_assert(sizeof(Bucket) == 128);

  struct Place {
    Bucket* bucket = nullptr;
    size_t index = 0;
  };
  // The three words of a block; no head where it does not fit into them.
  struct Packed {
    uint64_t head = kFree, tail = 0;
    uint16_t rest = 0;
  };
  struct Wide {
    std::atomic<uint64_t> addr, sized, birth;
    Block block(uint64_t known) const {
      return {known, sized.load(std::memory_order_relaxed), birth.load(std::memory_order_relaxed)};
    }
  };

  Packed packed(const Block& block);
  Block unpacked(Place place, uint64_t head) const;
  // The place that stands for `where` in a block's words; kWheres where the list is full.
  unsigned place_of(uint16_t where);

  std::atomic<uint8_t>& hint_of(uint64_t addr);
  Place find(uint64_t addr, size_t segment) const;
  Place find_or_claim(uint64_t addr, size_t segment);
  static Place find_or_claim(uint64_t addr, Bucket& bucket);
  void place_new(const Block& block);
  static void fill(Place place, const Packed& packed);
  Bucket* segment_at(size_t segment);

  Wide* find_wide(uint64_t addr) const;
  void insert_wide(const Block& block);

  uint64_t origin_ = 0;
  std::atomic<uint32_t> wheres_[kWheres] = {};  // where + 1
  std::atomic<uint32_t> any_wide_ = 0;          // there has ever been one
  std::atomic<Bucket*> segments_[kSegments] = {};
  std::atomic<size_t> newest_ = 0;
  std::atomic<uint8_t> hints_[size_t{1} << kHintBits] = {};
  std::atomic<uint64_t> lost_ = 0;
  Wide wide_[kWide] = {};
};

}  // namespace memscope::capture
