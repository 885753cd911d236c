// The pretend memory of a device of a synthetic trace: addresses that are reused as real ones are,
// and for pools segments, reserved and allocated bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/where.h"
#include "tsl/robin_map.h"

namespace memscope {

class SynthMemory {
 public:
  SynthMemory(Where where, uint64_t first_address) : where_(where), next_(first_address) {}

  struct Segment {
    uint64_t addr = 0, size = 0;
  };
  // An address for `size` bytes; `grown` is the segment that had to be taken for it, if any.
  uint64_t allocate(uint64_t size, Segment* grown);
  void release(uint64_t addr, uint64_t size);

  Where where() const { return where_; }
  bool is_pool() const { return where_.layer == Layer::kPool; }
  uint64_t allocated() const { return allocated_; }  // bytes asked for, as events say them
  uint64_t peak() const { return peak_; }
  uint64_t reserved() const { return reserved_; }
  uint64_t reserved_peak() const { return reserved_; }  // nothing is returned

 private:
  // Blocks are carved in multiples of this (c10/cuda/CUDACachingAllocator: kMinBlockSize).
  static constexpr uint64_t kRounding = 512;
  // Segments are taken in multiples of 2 MiB, small requests from 20 MiB ones (same file).
  static constexpr uint64_t kSegment = 20u << 20, kSegmentRounding = 2u << 20;

  Where where_;
  uint64_t next_, end_ = 0;  // the rest of the last segment
  uint64_t allocated_ = 0, peak_ = 0, reserved_ = 0;
  tsl::robin_map<uint64_t, std::vector<uint64_t>> free_;  // by rounded size
};

}  // namespace memscope
