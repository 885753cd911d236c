// Which states of a pool a picture shows: one for each pixel column, or every instant of a window
// with few events.
#pragma once

#include <cstdint>
#include <vector>

#include "view/graph.h"

namespace memscope::view {

// Fills everything of the slices but base and first, and the graph's window.
void choose_slices(const PoolIndex& pool, const GraphQuery& query, Graph& graph);

}  // namespace memscope::view
