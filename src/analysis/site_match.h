// Which lines of two runs are the same line.
//
// Pairs are made from the surest to the weakest likeness, each line in one pair at most:
//   1. file, function and statement
//   2. file name, function and statement    the program lies in another directory
//   3. file, function and line              where one side does not know the statement
//   4. file name, function and line
// Of several that fit, those whose paths have more directories in common, from the end, then those
// whose lines are nearest.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "analysis/diagnosis.h"

namespace memscope {

// Indices into `base` and `now`.
std::vector<std::pair<size_t, size_t>> match_sites(std::span<const SiteFrame> base,
                                                   std::span<const SiteFrame> now);

}  // namespace memscope
