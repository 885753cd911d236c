// From what the user names to the traces that are meant (contract, section 2):
//
//   <output>/run-<id>/<host>-<rank|x>-<pid>[.n]/{trace.msm, hot.slab, meta.json}
//
// A trace.msm or its directory is that process; a run directory is all its processes; a directory
// of runs is its newest run.
#pragma once

#include <filesystem>
#include <vector>

#include "core/result.h"

namespace memscope {

struct RunLayout {
  std::filesystem::path run;  // the run directory, or that of the one process
  std::vector<std::filesystem::path>
      processes;  // what TraceReader::open() takes, by rank, then pid
};

enum class WhichRuns { kNewest, kAll };

// Never empty: an input without a trace is an error that says what was looked for. Runs come oldest
// first. Files that are no trace of ours are an error too; other readers may know them.
Result<std::vector<RunLayout>> find_runs(const std::filesystem::path& input,
                                         WhichRuns which = WhichRuns::kNewest);

// All processes of find_runs(), in one list.
Result<std::vector<std::filesystem::path>> find_processes(const std::filesystem::path& input,
                                                          WhichRuns which = WhichRuns::kNewest);

}  // namespace memscope
