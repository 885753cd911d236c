#include "capture/shadow_map.h"

#include <sys/mman.h>

#include "trace/record_table.h"

namespace memscope::capture {
namespace {

// Where the n-th choice of an address lies among `count` buckets. The low bits of an address are
// its alignment; the product's high bits depend on all of them. A 32-bit number times the count, of
// which the upper half is taken, is spread over any count.
[[gnu::always_inline]] inline size_t bucket_of(uint64_t addr, size_t choice, size_t count) {
  constexpr uint64_t kFactors[] = {0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u, 0xC2B2AE3D27D4EB4Fu};
  constexpr unsigned kRegionBits = 16, kBucketBits = 8;  // 256 buckets a region
  const uint64_t spread = choice == 0 ? addr >> kRegionBits : addr;
  const size_t at = (spread * kFactors[choice] >> 32) * count >> 32;
  if (choice != 0) return at;
  const size_t in_run = at + (addr >> kBucketBits & ((1u << (kRegionBits - kBucketBits)) - 1));
  return in_run < count ? in_run : in_run - count;  // no segment is smaller than a run
}

}  // namespace

// -- a block in its words -------------------------------------------------------------------------

unsigned ShadowMap::place_of(uint16_t where) {
  for (unsigned i = 0; i < kWheres; ++i) {
    uint32_t known = wheres_[i].load(std::memory_order_relaxed);
    if (known == 0 &&
        wheres_[i].compare_exchange_strong(known, where + 1u, std::memory_order_relaxed)) {
      return i;
    }
    if (known == where + 1u) return i;
  }
  return kWheres;
}

ShadowMap::Packed ShadowMap::packed(const Block& block) {
  const uint64_t size = sized_size(block.sized);
  const uint64_t birth = block.birth == 0 ? 0 : block.birth - origin_;
  // A birth at the origin itself would be taken for none.
  if (block.addr >> kAddrBits != 0 || size >> kSizeBits != 0 || birth >> kBirthBits != 0 ||
      (birth == 0 && block.birth != 0)) {
    return {};
  }
  const unsigned where = place_of(sized_where(block.sized));
  if (where == kWheres) return {};
  return {block.addr << 16 | (size & 0xffff), birth << 8 | (size >> 16 & 0xff),
          static_cast<uint16_t>(where << 11 | size >> 24)};
}

ShadowMap::Block ShadowMap::unpacked(Place place, uint64_t head) const {
  const uint64_t tail = place.bucket->tail[place.index].load(std::memory_order_relaxed);
  const uint64_t rest = place.bucket->rest[place.index].load(std::memory_order_relaxed);
  const uint64_t size = (rest & 0x7ff) << 24 | (tail & 0xff) << 16 | (head & 0xffff);
  const auto where = static_cast<uint16_t>(wheres_[rest >> 11].load(std::memory_order_relaxed) - 1);
  const uint64_t birth = tail >> 8;
  return {head >> 16, pack_sized(size, where), birth == 0 ? 0 : birth + origin_};
}

void ShadowMap::fill(Place place, const Packed& packed) {
  place.bucket->tail[place.index].store(packed.tail, std::memory_order_relaxed);
  place.bucket->rest[place.index].store(packed.rest, std::memory_order_relaxed);
  place.bucket->head[place.index].store(packed.head, std::memory_order_release);
}

// -- places ---------------------------------------------------------------------------------------

ShadowMap::Place ShadowMap::find(uint64_t addr, size_t segment) const {
  Bucket* buckets = segments_[segment].load(std::memory_order_acquire);
  if (buckets == nullptr) return {};
  for (size_t choice = 0; choice < kChoices; ++choice) {
    Bucket& bucket = buckets[bucket_of(addr, choice, kBuckets[segment])];
    for (size_t i = 0; i < kPlaces; ++i) {
      if (bucket.head[i].load(std::memory_order_relaxed) >> 16 == addr) return {&bucket, i};
    }
    if (bucket.spilled.load(std::memory_order_relaxed) == 0) break;
  }
  return {};
}

// Where the address is in the bucket, else a place claimed there, else none.
ShadowMap::Place ShadowMap::find_or_claim(uint64_t addr, Bucket& bucket) {
  size_t free = kPlaces;
  for (size_t i = kPlaces; i-- > 0;) {
    const uint64_t head = bucket.head[i].load(std::memory_order_relaxed);
    if (head >> 16 == addr) return {&bucket, i};
    if (head == kFree) free = i;
  }
  for (size_t i = free; i < kPlaces; ++i) {
    uint64_t head = bucket.head[i].load(std::memory_order_relaxed);
    if (head == kFree &&
        bucket.head[i].compare_exchange_strong(head, kClaimed, std::memory_order_acquire)) {
      return {&bucket, i};
    }
  }
  return {};
}

ShadowMap::Place ShadowMap::find_or_claim(uint64_t addr, size_t segment) {
  Bucket* buckets = segment_at(segment);
  if (buckets == nullptr) return {};
  for (size_t choice = 0; choice < kChoices; ++choice) {
    Bucket& bucket = buckets[bucket_of(addr, choice, kBuckets[segment])];
    const Place place = find_or_claim(addr, bucket);
    if (place.bucket != nullptr) return place;
    if (bucket.spilled.load(std::memory_order_relaxed) == 0) {
      bucket.spilled.store(1, std::memory_order_relaxed);
    }
  }
  return {};
}

ShadowMap::Bucket* ShadowMap::segment_at(size_t segment) {
  Bucket* existing = segments_[segment].load(std::memory_order_acquire);
  if (__builtin_expect(existing != nullptr, 1)) return existing;
  const size_t bytes = kBuckets[segment] * sizeof(Bucket);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* fresh = static_cast<Bucket*>(memory);
  if (!segments_[segment].compare_exchange_strong(existing, fresh, std::memory_order_acq_rel)) {
    munmap(memory, bytes);  // another thread was faster
    return existing;
  }
  size_t newest = newest_.load(std::memory_order_relaxed);
  while (newest < segment && !newest_.compare_exchange_weak(newest, segment)) {
  }
  return fresh;
}

// Where blocks of a region were placed last: most others of it are there too.
std::atomic<uint8_t>& ShadowMap::hint_of(uint64_t addr) {
  return hints_[(addr >> 16) * 0x9E3779B97F4A7C15u >> (64 - kHintBits)];
}

// -- what is asked for ----------------------------------------------------------------------------

void ShadowMap::insert(uint64_t addr, uint64_t sized, uint64_t birth) noexcept {
  const Block block{addr, sized, birth};
  for (size_t segment = newest_.load(std::memory_order_acquire) + 1; segment-- > 0;) {
    const Place place = find(addr, segment);
    if (place.bucket == nullptr) continue;
    const Packed words = packed(block);
    if (words.head != kFree) return fill(place, words);
    place.bucket->head[place.index].store(kFree, std::memory_order_release);
    break;
  }
  if (Wide* wide = find_wide(addr); wide != nullptr) {
    wide->addr.store(kFree, std::memory_order_release);
  }
  place_new(block);
}

void ShadowMap::insert_fresh(uint64_t addr, uint64_t sized, uint64_t birth) noexcept {
  place_new({addr, sized, birth});
}

void ShadowMap::place_new(const Block& block) {
  const Packed words = packed(block);
  if (__builtin_expect(words.head == kFree, 0)) return insert_wide(block);
  std::atomic<uint8_t>& hint = hint_of(block.addr);
  const size_t likely = hint.load(std::memory_order_relaxed);
  Place place = find_or_claim(block.addr, likely);
  if (__builtin_expect(place.bucket != nullptr, 1)) return fill(place, words);
  const size_t newest = newest_.load(std::memory_order_acquire);
  size_t segment = newest;
  for (size_t older = 0; older < kTried && older <= newest; ++older) {
    segment = newest - older;
    if (segment != likely) place = find_or_claim(block.addr, segment);
    if (place.bucket != nullptr) break;
  }
  for (size_t next = newest + 1; place.bucket == nullptr && next < kSegments; ++next) {
    segment = next;
    place = find_or_claim(block.addr, segment);
  }
  if (place.bucket == nullptr) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  hint.store(static_cast<uint8_t>(segment), std::memory_order_relaxed);
  fill(place, words);
}

bool ShadowMap::contains(uint64_t addr) const noexcept {
  for (size_t segment = newest_.load(std::memory_order_acquire) + 1; segment-- > 0;) {
    if (find(addr, segment).bucket != nullptr) return true;
  }
  return find_wide(addr) != nullptr;
}

bool ShadowMap::erase(uint64_t addr, Block* gone) noexcept {
  const size_t likely = hint_of(addr).load(std::memory_order_relaxed);
  Place place = find(addr, likely);
  if (place.bucket == nullptr) {
    for (size_t segment = newest_.load(std::memory_order_acquire) + 1;
         segment-- > 0 && place.bucket == nullptr;) {
      if (segment != likely) place = find(addr, segment);
    }
  }
  if (place.bucket != nullptr) {
    std::atomic<uint64_t>& head = place.bucket->head[place.index];
    if (gone != nullptr) *gone = unpacked(place, head.load(std::memory_order_relaxed));
    head.store(kFree, std::memory_order_release);
    return true;
  }
  Wide* wide = find_wide(addr);
  if (wide == nullptr) return false;
  if (gone != nullptr) *gone = wide->block(addr);
  wide->addr.store(kFree, std::memory_order_release);
  return true;
}

// -- blocks that do not fit -----------------------------------------------------------------------

ShadowMap::Wide* ShadowMap::find_wide(uint64_t addr) const {
  if (__builtin_expect(any_wide_.load(std::memory_order_relaxed) == 0, 1)) return nullptr;
  for (const Wide& wide : wide_) {
    if (wide.addr.load(std::memory_order_relaxed) == addr) return const_cast<Wide*>(&wide);
  }
  return nullptr;
}

void ShadowMap::insert_wide(const Block& block) {
  any_wide_.store(1, std::memory_order_relaxed);
  Wide* into = find_wide(block.addr);
  for (size_t i = 0; into == nullptr && i < kWide; ++i) {
    uint64_t addr = kFree;
    if (wide_[i].addr.compare_exchange_strong(addr, kClaimed, std::memory_order_acquire)) {
      into = &wide_[i];
    }
  }
  if (into == nullptr) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  into->sized.store(block.sized, std::memory_order_relaxed);
  into->birth.store(block.birth, std::memory_order_relaxed);
  into->addr.store(block.addr, std::memory_order_release);
}

// -- as a whole -----------------------------------------------------------------------------------

size_t ShadowMap::count() const {
  size_t blocks = 0;
  for_each([&](const Block&) { ++blocks; });
  return blocks;
}

size_t ShadowMap::bytes() const {
  size_t bytes = 0;
  for (size_t segment = 0; segment < kSegments; ++segment) {
    if (segments_[segment].load(std::memory_order_relaxed) == nullptr) break;
    bytes += kBuckets[segment] * sizeof(Bucket);
  }
  return bytes;
}

void ShadowMap::clear() {
  for (size_t segment = 0; segment < kSegments; ++segment) {
    Bucket* buckets = segments_[segment].load(std::memory_order_acquire);
    if (buckets == nullptr) break;
    // Private anonymous pages come back as zeros (madvise(2)).
    madvise(buckets, kBuckets[segment] * sizeof(Bucket), MADV_DONTNEED);
  }
  for (Wide& wide : wide_) wide.addr.store(kFree, std::memory_order_relaxed);
}

}  // namespace memscope::capture
