// The block graph: every live block a band, height = bytes, in a window of time and bytes, as much
// of it as its pixels can show.
//
//   GraphQuery query{.t0 = 0, .t1 = end, .m1 = peak, .width = 1920, .height = 600};
//   Graph graph = draw_graph(pool, order, colouring, query);
//
// Guarantees
//  * In every slice the items touch one another; where the window holds the whole stack their
//    bytes add up to the live bytes of that state, exactly.
//  * With `tidy` off, a block that is at least a pixel high in a slice's state is an item of its
//    own in it; with `tidy` on, it is where it is also 3 slices wide or 4 pixels high.
//  * Time is linear in the window's events, memory in the items.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "view/block_order.h"
#include "view/colouring.h"
#include "view/pool_index.h"

namespace memscope::view {

struct GraphQuery {
  uint64_t t0 = 0, t1 = 0;  // ns since the input's origin, t0 < t1
  uint64_t m0 = 0, m1 = 0;  // bytes, m0 < m1
  uint32_t width = 0, height = 0;
  uint32_t classes = ~0u;  // bit = class that is stacked
  bool floor = false;      // a column stands as it was at its least, not its most
  bool tidy = true;
};

inline constexpr uint32_t kMerged = ~0u;  // an item's block: many

struct GraphSlice {
  uint64_t begin = 0;  // ns; it holds to the next one's begin
  uint64_t at = 0;     // when its state began
  uint32_t state = 0;
  uint64_t total = 0, low = 0, high = 0;  // bytes
  uint64_t base = 0;                      // the first item's lower edge
  size_t first = 0;                       // of its items
};

struct GraphItem {
  uint64_t bytes = 0;
  uint32_t block = kMerged;
  uint8_t in = 0;  // class
};

struct Graph {
  static constexpr size_t kMaxItems = 1'000'000;
  uint64_t t0 = 0, t1 = 0;  // of the slices: contains what was asked for
  bool columns = false;     // slices are pixel columns, else instants
  bool cut = false;         // more was merged than asked for, to stay below kMaxItems
  float merge_width = 0, merge_height = 0;  // pixels; what is below both is merged
  uint32_t classes = 0, blocks = 0;
  std::vector<GraphSlice> slices;
  std::vector<GraphItem> items;

  size_t items_end(size_t slice) const {
    return slice + 1 < slices.size() ? slices[slice + 1].first : items.size();
  }
};

Graph draw_graph(const PoolIndex& pool, const BlockOrder& order, const Colouring& colouring,
                 const GraphQuery& query);

// As docs/view-api.md has it.
std::string graph_bytes(const Graph& graph, const GraphQuery& query);

// The block at a height in a state, though it be thinner than a pixel.
struct Located {
  uint32_t block = 0;  // 0: nothing there
  uint64_t from = 0, to = 0, total = 0;
};
Located locate(const PoolIndex& pool, const BlockOrder& order, const Colouring* colouring,
               uint32_t classes, uint32_t state, uint64_t bytes);
// The edges of a block that is alive in the state.
Located place_of_block(const PoolIndex& pool, const BlockOrder& order, uint32_t state,
                       uint32_t block);

}  // namespace memscope::view
