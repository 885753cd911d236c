// The settings a caching allocator works by, as far as its decisions depend on them, and what a
// backend's versions have for defaults.
//
// The rules that use them are in pool_simulator.h; they are those of c10/cuda/
// CUDACachingAllocator.cpp (2.6 to 2.12) and torch_npu's NPUCachingAllocator.cpp (6.0 to 26.x).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "core/where.h"
#include "replay/pool_history.h"
#include "replay/pool_rules.h"

namespace memscope {

struct PoolSettings {
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  PoolRounding rounding;
  bool expandable = false;
  // torch_npu: where an expandable block's address is no multiple, its beginning is left out; 0
  // off.
  uint64_t align = 0;
  uint64_t small_page = kPoolSmallSegment;     // of an expandable segment of the small pool
  uint64_t large_page = kPoolLargeSegment;     // of the large pool
  uint64_t large_segment = kPoolLargeSegment;  // for requests of less than 10 MiB
  uint64_t max_split = kUnlimited;             // max_split_size_mb
  uint64_t max_unsplit = kPoolLargeSegment;    // max_non_split_rounding_mb
  double gc_threshold = 0;                     // garbage_collection_threshold
  uint64_t limit = kUnlimited;     // of the memory fraction: more is refused before the driver
  uint64_t capacity = kUnlimited;  // of the device: the driver refuses

  // "expandable, pad 32 B, align 16 KiB": what is not as PyTorch's defaults; "defaults" if nothing
  // is.
  std::string text() const;
};

// A device's, from what its snapshot says of the allocator's settings and of its segments.
PoolSettings settings_of(const PoolHistory& history, const PoolRounding& rounding,
                         const std::map<std::string, std::string>& told);

}  // namespace memscope
