// `msmemscope analyze INPUT...`: the diagnosis, for people or as JSON.
#include "cli/analyze.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/memory_parts.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/symbol_options.h"
#include "core/where.h"
#include "report/compat.h"
#include "report/json.h"
#include "report/terminal.h"

namespace memscope::cli {
namespace {

constexpr std::array<std::string_view, 14> kCauses = {
    "none",           "leak",         "retained_graph", "cycle",        "unbounded_cache",
    "python_objects", "host_leak",    "pinned",         "cache",        "fragmentation",
    "pending_free",   "outside_pool", "peak",           "misconfigured"};

struct Arguments {
  std::vector<std::string> inputs;
  bool help = false, json = false, all_runs = false, suspects = false;
  std::optional<std::string> steps, device, suppressions, fail_on, analysis, top;
  std::string target = "stdout";
  SymbolArguments symbols;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.set_help_flag();
  app.add_option("INPUT", arguments.inputs)->group("");
  constexpr const char* kWhat = "What to look at";
  constexpr const char* kHow = "How to say it";
  app.add_flag("--all-runs", arguments.all_runs,
               "all runs of a directory of runs, not just the newest")
      ->group(kWhat);
  app.add_option("--steps", arguments.steps, "the steps A to B, both included")
      ->group(kWhat)
      ->type_name("A:B");
  app.add_option("--device", arguments.device, "one device: cpu, cuda:0, npu:3")
      ->group(kWhat)
      ->type_name("DEVICE");
  app.add_option("--suppressions", arguments.suppressions,
                 "growth that is expected: a glob on FILE:FUNCTION or on the owner a line")
      ->group(kWhat)
      ->type_name("FILE");
  describe_symbols(app, arguments.symbols);
  app.add_flag("--json", arguments.json, "one JSON object, see docs/analyze.schema.json")
      ->group(kHow);
  app.add_option("--top", arguments.top, "the N largest verdicts only")
      ->group(kHow)
      ->type_name("N");
  app.add_option("--fail-on", arguments.fail_on,
                 "exit with status 1 if a verdict has one of these causes")
      ->group(kHow)
      ->type_name("CAUSE,...");
  app.add_option("--analysis", arguments.analysis, "leaks: add msMemScope's own report lines")
      ->group(kHow)
      ->type_name("LIST");
  app.add_option("--report-to", arguments.target, "stdout, stderr, none, or a FILE. Default stdout")
      ->group(kHow)
      ->type_name("TARGET");
  app.add_flag("--suspects", arguments.suspects)->group("");  // the glue's question
  app.add_flag("-h,--help", arguments.help, "this text")->group(kHow);
}

std::string help_text() {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  return "Prints why memory grows, and the line that is to blame.\n"
         "\n"
         "Usage\n"
         "  msmemscope analyze INPUT... [options]\n"
         "\n"
         "INPUT is a run's directory (of a directory of runs the newest run is taken), the\n"
         "trace of one process, a csv or db of msMemScope, a memory snapshot of PyTorch,\n"
         "or a directory of those. Inputs are never changed.\n" +
         option_help(app) +
         "\n"
         "Exit status\n"
         "  0 fine, 1 --fail-on matched, 2 wrong use or unreadable input\n"
         "\n"
         "Examples\n"
         "  msmemscope analyze memscopeDumpResults\n"
         "  msmemscope analyze run-7 --json --fail-on leak,cycle\n";
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

Error refuse(std::string_view option, std::string_view value, std::string_view allowed) {
  return Error{fmt::format("analyze: {} is \"{}\"; allowed: {}", option, value, allowed)};
}

Result<ReportRequest> request_of(const Arguments& arguments) {
  ReportRequest request;
  Notes notes;
  request.json = arguments.json;
  request.diagnose.inputs = arguments.inputs;
  request.diagnose.all_runs = arguments.all_runs;
  if (arguments.inputs.empty()) {
    return Error{"analyze: no input; give a run's directory or a trace, see analyze --help"};
  }
  if (arguments.steps) {
    const size_t colon = arguments.steps->find(':');
    const auto first = whole_number(arguments.steps->substr(0, colon));
    const auto last = colon == std::string::npos ? std::nullopt
                                                 : whole_number(arguments.steps->substr(colon + 1));
    if (!first || !last || *first > *last) {
      return refuse("--steps", *arguments.steps, "A:B, two steps with A <= B");
    }
    request.diagnose.first_step = first;
    request.diagnose.last_step = last;
  }
  if (arguments.device) {
    const auto device = device_from_name(*arguments.device);
    if (!device) return refuse("--device", *arguments.device, "cpu, cuda:N, npu:N, xpu:N");
    request.diagnose.device = device_name(*device);
  }
  if (arguments.suppressions) {
    auto file = check_readable_file(*arguments.suppressions, notes);
    if (!file) return file.error();
    request.diagnose.suppressions = file.value();
  }
  auto symbols = symbol_options_of(arguments.symbols, "analyze");
  if (!symbols) return symbols.error();
  request.diagnose.symbols = std::move(symbols).value();
  // The program waits for the suspects: what is not named at once is told by its Python frames.
  if (arguments.suspects) request.diagnose.symbols.budget = std::chrono::milliseconds(1000);
  if (arguments.top) {
    const auto top = whole_number(*arguments.top);
    if (!top || *top == 0) return refuse("--top", *arguments.top, "a whole number from 1 on");
    request.top = static_cast<size_t>(*top);
  }
  if (arguments.fail_on) {
    request.fail_on = split_list(*arguments.fail_on);
    for (const std::string& cause : request.fail_on) {
      if (std::find(kCauses.begin(), kCauses.end(), cause) == kCauses.end()) {
        return refuse("--fail-on", cause, fmt::format("{}", fmt::join(kCauses, ", ")));
      }
    }
    if (request.fail_on.empty()) return refuse("--fail-on", *arguments.fail_on, "causes");
  }
  if (arguments.analysis) {
    auto analysis = check_analysis(*arguments.analysis, notes);
    if (!analysis) return analysis.error();
    const auto items = split_list(analysis.value());
    request.leak_lines = std::find(items.begin(), items.end(), "leaks") != items.end();
  }
  auto target = check_report_to(arguments.target, notes);
  if (!target) return target.error();
  request.target = target.value();
  return request;
}

int suspects_command(const ReportRequest& request) {
  auto found = diagnose_inputs(request.diagnose);
  if (!found) return fail(found.error().message);
  const auto written = write_to(request.target, suspects_json(found.value().diagnosis));
  return written ? 0 : fail(written.error().message);
}

}  // namespace

int print_report(const ReportRequest& request) {
  auto found = diagnose_inputs(request.diagnose);
  if (!found) return fail(found.error().message);
  Diagnosis& diagnosis = found.value().diagnosis;
  const bool failed =
      std::any_of(diagnosis.verdicts.begin(), diagnosis.verdicts.end(), [&](const Verdict& v) {
        return std::find(request.fail_on.begin(), request.fail_on.end(), v.cause) !=
               request.fail_on.end();
      });
  if (request.top && diagnosis.verdicts.size() > *request.top) {
    diagnosis.verdicts.resize(*request.top);
  }
  std::string text;
  if (request.json) {
    text = diagnosis_json(diagnosis);
  } else {
    const int fd = request.target == "stdout"   ? STDOUT_FILENO
                   : request.target == "stderr" ? STDERR_FILENO
                                                : -1;
    // The diagnosis comes last: that is what stays on the screen.
    if (request.leak_lines) {
      text = fd < 0 ? compat_report(found.value().pools)
                    : compat_report(found.value().pools, kBlocksOnScreen);
      if (!text.empty()) text += "\n";
    }
    text += diagnosis_text(diagnosis, style_for(fd));
    text += memory_parts_text(diagnosis, style_for(fd));
  }
  const auto written = write_to(request.target, text);
  if (!written) return fail(written.error().message);
  // What could be read is diagnosed; that it is not all is said, and is no success.
  say_damage(found.value().damage);
  for (const std::string& note : found.value().notes) say(note);
  if (found.value().lost) return 2;
  return failed ? 1 : 0;
}

int analyze_command(const std::vector<std::string>& words) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  if (const auto over = parse_or_help(app, "analyze", words, arguments.help, help_text))
    return *over;
  auto request = request_of(arguments);
  if (!request) return fail(request.error().message);
  return arguments.suspects ? suspects_command(request.value()) : print_report(request.value());
}

}  // namespace memscope::cli
