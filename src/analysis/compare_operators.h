// Two runs' operators side by side: aligned by name, each with what it did to memory in both.
//
//   base      mm  add  relu            rows   mm    both, difference = compare - base
//   compare   mm  randn  relu                 add   only in base
//                                             randn only in compare
//                                             relu  both
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/align.h"
#include "analysis/operators.h"

namespace memscope {

struct OperatorPair {
  StringId name;  // in the names both runs were collected with
  std::optional<int64_t> base, compare;

  int64_t difference() const { return compare.value_or(0) - base.value_or(0); }
};

struct DeviceOperators {
  std::optional<Device> base, compare;            // a device of one run only has nothing beside it
  std::vector<OperatorPair> rows;                 // in order
  int64_t base_total = 0, compare_total = 0;      // of the rows
  int64_t base_outside = 0, compare_outside = 0;  // what happened outside operators
  bool shortest = true;                           // false: the alignment hit its limit
  uint32_t exact_rows = 0;  // the first of the rows that were aligned greedily; else all
};

// By device; where both runs have operators on exactly one, those two are compared whatever their
// numbers, as of two ranks.
std::vector<DeviceOperators> compare_operators(const OperatorRun& base, const OperatorRun& compare,
                                               const AlignLimits& limits = {});

}  // namespace memscope
