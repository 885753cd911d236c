// What the INPUTs of the command line stand for: traces, each process one, and dumps of msMemScope.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace memscope::cli {

// What open_input() takes (import/open_input.h); each once, though it was named twice. With
// `all_runs` a directory of runs stands for all of them, else for its newest.
Result<std::vector<std::string>> expand_inputs(const std::vector<std::string>& inputs,
                                               bool all_runs);

}  // namespace memscope::cli
