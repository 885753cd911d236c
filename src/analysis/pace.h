// Does growth go on at its pace, or slow down? Pure statistics.
//
// What fills with what has not been there yet slows down: a cache of the keys a program meets, the
// first uses of a table's rows. What leaks goes on. Two ways of growing need two measures:
//
//   events of one size (a block a step, eight every fifth step): the waits between them. A leak's
//   are all alike, so that even a few prove its pace; a cache's come at random and lengthen
//   counts that vary (folded buckets, several stores at once): the mean count a unit of x
//
// Compared are the first and the last third. The lower bound is what counts: an even pace that
// cannot be told from a slower one for lack of data is not known.
#pragma once

#include <cstddef>
#include <span>

namespace memscope {

struct Pace {
  double ratio = 1;  // rate of the last third over the first third's
  double lower = 1;  // its lower bound, one-sided 95 %
};

// `births`: how many blocks came and stayed at each point, from `begin` (>= 1) on.
Pace pace_of_births(std::span<const double> x, std::span<const double> births, size_t begin);

// Of a level's gains.
Pace pace_of_level(std::span<const double> x, std::span<const double> level, size_t begin);

// One-sided 95 % point of Student's t.
double student95(size_t degrees);

}  // namespace memscope
