// The commands: each takes the words after its verb and returns the exit status (0 fine, 1
// --fail-on matched, 2 wrong use or unreadable input, after one line on stderr).
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace memscope::cli {

int analyze_command(const std::vector<std::string>& words);
int compare_command(const std::vector<std::string>& words);
// What the package's analyzers ask; not in the help.
int offline_inefficient_command(const std::vector<std::string>& words);
int offline_leaks_command(const std::vector<std::string>& words);
// What the agent asks for when a trace has used up half of its disk budget; not in the help.
int offline_fold_command(const std::vector<std::string>& words);
int info_command(const std::vector<std::string>& words);
int convert_command(const std::vector<std::string>& words);
int run_command(const LauncherOptions& options);
int report_command(const std::vector<std::string>& words);
int view_command(const std::vector<std::string>& words);
int compare_dumps_command(const LauncherOptions& options);  // --compare

}  // namespace memscope::cli
