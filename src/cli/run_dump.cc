#include "cli/run_dump.h"

#include <fmt/format.h>

#include "cli/convert.h"
#include "cli/output.h"
#include "cli/run_id.h"
#include "cli/run_report.h"
#include "export/draft_file.h"
#include "trace/run_layout.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

std::string setting(const LauncherOptions& options, const char* key) {
  const auto at = options.settings.find(key);
  return at == options.settings.end() ? std::string() : at->second;
}

// <host>-<rank|x>-<pid>[.n]
bool is_of_rank(const fs::path& process, int rank) {
  const std::string name = process.filename().string();
  const size_t pid = name.rfind('-');
  if (pid == std::string::npos || pid == 0) return false;
  const size_t at = name.rfind('-', pid - 1);
  return at != std::string::npos && name.substr(at + 1, pid - at - 1) == std::to_string(rank);
}

}  // namespace

void make_dumps(const LauncherOptions& options, const fs::path& run, const std::string& output,
                bool one_of_many) {
  const std::string format = setting(options, "format");
  if (format.empty()) return;
  const auto processes = find_processes(run);
  if (!processes) return;  // nothing was recorded, and that has been said
  ConvertRequest request;
  const int rank = rank_from_environment();
  for (const fs::path& process : processes.value()) {
    if (one_of_many && rank >= 0 && !is_of_rank(process, rank)) continue;
    request.inputs.push_back(process.string());
  }
  if (request.inputs.empty()) return;
  request.target = output;
  request.is_directory = true;
  request.format = format == "db" ? DumpFormat::kDb : DumpFormat::kCsv;
  // As the original: stack columns only where they were asked for.
  const std::string call_stack = setting(options, "call_stack");
  request.call_stack = call_stack.empty() ? "none" : call_stack;
  request.compat = setting(options, "compat") == "26.0";
  request.quiet = setting(options, "log_level") == "error";
  const auto dump = [&] {
    remove_drafts_on_signals();
    return convert(request);
  };
  if (with_time_limit(dump, kNoTimeLimit) == ReportEnd::kInterrupted) {
    say(
        fmt::format("the {} dump was interrupted; `msmemscope convert {} --format {} -o {}/` makes "
                    "it",
                    format, run.string(), format, output));
  }
}

}  // namespace memscope::cli
