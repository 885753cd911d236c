// What one run (or step, rank, file) holds that another does not: by line, by owner, by operator.
//
//   Comparison comparison = compare(base, now, options);      // two Holdings
//
// Guarantees
//  * Each list adds up to `total`: every live block of the layers compared is in one row of each.
//  * Layers nest (the driver's memory contains the pool's), so only the innermost ones on each
//    device are compared; `layers` shows all of them, with `counted` false for the others.
//  * A line is the same line although the program lies in another directory, or the line has moved
//    within its file: it is known by file name, function and statement. Without the statement's
//    text (a dump has none) by file name, function and line.
//  * Two sides without a device in common (two ranks) are compared by the kind of device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis.h"
#include "analysis/holdings.h"

namespace memscope {

struct CompareOptions {
  std::optional<Layer> layer;  // compare this one instead of the innermost
};

struct Change {
  std::optional<Held> base, now;  // null: only the other side has it
  Held difference() const {
    const Held a = base.value_or(Held{}), b = now.value_or(Held{});
    return {b.bytes - a.bytes, b.blocks - a.blocks};
  }
};

struct ComparedRow {
  std::optional<SiteFrame> site;    // in `sites`; as `now` has it, if it does
  std::optional<std::string> name;  // in `owners` and `operators`
  std::string device, layer;
  Change change;
};

// Rows by growth: what grew most first, what shrank most last.
struct ComparedList {
  std::vector<ComparedRow> rows;
  // Left out by limit_rows(): how many, how many of them changed, and their sum.
  size_t rest_rows = 0, rest_changed = 0;
  Change rest;
};

struct ComparedLayer {
  std::string device, layer;
  bool counted = true;
  Change change;
  int64_t base_peak = 0, now_peak = 0;
  std::optional<int64_t> base_reserved, now_reserved;
};

struct ComparedSide {
  std::string name;  // as it was given on the command line
  std::vector<InputSummary> inputs;
  std::string steps_source = "none";
  int64_t steps = 0;
  std::optional<int64_t> at_step;                // null: at the end
  std::optional<int64_t> first_step, last_step;  // only blocks born in these
};

struct Comparison {
  std::string tool;
  ComparedSide base, now;
  Change total;
  std::vector<ComparedLayer> layers;
  ComparedList sites, owners, operators;
};

// `base` and `now` of the result are left to the caller, but for their steps.
Comparison compare(const Holdings& base, const Holdings& now, const CompareOptions& options);

// Keeps the `top` rows that changed most in each list, with `changed_only` none that did not
// change, and sums up the others.
void limit_rows(Comparison& comparison, size_t top, bool changed_only = false);

}  // namespace memscope
