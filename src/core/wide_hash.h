// A hash of 128 bits as a key that stands for what it was made from: of the things of one run no
// two are expected to share it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memscope {

struct WideHash {
  uint64_t first = 0, second = 0;
  friend bool operator==(const WideHash&, const WideHash&) = default;
};

// For a map of them.
struct WideHashFirst {
  size_t operator()(const WideHash& hash) const noexcept { return hash.first; }
};

}  // namespace memscope
