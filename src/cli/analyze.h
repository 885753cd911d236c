// The diagnosis of some inputs, printed: what `analyze` and the end of a launched run share.
#pragma once

#include <string>

#include "cli/diagnose_inputs.h"

namespace memscope::cli {

struct ReportRequest {
  DiagnoseRequest diagnose;
  std::string target = "stdout";  // as --report-to
  bool json = false;
  bool leak_lines = false;  // msMemScope's own report lines, too
  std::optional<size_t> top;
  std::vector<std::string> fail_on;  // causes
};

// The exit status: 0, 1 if `fail_on` names the cause of a verdict, 2 after one line on stderr.
int print_report(const ReportRequest& request);

}  // namespace memscope::cli
