// Several lanes' events as one sequence in time order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trace/lane_cursor.h"

namespace memscope {

class LaneMerge {
 public:
  LaneMerge() = default;
  // The events of `kinds`, of all lanes. With `everything` pieces are read whatever they say they
  // have, and kinds from 64 on come too.
  LaneMerge(TraceSource& source, std::span<const LaneIndex> lanes, uint64_t kinds, bool everything);

  // Up to out.size() events, 0 at the end only. Stops early where going on would end the life of
  // the words of an event already in `out`.
  size_t fill(std::span<Event> out);

 private:
  struct Entry {
    uint64_t key;
    uint32_t cursor;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.key != b.key ? a.key < b.key : a.cursor < b.cursor;
    }
  };
  void sift_down();
  uint64_t limit_for_top() const;

  std::vector<LaneCursor> cursors_;
  std::vector<Entry> heap_;  // least key on top
};

}  // namespace memscope
