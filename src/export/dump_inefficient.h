// Which blocks are held while they are not needed, found before the rows are written: the MALLOC
// row has it (`inefficient_type`), as msMemScope's online analysis writes it.
//
// A block is named by the time and the address of its allocation. Memory is bounded by the live
// blocks and those found.
#pragma once

#include <string>
#include <utility>

#include "analysis/inefficient.h"
#include "tsl/robin_map.h"

namespace memscope {

class DumpInefficient {
 public:
  // Every event, in order.
  void feed(const Event& event) { finder_.feed(event); }
  void finish() {
    for (const InefficientBlock& block : finder_.finish())
      types_[key(block.time, block.addr)] = block.types;
  }

  bool empty() const { return types_.empty(); }
  // "early_allocation,late_deallocation"; "" for blocks that are as they should be.
  std::string types_of(uint64_t time, uint64_t addr) const {
    const auto at = types_.find(key(time, addr));
    return at == types_.end() ? std::string() : inefficiency_text(at->second);
  }

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept {
      const uint64_t hash = (key.first ^ key.second << 20) * 0x9E3779B97F4A7C15u;
      return hash ^ hash >> 32;
    }
  };
  static Key key(uint64_t time, uint64_t addr) { return {time, addr}; }

  InefficientFinder finder_{InefficientOptions{}};
  tsl::robin_map<Key, uint8_t, KeyHash> types_;
};

}  // namespace memscope
