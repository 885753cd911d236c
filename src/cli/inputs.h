// What the INPUTs of the command line stand for: traces, each process one.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace memscope::cli {

// What TraceReader::open() takes; each once, though it was named twice. With `all_runs` a directory
// of runs stands for all of them, else for its newest. A file of others (csv, db, snapshot) is an
// error: it cannot be read yet.
Result<std::vector<std::string>> expand_inputs(const std::vector<std::string>& inputs,
                                               bool all_runs);

}  // namespace memscope::cli
