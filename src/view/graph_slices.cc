#include "view/graph_slices.h"

#include <algorithm>

namespace memscope::view {
namespace {

GraphSlice slice_of(const PoolIndex& pool, uint64_t begin, uint32_t state) {
  GraphSlice slice{.begin = begin, .at = begin, .state = state};
  slice.total = slice.low = slice.high = pool.bytes_in(state);
  return slice;
}

// Every instant at which something happens.
void instants(const PoolIndex& pool, uint32_t first, uint32_t last, Graph& graph) {
  graph.slices.push_back(slice_of(pool, graph.t0, first));
  for (uint32_t event = first; event < last;) {
    const uint64_t time = pool.time[event];
    while (event < last && pool.time[event] == time) ++event;
    if (time == graph.slices.back().begin) graph.slices.pop_back();
    graph.slices.push_back(slice_of(pool, time, event));
  }
}

}  // namespace

void choose_slices(const PoolIndex& pool, const GraphQuery& query, Graph& graph) {
  const uint64_t span = query.t1 - query.t0;
  const uint32_t width = std::max(query.width, 1u);
  // Whole ns, and borders at multiples of it: the same columns however the window is panned.
  const uint64_t column = std::max<uint64_t>(1, (span + width - 1) / width);
  graph.t0 = query.t0 / column * column;
  graph.t1 = (query.t1 + column - 1) / column * column;
  uint32_t first = pool.state_before(graph.t0);
  const uint32_t last = pool.state_before(graph.t1);
  graph.columns = last - first > 2 * width;
  graph.slices.reserve(graph.columns ? width + 2 : last - first + 1);
  if (!graph.columns) return instants(pool, first, last, graph);
  bool busy = false;  // the column before has events
  for (uint64_t begin = graph.t0; begin < graph.t1; begin += column) {
    // The events of a column lie near those of the one before.
    const uint32_t next = static_cast<uint32_t>(
        std::lower_bound(pool.time.begin() + first, pool.time.begin() + last, begin + column) -
        pool.time.begin());
    if (next == first && begin != graph.t0) {
      // Nothing happens here. What a busy column left behind is not what it is drawn as, its peak.
      if (busy) graph.slices.push_back(slice_of(pool, begin, first));
      busy = false;
      continue;
    }
    busy = next != first;
    const auto [most, least] = pool.extremes(first, next);
    GraphSlice slice{.begin = begin, .low = least.bytes, .high = most.bytes};
    slice.state = query.floor ? least.state : most.state;
    slice.total = query.floor ? least.bytes : most.bytes;
    slice.at = std::max(begin, pool.time_of_state(slice.state));
    if (slice.state == first) slice.at = begin;
    graph.slices.push_back(slice);
    first = next;
  }
}

}  // namespace memscope::view
