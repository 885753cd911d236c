#include "trace/lane_merge.h"

#include <algorithm>

namespace memscope {

LaneMerge::LaneMerge(TraceSource& source, std::span<const LaneIndex> lanes, uint64_t kinds,
                     bool everything) {
  constexpr uint64_t kStackKinds = kind_bit(Kind::kOom) | kind_bit(Kind::kDrop) |
                                   kind_bit(Kind::kFold) | kind_bit(Kind::kFoldedBlock);
  const uint64_t plain = kinds & ~kOwnTimeKinds;
  const uint64_t own_time = kinds & kOwnTimeKinds;
  // Lane records say whose events these are; the other definitions only matter to stacks.
  const uint64_t definitions =
      (plain & (kStackKinds | kHotKinds)) != 0 ? kDefinitionKinds : kind_bit(Kind::kLane);
  for (const LaneIndex& lane : lanes) {
    if (own_time != 0) cursors_.emplace_back(source, lane.pieces, own_time, own_time);
    if (plain != 0) {
      cursors_.emplace_back(source, lane.pieces, plain,
                            everything ? kAllKinds : plain | definitions);
    }
  }
  std::erase_if(cursors_, [](const LaneCursor& c) { return c.done(); });
  for (uint32_t i = 0; i < cursors_.size(); ++i) heap_.push_back({cursors_[i].key(), i});
  std::sort(heap_.begin(), heap_.end());  // a sorted array is a heap
}

void LaneMerge::sift_down() {
  const Entry moved = heap_[0];
  size_t hole = 0;
  for (size_t child = 1; child < heap_.size(); child = 2 * hole + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < moved)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = moved;
}

// The top lane may run on while its key is below this.
uint64_t LaneMerge::limit_for_top() const {
  if (heap_.size() == 1) return ~uint64_t{0};
  const Entry& second = heap_.size() > 2 && heap_[2] < heap_[1] ? heap_[2] : heap_[1];
  return second.key + (heap_[0].cursor < second.cursor ? 1 : 0);
}

size_t LaneMerge::fill(std::span<Event> out) {
  size_t count = 0;
  while (!heap_.empty() && count < out.size()) {
    LaneCursor& cursor = cursors_[heap_[0].cursor];
    if (cursor.needs_load()) {
      if (count != 0) break;
      cursor.load();
    } else {
      count += cursor.fill(out.subspan(count), limit_for_top());
    }
    if (cursor.done()) {
      heap_[0] = heap_.back();
      heap_.pop_back();
      if (heap_.empty()) break;
    } else {
      heap_[0].key = cursor.key();
    }
    sift_down();
  }
  return count;
}

}  // namespace memscope
