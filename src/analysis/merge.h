// One root cause, one verdict: which candidates belong together.
//
//  1. one site: through different stacks, on different devices, in different processes; and where
//     one layer lies in the other (host around tensor, driver around pool)
//  2. one container: their holders' majority is the same
//  3. no holder known to either, they gain in the same steps, and the source has one statement's
//     container for both, or they are of one user function, or one is allocated in a call that the
//     other's line makes, or in a call from the function that stores the other (a graph's inner
//     blocks)
//  4. no holder known to one, they gain in the same steps, and an autograd graph that the other's
//     holder keeps can be what keeps it; or they are of one user function
//
// 3 and 4 are for one layer, but for host memory that only accompanies tensors. By them one joins
// the nearest only, so that what nobody names ties no two leaks together. A module's own code,
// which is on every stack, is no function in this sense. Two whose holders are known and differ, or
// that the source puts into two containers, stay apart, whatever else they share, but their site.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/candidates.h"

namespace memscope {

// Indices into `candidates`, a cluster each; largest candidate first.
std::vector<std::vector<size_t>> merge_candidates(std::span<const Candidate> candidates,
                                                  std::span<const LeakInput> inputs);

// Whether `outer` hands memory to `inner` on the same device.
bool layer_contains(Where outer, Where inner);

}  // namespace memscope
