// Replayed inputs -> the diagnosis.
//
//   std::vector<DiagnoseInput> inputs;            // one a process
//   DiagnoseResult result = diagnose(inputs, options);
//   result.diagnosis                              // `analyze --json`
//   result.pools                                  // for the lines kept compatible with msMemScope
//
// There is always a verdict: `none` where nothing was found with confidence of 0.5 or more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis.h"
#include "analysis/leak.h"
#include "core/stacks.h"
#include "replay/replay.h"

namespace memscope {

struct DiagnoseOptions {
  uint32_t first_step = 0, last_step = 0;  // A:B, both included; 0 = open
  std::optional<Device> device;
  // Globs on `file:function` of the site (or its end after a slash) or on the owner.
  std::vector<std::string> suppressions;
  size_t top = 0;         // verdicts at most; 0 = all
  SymbolOptions symbols;  // where native frames get their names
};
ReplayOptions replay_options(const DiagnoseOptions& options);

struct DiagnoseInput {
  InputSummary summary;  // what the reader knows; `process`, `ended` are filled in if it does not
  ReplayResult replay;
  const StackTable* stacks = nullptr;  // both must outlive the call
  const StringTable* strings = nullptr;
};

// One place in one input, for the compatible report (leaks and gap analysis).
struct PoolReport {
  int64_t input = 0;
  Where where;
  PoolGap min_gap, max_gap;       // exact, of all steps > 1
  std::vector<PoolBucket> steps;  // least, most, end of each bucket of `bucket_width` steps
  uint32_t bucket_width = 1;
  std::vector<LeakedBlock> leaked;  // of the verdicts, by step; bounded by Leak::kMaxBlocks each
  int64_t leaked_bytes = 0, leaked_blocks = 0;  // of all of them
};

struct DiagnoseResult {
  Diagnosis diagnosis;
  std::vector<PoolReport> pools;
  std::vector<std::string> notes;  // why native frames have no names, a line each
};

// Takes the inputs' replays apart: they are of no use afterwards.
DiagnoseResult diagnose(std::vector<DiagnoseInput>& inputs, const DiagnoseOptions& options);

// Whether a verdict's site or owner is declared as expected.
bool is_suppressed(const Verdict& verdict, const std::vector<std::string>& patterns);

}  // namespace memscope
