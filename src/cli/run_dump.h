// The csv or db that a launched run asked for with --format: made when it is over, after the
// report, from all its processes; of several launchers in one run each makes its own rank's.
#pragma once

#include <filesystem>
#include <string>

#include "cli/options.h"

namespace memscope::cli {

// Nothing where no format was asked for. `one_of_many`: other launchers share the run directory.
// Takes as long as it takes, but a signal ends it; what goes wrong is a line on stderr.
void make_dumps(const LauncherOptions& options, const std::filesystem::path& run,
                const std::string& output, bool one_of_many);

}  // namespace memscope::cli
