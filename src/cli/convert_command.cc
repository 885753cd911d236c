// `msmemscope convert INPUT -o FILE|DIR/`: msMemScope's csv and db from any input.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "cli/commands.h"
#include "cli/convert.h"
#include "cli/help.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "export/draft_file.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> inputs;
  bool help = false, all_runs = false, quiet = false;
  std::optional<std::string> output, device, steps, compat, call_stack, events, format;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.set_help_flag();
  app.add_option("INPUT", arguments.inputs)->group("");
  constexpr const char* kWhat = "What to write";
  constexpr const char* kWhere = "Where, and how";
  app.add_option("--device", arguments.device, "one device: cpu, cuda:0, npu:3")
      ->group(kWhat)
      ->type_name("DEVICE");
  app.add_option("--steps", arguments.steps, "the steps A to B, both included")
      ->group(kWhat)
      ->type_name("A:B");
  app.add_option("--call-stack", arguments.call_stack,
                 "c[:DEPTH], python[:DEPTH], or none. Default: as the run was told, else python")
      ->group(kWhat)
      ->type_name("LIST");
  app.add_option("--events", arguments.events,
                 "alloc, free, launch, access, none. Default: as the run was told, else all")
      ->group(kWhat)
      ->type_name("LIST");
  app.add_flag("--all-runs", arguments.all_runs,
               "all runs of a directory of runs, not just the newest")
      ->group(kWhat);
  app.add_option("-o,--output", arguments.output,
                 "FILE.csv, FILE.db (one device), FILE.json.gz (all), or DIR/ (a file each device "
                 "and process)")
      ->group(kWhere)
      ->type_name("PATH");
  app.add_option("--format", arguments.format,
                 "csv or db, in a directory. Default: as the run was told, else csv")
      ->group(kWhere)
      ->type_name("FORMAT");
  app.add_option("--compat", arguments.compat, "26.0: spell as msMemScope 26.0 did")
      ->group(kWhere)
      ->type_name("VERSION");
  app.add_flag("-q,--quiet", arguments.quiet, "do not name the files written")->group(kWhere);
  app.add_flag("-h,--help", arguments.help, "this text")->group(kWhere);
}

std::string help_text() {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  return "Writes an input as msMemScope's csv or db, for its scripts and for MindStudio\n"
         "Insight (which reads db), or as a trace for Perfetto's UI.\n"
         "\n"
         "Usage\n"
         "  msmemscope convert INPUT -o FILE.csv|.db|.json.gz|DIR/ [options]\n"
         "\n"
         "INPUT is a run's directory, the trace of one process, or a csv or db. It is\n"
         "never changed. A directory gets msMemScope's own tree:\n"
         "  DIR/msmemscope_<pid>_<time>_ascend/device_<id>/dump/memscope_dump_<time>.csv\n" +
         option_help(app) +
         "\n"
         "Exit status\n"
         "  0 fine, 2 wrong use, unreadable input, or not all could be written\n";
}

bool read_step(std::string_view text, uint32_t& step) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

// A:B
bool set_steps(std::string_view text, ConvertRequest& request) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && read_step(text.substr(0, colon), request.first_step) &&
         read_step(text.substr(colon + 1), request.last_step) && request.first_step != 0 &&
         request.first_step <= request.last_step;
}

Error refuse(std::string_view option, std::string_view value, std::string_view allowed) {
  return Error{fmt::format("convert: {} is \"{}\"; allowed: {}", option, value, allowed)};
}

// FILE.csv, FILE.db, or a directory.
Result<void> set_target(const std::string& output, ConvertRequest& request) {
  std::error_code error;
  request.target = output;
  request.is_directory = output.ends_with('/') || fs::is_directory(output, error);
  if (request.is_directory) return {};
  if (output.ends_with(".csv")) {
    request.format = DumpFormat::kCsv;
  } else if (output.ends_with(".db")) {
    request.format = DumpFormat::kDb;
  } else if (output.ends_with(".pickle")) {
    return Error{
        fmt::format("convert: {}: this kind of file cannot be written yet, only .csv, .db and "
                    ".json.gz",
                    output)};
  } else if (!output.ends_with(".json.gz")) {  // Perfetto's, see convert_perfetto.h
    return refuse("-o", output, "FILE.csv, FILE.db, FILE.json.gz, or a directory: DIR/");
  }
  const fs::path parent = fs::path(output).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error)) {
    return Error{fmt::format("convert: {}: there is no directory {}", output, parent.string())};
  }
  return {};
}

Result<ConvertRequest> request_of(const Arguments& arguments) {
  ConvertRequest request;
  Notes notes;
  request.inputs = arguments.inputs;
  request.all_runs = arguments.all_runs;
  request.quiet = arguments.quiet;
  if (arguments.inputs.empty()) {
    return Error{
        "convert: no input; give a run's directory, a trace, a csv or a db, see convert "
        "--help"};
  }
  if (!arguments.output || arguments.output->empty()) {
    return Error{"convert: say where to write: -o FILE.csv, -o FILE.db or -o DIR/"};
  }
  if (auto good = set_target(*arguments.output, request); !good) return good.error();
  if (arguments.format) {
    if (*arguments.format != "csv" && *arguments.format != "db") {
      return refuse("--format", *arguments.format, "csv, db");
    }
    const auto format = *arguments.format == "db" ? DumpFormat::kDb : DumpFormat::kCsv;
    if (request.format && *request.format != format) {
      return refuse("--format", *arguments.format, "what -o ends with");
    }
    request.format = format;
  }
  if (arguments.device) {
    request.device = device_from_name(*arguments.device);
    if (!request.device) return refuse("--device", *arguments.device, "cpu, cuda:N, npu:N, xpu:N");
  }
  if (arguments.steps) {
    if (!set_steps(*arguments.steps, request)) {
      return refuse("--steps", *arguments.steps, "A:B, two steps with 1 <= A <= B");
    }
  }
  if (arguments.compat) {
    if (*arguments.compat != "26.0") return refuse("--compat", *arguments.compat, "26.0");
    request.compat = true;
  }
  if (arguments.call_stack && *arguments.call_stack != "none") {
    auto checked = check_call_stack(*arguments.call_stack, notes);
    if (!checked) return checked.error();
    request.call_stack = checked.value();
  } else {
    request.call_stack = arguments.call_stack;
  }
  if (arguments.events) {
    auto checked = check_events(*arguments.events, notes);
    if (!checked) return checked.error();
    request.events = checked.value();
  }
  return request;
}

}  // namespace

int convert_command(const std::vector<std::string>& words) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  if (const auto over = parse_or_help(app, "convert", words, arguments.help, help_text))
    return *over;
  auto request = request_of(arguments);
  if (!request) return fail(request.error().message);
  remove_drafts_on_signals();
  return convert(request.value());
}

}  // namespace memscope::cli
