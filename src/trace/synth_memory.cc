#include "trace/synth_memory.h"

#include <algorithm>

namespace memscope {

uint64_t SynthMemory::allocate(uint64_t size, Segment* grown) {
  *grown = {};
  allocated_ += size;
  peak_ = std::max(peak_, allocated_);
  const uint64_t rounded = (size + kRounding - 1) / kRounding * kRounding;
  if (auto found = free_.find(rounded); found != free_.end() && !found->second.empty()) {
    std::vector<uint64_t>& addresses = found.value();
    const uint64_t addr = addresses.back();
    addresses.pop_back();
    return addr;
  }
  if (is_pool() && end_ - std::min(next_, end_) < rounded) {
    grown->size =
        std::max(kSegment, (rounded + kSegmentRounding - 1) / kSegmentRounding * kSegmentRounding);
    grown->addr = std::max(next_, end_);
    next_ = grown->addr;
    end_ = next_ + grown->size;
    reserved_ += grown->size;
  }
  const uint64_t addr = next_;
  next_ += rounded;
  return addr;
}

void SynthMemory::release(uint64_t addr, uint64_t size) {
  allocated_ -= size;
  free_[(size + kRounding - 1) / kRounding * kRounding].push_back(addr);
}

}  // namespace memscope
