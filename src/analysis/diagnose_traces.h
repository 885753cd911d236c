// Traces on disk -> the diagnosis: opens, replays and judges.
#pragma once

#include <filesystem>
#include <span>

#include "analysis/diagnose.h"
#include "core/result.h"

namespace memscope {

// `paths`: processes' directories or trace files, an input each. An error names the first that
// cannot be read.
Result<DiagnoseResult> diagnose_traces(std::span<const std::filesystem::path> paths,
                                       const DiagnoseOptions& options);

}  // namespace memscope
