// Inputs on disk, of whatever kind -> the diagnosis: opens, replays and judges.
#pragma once

#include <filesystem>
#include <span>

#include "analysis/diagnose.h"
#include "core/result.h"
#include "import/open_input.h"

namespace memscope {

struct InputsDiagnosis : DiagnoseResult {
  // A line for each thing that could not be read, with file, place and reason.
  std::vector<std::string> damage;
  bool lost = false;  // bytes that should hold events could not be read
};

// `paths`: what open_input() takes, one or more inputs each. One of several that cannot be read at
// all is left out and is damage; an error only where none can.
Result<InputsDiagnosis> diagnose_inputs(std::span<const std::filesystem::path> paths,
                                        const DiagnoseOptions& options);

InputSummary input_summary(const InputInfo& info);

}  // namespace memscope
