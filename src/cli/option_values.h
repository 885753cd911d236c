// What the launcher's options may be set to (the reference's command line, with the contract's
// differences). Each check takes the text as given and returns it in its canonical form, or an
// error whose line begins with the original's words and then names the option, the value and what
// is allowed. Lists are split at commas, ASCII or full-width (U+FF0C).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace memscope::cli {

// What is said on stderr although the value is fine.
struct Notes {
  std::vector<std::string> warnings;        // whole lines
  std::vector<std::string> not_recorded;    // "kernels (--level kernel)"
  std::vector<std::string> without_effect;  // options whose work a later version does
};

std::vector<std::string> split_list(std::string_view text);

Result<std::string> check_level(std::string_view value, Notes& notes);
Result<std::string> check_events(std::string_view value, Notes& notes);
Result<std::string> check_steps(std::string_view value, Notes& notes);
Result<std::string> check_call_stack(std::string_view value, Notes& notes);
Result<std::string> check_collect_mode(std::string_view value, Notes& notes);
Result<std::string> check_device(std::string_view value, Notes& notes);
Result<std::string> check_host_sample(std::string_view value, Notes& notes);  // in bytes
Result<std::string> check_analysis(std::string_view value, Notes& notes);
Result<std::string> check_watch(std::string_view value, Notes& notes);
Result<std::string> check_input_path(std::string_view value, Notes& notes);
Result<std::string> check_output_path(std::string_view value, Notes& notes);
Result<std::string> check_format(std::string_view value, Notes& notes);
Result<std::string> check_log_level(std::string_view value, Notes& notes);
Result<std::string> check_compat(std::string_view value, Notes& notes);
Result<std::string> check_trace_size(std::string_view value, Notes& notes);  // in bytes
Result<std::string> check_report_to(std::string_view value, Notes& notes);
Result<std::string> check_readable_file(std::string_view value, Notes& notes);

// "[msmemscope] Deprecation: 'X' is deprecated, use 'Y' instead."
std::string deprecation(std::string_view old_name, std::string_view new_name);

}  // namespace memscope::cli
