#include "view/graph.h"
#include "view/wire.h"

namespace memscope::view {

std::string graph_bytes(const Graph& graph, const GraphQuery& query) {
  WireWriter out;
  const auto slices = graph.slices.size(), items = graph.items.size();
  out.number(uint32_t{'M' | 'S' << 8 | 'G' << 16 | '1' << 24});
  out.number(uint32_t{(graph.columns ? 1u : 0u) | (graph.cut ? 2u : 0u)});
  out.number(static_cast<double>(graph.t0));
  out.number(static_cast<double>(graph.t1));
  out.number(static_cast<double>(query.m0));
  out.number(static_cast<double>(query.m1));
  out.number(static_cast<uint32_t>(slices));
  out.number(static_cast<uint32_t>(items));
  out.number(graph.merge_width);
  out.number(graph.merge_height);
  out.number(graph.classes);
  out.number(graph.blocks);
  const auto of_slices = [&](auto member) {
    out.array<double>(slices, [&](size_t i) { return graph.slices[i].*member; });
  };
  of_slices(&GraphSlice::begin);
  of_slices(&GraphSlice::at);
  of_slices(&GraphSlice::total);
  of_slices(&GraphSlice::low);
  of_slices(&GraphSlice::high);
  of_slices(&GraphSlice::base);
  out.array<uint32_t>(slices, [&](size_t i) { return graph.slices[i].state; });
  out.array<uint32_t>(slices + 1,
                      [&](size_t i) { return i < slices ? graph.slices[i].first : items; });
  out.array<double>(items, [&](size_t i) { return graph.items[i].bytes; });
  out.array<uint32_t>(items, [&](size_t i) { return graph.items[i].block; });
  out.array<uint8_t>(items, [&](size_t i) { return graph.items[i].in; });
  return out.take();
}

}  // namespace memscope::view
