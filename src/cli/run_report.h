// The report at the end of a run, made in a process of its own: it may take 60 s, and a signal ends
// it at once, so that the launcher is never late.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace memscope::cli {

enum class ReportEnd { kDone, kFailed, kTooLong, kInterrupted };

// Calls `report` in a forked child and waits for its exit status (0 = done).
ReportEnd with_time_limit(const std::function<int()>& report, unsigned seconds);

}  // namespace memscope::cli
