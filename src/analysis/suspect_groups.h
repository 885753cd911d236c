// Which blocks the walk over Python objects is to look for, in the order in which the time it has
// is best spent: the largest line of each cause, then the companions, then the other lines.
#pragma once

#include <span>
#include <vector>

#include "analysis/candidates.h"
#include "analysis/diagnosis.h"

namespace memscope {

inline constexpr size_t kMaxSuspectGroups = 64;
inline constexpr size_t kMaxSuspectBlocks = 64;  // of a group

// `clusters`: indices into the candidates, most important first, the largest member first.
std::vector<SuspectGroup> suspect_groups(std::span<const LeakInput> inputs,
                                         std::span<const Candidate> candidates,
                                         const std::vector<std::vector<size_t>>& clusters);

}  // namespace memscope
