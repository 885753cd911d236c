// The live blocks of a moment in their stacking order, with sums: finds what lies at a height, and
// what of it is too small to be seen, without visiting every block.
//
//   level 0   leaves of 64 places: who is alive, who of them is large, their bytes
//   level 1+  nodes of 16 below: bytes, bytes of each colour class, how many large blocks
//
// A place is a block's rank in the order. HOT PATH: add, remove.
#pragma once

#include <cstdint>
#include <vector>

#include "view/colouring.h"

namespace memscope::view {

class BlockTree {
 public:
  static constexpr int kLevels = 4;  // leaves of 64, nodes of 1,024, 16,384 and 262,144
  static constexpr uint32_t kLeafBits = 6, kFanBits = 4;

  struct Leaf {
    uint64_t live = 0, large = 0;  // bit = place in the leaf
    uint64_t bytes = 0;
  };
  struct Node {
    uint64_t bytes = 0;
    uint32_t large = 0;    // live large blocks below
    uint32_t classes = 0;  // bit = class with bytes
  };

  BlockTree(uint32_t places, uint32_t classes)
      : classes_(classes), leaves_((places >> kLeafBits) + 1) {
    for (int level = 1; level < kLevels; ++level) {
      const size_t count = (places >> shift(level)) + 1;
      nodes_[level].resize(count);
      by_class_[level].resize(count * classes);
    }
  }

  static constexpr uint32_t shift(int level) {
    return kLeafBits + kFanBits * static_cast<uint32_t>(level);
  }
  bool live(uint32_t place) const {
    return (leaves_[place >> kLeafBits].live >> (place & 63) & 1) != 0;
  }
  void add(uint32_t place, uint64_t bytes, uint8_t in, bool large) {
    Leaf& leaf = leaves_[place >> kLeafBits];
    const uint64_t bit = uint64_t{1} << (place & 63);
    leaf.live |= bit;
    leaf.bytes += bytes;
    if (large) leaf.large |= bit;
    for (int level = 1; level < kLevels; ++level) {
      const size_t at = place >> shift(level);
      Node& node = nodes_[level][at];
      node.bytes += bytes;
      node.large += large ? 1 : 0;
      node.classes |= 1u << in;
      by_class_[level][at * classes_ + in] += bytes;
    }
    total_ += bytes;
  }
  void remove(uint32_t place, uint64_t bytes, uint8_t in) {
    Leaf& leaf = leaves_[place >> kLeafBits];
    const uint64_t bit = uint64_t{1} << (place & 63);
    const uint32_t large = (leaf.large & bit) != 0 ? 1 : 0;
    leaf.live &= ~bit;
    leaf.large &= ~bit;
    leaf.bytes -= bytes;
    for (int level = 1; level < kLevels; ++level) {
      const size_t at = place >> shift(level);
      Node& node = nodes_[level][at];
      node.bytes -= bytes;
      node.large -= large;
      uint64_t& of_class = by_class_[level][at * classes_ + in];
      of_class -= bytes;
      if (of_class == 0) node.classes &= ~(1u << in);
    }
    total_ -= bytes;
  }
  void prefetch(uint32_t place) const { __builtin_prefetch(&leaves_[place >> kLeafBits], 1); }

  uint64_t total() const { return total_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<Node>& nodes(int level) const { return nodes_[level]; }
  const uint64_t* by_class(int level, size_t node) const {
    return &by_class_[level][node * classes_];
  }

 private:
  uint32_t classes_;
  uint64_t total_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<Node> nodes_[kLevels];
  std::vector<uint64_t> by_class_[kLevels];
};

}  // namespace memscope::view
