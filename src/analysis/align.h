// Lines two sequences up: the longest common subsequence, after Eugene W. Myers, "An O(ND)
// Difference Algorithm and Its Variations" (Algorithmica 1, 1986), in its linear-space form.
//
//   base     a b c     d          runs: {0,0,2} {3,2,1}      c is only in base,
//   compare  a b     d x                                     x only in compare
//
// Guarantees
//  * The shortest difference, as long as it is found within `work` comparisons; past that the rest
//    is aligned greedily, in time linear in its length, and `shortest` is false.
//  * Memory: 4 bytes for each element that both sequences know, and two arrays that no difference
//    within the limit outgrows (sqrt(work) numbers each).
//  * The same answer for the same input, on every machine: the limit counts work, not seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace memscope {

struct AlignLimits {
  // About 20 s of one core of 2020.
  uint64_t work = 8'000'000'000;
};

// base[base_at ... + length) equals compare[compare_at ... + length).
struct AlignedRun {
  uint32_t base_at = 0, compare_at = 0, length = 0;
  friend bool operator==(const AlignedRun&, const AlignedRun&) = default;
};

struct Alignment {
  std::vector<AlignedRun> runs;  // ascending; what lies between them is in one sequence only
  bool shortest = true;
  // Elements of base and of compare before the part that was aligned greedily.
  uint32_t exact_base = 0, exact_compare = 0;
  uint64_t work = 0;  // comparisons made

  size_t length() const {
    size_t sum = 0;
    for (const AlignedRun& run : runs) sum += run.length;
    return sum;
  }
};

// The elements are names' numbers in one numbering, ideally dense; sequences of less than 2^31
// elements.
Alignment align(std::span<const uint32_t> base, std::span<const uint32_t> compare,
                const AlignLimits& limits = {});

}  // namespace memscope
