// The launcher's command line: msmemscope [options] [--] PROGRAM ARGS...
//
// Options end at the first word that is none, so the program's own options are never touched; the
// reference's getopt swallowed them. A wrong option is one line and exit status 2, where the
// reference printed its help and exited 0.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_values.h"
#include "core/result.h"

namespace memscope::cli {

struct LauncherOptions {
  bool help = false, version = false;
  // As config() takes them: "output_path", "analysis", "call_stack", ... Only what was given.
  std::map<std::string, std::string> settings;
  std::string report_to = "stderr";
  std::optional<std::string> suppressions;
  bool exec = false;                // do not stay as the program's parent
  bool compare = false;             // the reference's --compare
  std::vector<std::string> inputs;  // --input-path: the two to compare
  Notes notes;
  std::vector<std::string> program;  // with its arguments; empty if none was named
  bool after_mark = false;           // a `--` came before it

  bool asks_for_leaks() const;  // --analysis was given and has leaks
};

// `arguments` without the command's own name.
Result<LauncherOptions> parse_launcher(const std::vector<std::string>& arguments);

std::string launcher_help();
std::string version_text();

}  // namespace memscope::cli
