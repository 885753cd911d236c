// The blocks of a report: of millions those that are asked for first, with their stacks and lines.
#pragma once

#include <cstdint>
#include <vector>

#include "report/page_answers.h"
#include "report/page_tally.h"

namespace memscope {

struct PageRoom {
  size_t rows = 0, stacks = 0, blocks = 0, sources = 0;  // bytes
};

// Of a pool: what its verdicts accuse, the largest, those that a picture shows (`drawn`).
//
// Kept are `blocks` (one list of rows, in the order of their numbers), for each verdict the numbers
// of its blocks, `place` of its newest, `stack` of the rows, `block` of the first few, and `source`
// of the lines named by verdicts, sites and stacks.
void keep_rows(PageAnswers& answers, size_t pool, const std::vector<uint32_t>& drawn,
               const PageRoom& room, PageTally& tally);

// The blocks that a `graph` answer has as items of their own, each once.
std::vector<uint32_t> blocks_of_graph(std::string_view graph);

}  // namespace memscope
