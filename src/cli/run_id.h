// The name of a run: run-<id>/ below the output path (contract, section 2).
#pragma once

#include <string>

namespace memscope::cli {

struct RunId {
  std::string id;
  bool inherited = false;  // MSMEMSCOPE_RUN_ID was set, or a launcher of ranks started us
};

// MSMEMSCOPE_RUN_ID where it is set; else, where RANK is, start time and pid of the parent, which
// all its ranks share; else time and pid of this process: "20261129-220114-4711", UTC.
RunId make_run_id();

// This process's place in a distributed job; -1 where there is none.
int rank_from_environment();

}  // namespace memscope::cli
