// Traces on disk -> the diagnosis: opens, replays and judges.
#pragma once

#include <filesystem>
#include <span>

#include "analysis/diagnose.h"
#include "core/result.h"

namespace memscope {

struct TracesDiagnosis : DiagnoseResult {
  // A line for each thing that could not be read, with file, offset and reason.
  std::vector<std::string> damage;
  bool lost = false;  // bytes that should hold events could not be read
};

// `paths`: processes' directories or trace files, an input each. One of several that cannot be read
// at all is left out and is damage; an error only where none can.
Result<TracesDiagnosis> diagnose_traces(std::span<const std::filesystem::path> paths,
                                        const DiagnoseOptions& options);

}  // namespace memscope
