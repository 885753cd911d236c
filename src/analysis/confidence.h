// How sure it is that growth is a leak: the statistical part of a verdict's confidence.
//
// Calibrated on docs/growth-statistics.md's shapes: of what is given c, about a share of c or more
// leaks, and below 0.5 there is no verdict. What it rests on, each a factor:
//
//   pace      the lower bound of its last third over its first: a store that fills slows down
//   length    8 steps could still be a slow start; from 32 on more steps add nothing
//   births    few events, a crooked line, a slope that is poorly known, a late beginning
#pragma once

#include <cstdint>

#include "analysis/growth.h"

namespace memscope {

// `steps`: judged, after warm-up.
double growth_confidence(const Growth& growth, uint32_t steps);

}  // namespace memscope
