// Running a program under the agent. The launcher only sets the environment; the agent does the
// rest. It writes nothing to disk itself but a report that was asked for, and at the run's end what
// processes that died could not: their slabs go into their logs.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/agent_files.h"
#include "cli/analyze.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/executable.h"
#include "cli/output.h"
#include "cli/refusals.h"
#include "cli/run_dump.h"
#include "cli/run_id.h"
#include "cli/run_report.h"
#include "trace/dead_slabs.h"
#include "trace/run_layout.h"
#include "trace/untraced.h"

extern char** environ;

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDefaultOutput = "memscopeDumpResults";
constexpr unsigned kReportSeconds = 60;

struct Environment {
  std::vector<std::string> variables;

  std::string get(std::string_view name) const {
    for (const std::string& variable : variables) {
      if (is(variable, name)) return variable.substr(name.size() + 1);
    }
    return "";
  }
  void set(std::string_view name, std::string_view value) {
    std::erase_if(variables, [name](const std::string& variable) { return is(variable, name); });
    variables.push_back(fmt::format("{}={}", name, value));
  }
  static bool is(std::string_view variable, std::string_view name) {
    return variable.size() > name.size() && variable.starts_with(name) &&
           variable[name.size()] == '=';
  }
};

Environment inherited_environment() {
  Environment result;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    result.variables.emplace_back(*variable);
  }
  return result;
}

// "ours:theirs", each once (ld.so(8): split at blanks and colons).
std::string with_preload(std::string_view existing, const std::string& library) {
  std::string list = library;
  size_t at = 0;
  while (at < existing.size()) {
    const size_t end = std::min(existing.find_first_of(" :", at), existing.size());
    const std::string_view item = existing.substr(at, end - at);
    if (!item.empty() && item != library) list.append(":").append(item);
    at = end + 1;
  }
  return list;
}

struct Run {
  std::string output;  // absolute
  RunId id;
  fs::path directory() const { return fs::path(output) / ("run-" + id.id); }
};

// What the glue reads: config()'s keywords as text, and who reports.
std::string configuration(const LauncherOptions& options, const Run& run) {
  nlohmann::ordered_json json;
  json["mode"] = options.exec ? "exec" : "command";
  for (const auto& [key, value] : options.settings) json[key] = value;
  json["output_path"] = run.output;
  json["command"] = own_executable().string();  // what folds a trace that grows too large
  json["report_to"] = options.exec ? options.report_to : "none";
  if (options.suppressions) json["suppressions"] = *options.suppressions;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void say_notes(const Notes& notes) {
  for (const std::string& line : notes.warnings) {
    if (line.starts_with('[')) {
      raw_line(line);
    } else {
      say(line);
    }
  }
  if (!notes.not_recorded.empty()) {
    say(fmt::format("not recorded yet, a later version will: {}",
                    fmt::join(notes.not_recorded, ", ")));
  }
  if (!notes.without_effect.empty()) {
    say(fmt::format("accepted, but without effect yet: {}", fmt::join(notes.without_effect, ", ")));
  }
}

std::string not_started(const std::string& program, int error) {
  if (error == ENOENT && find_program(program)) {
    return fmt::format("{}: cannot be run: its interpreter (#! line or loader) is not there",
                       program);
  }
  if (error == ENOENT) {
    return fmt::format("{}: no such program{}", program,
                       program.find('/') == std::string::npos ? " on PATH" : "");
  }
  return fmt::format("{}: cannot be run: {}", program, std::strerror(error));
}

bool has_traces(const Run& run) {
  return find_processes(run.directory()).ok();
}

// "a (and 3 more)": what the processes of the run say of themselves.
std::string of_all(const std::vector<std::string>& lines) {
  if (lines.size() == 1) return lines.front();
  return fmt::format("{} (and {} more)", lines.front(), lines.size() - 1);
}

std::string why_nothing(const LauncherOptions& options, const ChildEnd& end,
                        const std::vector<std::string>& refusals) {
  if (!refusals.empty()) return of_all(refusals);
  const std::string& name = options.program.front();
  if (const auto program = find_program(name)) {
    if (const auto reason = why_not_traceable(*program)) {
      return fmt::format("{} {}, so the agent cannot be loaded into it", name, *reason);
    }
  }
  if (const auto mode = options.settings.find("collect_mode");
      mode != options.settings.end() && mode->second == "deferred") {
    return "--collect-mode is deferred, and msmemscope.start() was not called or no tensor "
           "followed";
  }
  if (end.how == ChildEnd::How::kSignalled) {
    return fmt::format("{} was ended by signal {} before its first tensor", name, end.value);
  }
  return fmt::format("{} made no tensor (no process of it loaded torch, or torch came without us)",
                     name);
}

// One report a run: of several launchers in one run (ranks, nodes) that of rank 0.
bool reports_here(const LauncherOptions& options, const Run& run) {
  if (options.report_to == "none") return false;
  const auto analysis = options.settings.find("analysis");
  if (analysis != options.settings.end() && analysis->second == "none") return false;
  return !run.id.inherited || rank_from_environment() <= 0;
}

void report(const LauncherOptions& options, const Run& run, const ChildEnd& end,
            const std::vector<std::string>& refusals) {
  if (!has_traces(run)) {
    say("nothing was recorded: " + why_nothing(options, end, refusals));
    return;
  }
  ReportRequest request;
  request.diagnose.inputs = {run.directory().string()};
  request.diagnose.suppressions = options.suppressions;
  request.target = options.report_to;
  request.leak_lines = options.asks_for_leaks();
  const auto ended = with_time_limit([&] { return print_report(request); }, kReportSeconds);
  const std::string again =
      fmt::format("`msmemscope analyze {}` makes it", request.diagnose.inputs[0]);
  if (ended == ReportEnd::kTooLong) {
    say(fmt::format("the report took longer than {} s and was given up; {}", kReportSeconds,
                    again));
  } else if (ended == ReportEnd::kInterrupted) {
    say("the report was interrupted; " + again);
  }
  if (!refusals.empty()) say("not every process is recorded whole: " + of_all(refusals));
}

int become(const std::vector<std::string>& program, const Environment& environment) {
  auto arguments = pointers(program);
  auto variables = pointers(environment.variables);
  ::execvpe(arguments[0], arguments.data(), variables.data());
  const int error = errno;
  say(not_started(program.front(), error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace

int run_command(const LauncherOptions& options) {
  Environment environment = inherited_environment();
  if (environment.get("MSMEMSCOPE_DISABLE") == "1") return become(options.program, environment);
  auto files = find_agent();
  if (!files) return fail(files.error().message);
  const auto level = options.settings.find("log_level");
  if (level == options.settings.end() || level->second != "error") say_notes(options.notes);

  Run run;
  const auto output = options.settings.find("output_path");
  std::error_code error;
  run.output = output != options.settings.end() ? output->second
                                                : fs::absolute(kDefaultOutput, error).string();
  run.id = make_run_id();
  const auto program = find_program(options.program.front());
  if (!program || !preload_would_harm(*program)) {
    environment.set("LD_PRELOAD",
                    with_preload(environment.get("LD_PRELOAD"), files.value().library.string()));
  }
  environment.set("MSMEMSCOPE_CONFIG", configuration(options, run));
  environment.set("MSMEMSCOPE_RUN_ID", run.id.id);
  environment.set("MSMEMSCOPE_PYTHONPATH", files.value().python_path.string());
  if (!files.value().build.empty()) {  // where the package in the source tree finds the command
    environment.set("MSMEMSCOPE_BUILD_DIR", files.value().build.string());
  }
  if (options.exec) return become(options.program, environment);

  const Refusals refusals;
  const Refusals untraced(refusals.name().empty() ? "" : refusals.name() + kUntracedSuffix);
  if (!refusals.name().empty()) environment.set("MSMEMSCOPE_LAUNCHER", refusals.name());
  const ChildEnd end = run_child(options.program, environment.variables);
  if (end.how == ChildEnd::How::kNotStarted) {
    say(not_started(options.program.front(), end.value));
    return end_like(end);
  }
  seal_dead_slabs(run.directory().c_str(), true);
  if (has_traces(run)) {  // what came before there was a directory to note it in
    for (const std::string& line : untraced.heard()) {
      add_untraced(run.directory().c_str(), line, untraced_key(line));
    }
  }
  if (reports_here(options, run)) report(options, run, end, refusals.heard());
  make_dumps(options, run.directory(), run.output, run.id.inherited);
  return end_like(end);
}

}  // namespace memscope::cli
