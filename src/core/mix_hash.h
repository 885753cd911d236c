// A hash for integer keys in flat maps whose buckets are the hash's lowest bits.
//
// std::hash of an integer is the integer: keys that are alike in their lowest bits, such as
// (parent << 32 | child) with one child under many parents, would all fall into one bucket, and
// tsl::robin_map doubles its size again and again to part them.
#pragma once

#include <cstdint>

namespace memscope {

// No two keys have the same hash, so that it may stand for the key.
struct MixHash {
  uint64_t operator()(uint64_t key) const noexcept {
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
  }
};

}  // namespace memscope
