// What is made at the end of a run (report, dump), in a process of its own: the report may take 60
// s, and a signal ends it at once, so that the launcher is never late.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace memscope::cli {

enum class ReportEnd { kDone, kFailed, kTooLong, kInterrupted };

inline constexpr unsigned kNoTimeLimit = 0;

// Calls `report` in a forked child and waits for its exit status (0 = done). A child that is given
// up gets SIGTERM, and a moment to tidy up.
ReportEnd with_time_limit(const std::function<int()>& report, unsigned seconds);

}  // namespace memscope::cli
