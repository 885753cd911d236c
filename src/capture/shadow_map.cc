#include "capture/shadow_map.h"

#include <sys/mman.h>

namespace memscope::capture {
namespace {

struct BucketPair {
  size_t first, second;
};

// The low bits of an address are its alignment; the product's high bits depend on all of them.
BucketPair buckets_of(uint64_t addr, size_t count) {
  const uint64_t hash = addr * 0x9E3779B97F4A7C15u;
  return {(hash >> 40) & (count - 1), (hash >> 16) & (count - 1)};
}

}  // namespace

ShadowMap::Place ShadowMap::find(uint64_t addr, size_t segment) const {
  Bucket* buckets = segments_[segment].load(std::memory_order_acquire);
  if (buckets == nullptr) return {};
  const BucketPair pair = buckets_of(addr, bucket_count(segment));
  Bucket& first = buckets[pair.first];
  for (size_t i = 0; i < kKeys; ++i) {
    if (first.key[i].load(std::memory_order_relaxed) == addr) return {&first, i};
  }
  if (first.spilled.load(std::memory_order_relaxed) == 0) return {};
  Bucket& second = buckets[pair.second];
  for (size_t i = 0; i < kKeys; ++i) {
    if (second.key[i].load(std::memory_order_relaxed) == addr) return {&second, i};
  }
  return {};
}

ShadowMap::Place ShadowMap::claim(Bucket& bucket) {
  for (size_t i = 0; i < kKeys; ++i) {
    uint64_t key = bucket.key[i].load(std::memory_order_relaxed);
    if (key == kFree &&
        bucket.key[i].compare_exchange_strong(key, kClaimed, std::memory_order_acquire)) {
      return {&bucket, i};
    }
  }
  return {};
}

ShadowMap::Bucket* ShadowMap::segment_at(size_t segment) {
  Bucket* existing = segments_[segment].load(std::memory_order_acquire);
  if (existing != nullptr) return existing;
  const size_t bytes = bucket_count(segment) * sizeof(Bucket);
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

void ShadowMap::insert(uint64_t addr, uint64_t sized, uint64_t birth) noexcept {
  const size_t newest = newest_.load(std::memory_order_acquire);
  Place place;
  for (size_t segment = newest + 1; segment-- > 0 && place.bucket == nullptr;) {
    place = find(addr, segment);
  }
  fill(place.bucket != nullptr ? place : claim_new(addr), addr, sized, birth);
}

void ShadowMap::insert_fresh(uint64_t addr, uint64_t sized, uint64_t birth) noexcept {
  const Place place = find(addr, newest_.load(std::memory_order_acquire));
  fill(place.bucket != nullptr ? place : claim_new(addr), addr, sized, birth);
}

ShadowMap::Place ShadowMap::claim_new(uint64_t addr) {
  Place place;
  for (size_t segment = newest_.load(std::memory_order_acquire);
       segment < kSegments && place.bucket == nullptr; ++segment) {
    Bucket* buckets = segment_at(segment);
    if (buckets == nullptr) break;
    const BucketPair pair = buckets_of(addr, bucket_count(segment));
    place = claim(buckets[pair.first]);
    if (place.bucket == nullptr) {
      buckets[pair.first].spilled.store(1, std::memory_order_relaxed);
      place = claim(buckets[pair.second]);
    }
  }
  if (place.bucket == nullptr) lost_.fetch_add(1, std::memory_order_relaxed);
  return place;
}

void ShadowMap::fill(Place place, uint64_t addr, uint64_t sized, uint64_t birth) {
  if (place.bucket == nullptr) return;
  place.bucket->sized[place.index].store(sized, std::memory_order_relaxed);
  place.bucket->birth[place.index].store(birth, std::memory_order_relaxed);
  place.bucket->key[place.index].store(addr, std::memory_order_release);
}

bool ShadowMap::contains(uint64_t addr) const noexcept {
  for (size_t segment = newest_.load(std::memory_order_acquire) + 1; segment-- > 0;) {
    if (find(addr, segment).bucket != nullptr) return true;
  }
  return false;
}

bool ShadowMap::erase(uint64_t addr, Block* gone) noexcept {
  for (size_t segment = newest_.load(std::memory_order_acquire) + 1; segment-- > 0;) {
    const Place place = find(addr, segment);
    if (place.bucket != nullptr) {
      if (gone != nullptr) {
        *gone = {addr, place.bucket->sized[place.index].load(std::memory_order_relaxed),
                 place.bucket->birth[place.index].load(std::memory_order_relaxed)};
      }
      place.bucket->key[place.index].store(kFree, std::memory_order_release);
      return true;
    }
  }
  return false;
}

size_t ShadowMap::count() const {
  size_t blocks = 0;
  for_each([&](const Block&) { ++blocks; });
  return blocks;
}

size_t ShadowMap::bytes() const {
  size_t bytes = 0;
  for (size_t segment = 0; segment < kSegments; ++segment) {
    if (segments_[segment].load(std::memory_order_relaxed) == nullptr) break;
    bytes += bucket_count(segment) * sizeof(Bucket);
  }
  return bytes;
}

void ShadowMap::clear() {
  for (size_t segment = 0; segment < kSegments; ++segment) {
    Bucket* buckets = segments_[segment].load(std::memory_order_acquire);
    if (buckets == nullptr) break;
    // Private anonymous pages come back as zeros (madvise(2)).
    madvise(buckets, bucket_count(segment) * sizeof(Bucket), MADV_DONTNEED);
  }
}

}  // namespace memscope::capture
