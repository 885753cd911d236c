// One root cause, one verdict: which candidates belong together.
//
//  1. one site: through different stacks, on different devices, in different processes; and where
//     one layer lies in the other (host around tensor, driver around pool)
//  2. one container: their holders' majority is the same
//  3. no holder known to either, they gain in the same steps, and they are of one user function or
//     one is allocated in a call that the other's line makes
//  4. no holder known to one (a graph's inner blocks are kept by C++), the other's holder known,
//     they gain in the same steps and share a user function on their stacks
// Two whose holders are known and differ stay apart, whatever else they share, but their site.
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
