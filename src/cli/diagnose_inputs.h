// From paths of the command line to a diagnosis: what `analyze` and the launcher share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnose.h"
#include "core/result.h"

namespace memscope::cli {

struct DiagnoseRequest {
  std::vector<std::string> inputs;  // as given
  bool all_runs = false;
  std::optional<int64_t> first_step, last_step;
  std::optional<std::string> device;        // "cuda:0"
  std::optional<std::string> suppressions;  // a file
  SymbolOptions symbols;
};

struct Found {
  Diagnosis diagnosis;
  std::vector<PoolReport> pools;    // for msMemScope's own report, see report/compat.h
  std::vector<std::string> damage;  // what could not be read, a line each
  bool lost = false;                // events are missing for it: exit status 2
  std::vector<std::string> notes;   // why native frames have no names
};

Result<Found> diagnose_inputs(const DiagnoseRequest& request);

}  // namespace memscope::cli
