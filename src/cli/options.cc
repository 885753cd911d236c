#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/help.h"

namespace memscope::cli {
namespace {

// How an option without a value ("--output-path=") is carried through CLI11, which would take the
// next word for it.
constexpr const char* kEmptyValue = "\x01";

struct OptionSpec {
  const char* names;  // as CLI11 takes them
  const char* value;  // what its value is called; "" for a flag
  const char* key;    // the config() keyword, or "" where it is the launcher's own
  const char* group;
  const char* help;
  Result<std::string> (*check)(std::string_view, Notes&);
  const char* old_names;  // deprecated, hidden
};

constexpr const char* kCollect = "Collection";
constexpr const char* kAnalyse = "Analysis";
constexpr const char* kFiles = "Input and output";
constexpr const char* kOther = "Other";

// The reference's options, then ours. Order within a group is the help's.
constexpr std::array<OptionSpec, 16> kOptions = {{
    {"--device", "LIST", "device", kCollect,
     "auto, cpu, npu, npu:N, cuda, cuda:N, host. Default auto: every device torch or the driver "
     "shows, CPU tensors included. host is malloc and mmap: only where it is named",
     check_device, ""},
    {"--host-sample", "SIZE", "host_sample", kCollect,
     "of host memory record a block every SIZE bytes on average (512K), its numbers scaled up. "
     "Default 0: every block",
     check_host_sample, ""},
    {"--events", "LIST", "events", kCollect,
     "alloc, free, launch, access, traceback, none. Default alloc,free,launch", check_events, ""},
    {"--level", "LIST", "level", kCollect, "op, kernel. Default op", check_level, ""},
    {"--call-stack", "LIST", "call_stack", kCollect,
     "c[:DEPTH], python[:DEPTH]: native stacks, and what csv and db print of Python's. Python "
     "stacks are always recorded",
     check_call_stack, ""},
    {"--steps", "LIST", "steps", kCollect, "record these steps only, up to 5. Default all",
     check_steps, ""},
    {"--collect-mode", "MODE", "collect_mode", kCollect,
     "immediate, or deferred: wait for msmemscope.start(). Default immediate", check_collect_mode,
     ""},
    {"--watch", "SPEC", "watch", kCollect,
     "[START[:OUTPUT]],END[,full-content]: dump the tensors of these operators", check_watch, ""},
    {"--analysis", "LIST", "analysis", kAnalyse,
     "leaks, decompose, inefficient, oom[:K], none. Default leaks; leaks by name adds "
     "msMemScope's own report lines",
     check_analysis, ""},
    {"--suppressions", "FILE", "", kAnalyse,
     "growth that is expected: a glob on FILE:FUNCTION or on the owner a line", check_readable_file,
     ""},
    {"-i,--input-path", "A,B", "", kFiles, "two dumps, for --compare", check_input_path, "--input"},
    {"-o,--output-path", "DIR", "output_path", kFiles,
     "where the results go. Default ./memscopeDumpResults", check_output_path, "--output"},
    {"--format", "FORMAT", "format", kFiles, "csv or db, beside the trace. Default neither",
     check_format, "--data-format"},
    {"--max-trace-size", "SIZE", "max_trace_size", kFiles,
     "of each process, 10G, 500M: what is older is folded. Default 20 GB, or a tenth of the free "
     "space if that is less",
     check_trace_size, ""},
    {"--report-to", "TARGET", "", kFiles, "stderr, stdout, none, or a FILE. Default stderr",
     check_report_to, ""},
    {"--compat", "VERSION", "compat", kFiles, "26.0: spell dumps as msMemScope 26.0 did",
     check_compat, ""},
}};

struct Given {
  std::array<std::optional<std::string>, kOptions.size()> values;
  std::array<bool, kOptions.size()> by_old_name{};
  std::optional<std::string> log_level;
  bool verbose = false, quiet = false;
};

void add_options(CLI::App& app, Given& given, LauncherOptions& options) {
  for (size_t i = 0; i < kOptions.size(); ++i) {
    const OptionSpec& spec = kOptions[i];
    const auto take = [&given, i](bool old_name) {
      return [&given, i, old_name](const std::string& value) {
        given.values[i] = value == kEmptyValue ? "" : value;
        given.by_old_name[i] = given.by_old_name[i] || old_name;
      };
    };
    if (*spec.old_names != '\0') {
      app.add_option_function<std::string>(spec.old_names, take(true))->group("")->take_last();
    }
    app.add_option_function<std::string>(spec.names, take(false), spec.help)
        ->group(spec.group)
        ->take_last()
        ->type_name(spec.value);
  }
  app.add_flag("--compare", options.compare, "compare the two dumps of --input-path")
      ->group(kAnalyse);
  app.add_flag("--exec", options.exec,
               "become the program instead of staying as its parent; the program then reports")
      ->group(kOther);
  app.add_option("--log-level", given.log_level,
                 "debug, info, warning, error: what the tool says of itself. Default info")
      ->group(kOther)
      ->take_last()
      ->type_name("LEVEL");
  app.add_flag("-v,--verbose,--debug", given.verbose, "the same as --log-level debug")
      ->group(kOther);
  app.add_flag("-q,--quiet", given.quiet, "the same as --log-level error")->group(kOther);
  app.add_flag("-h,--help", options.help, "this text")->group(kOther);
  app.add_flag("-V,--version", options.version, "the version")->group(kOther);
}

void prepare(CLI::App& app) {
  app.set_help_flag();  // ours is an option like the others
  app.prefix_command();
}

std::optional<Error> apply(const Given& given, LauncherOptions& options) {
  for (size_t i = 0; i < kOptions.size(); ++i) {
    const OptionSpec& spec = kOptions[i];
    if (!given.values[i]) continue;
    const std::string name = std::string(spec.names).substr(std::string(spec.names).find("--"));
    if (given.by_old_name[i]) {
      options.notes.warnings.push_back(deprecation(spec.old_names, name));
    }
    auto checked = spec.check(*given.values[i], options.notes);
    if (!checked) return checked.error();
    if (name == "--report-to") options.report_to = checked.value();
    if (name == "--suppressions") options.suppressions = checked.value();
    if (name == "--input-path") options.inputs = split_list(checked.value());
    if (*spec.key != '\0' && !checked.value().empty()) {
      options.settings[spec.key] = checked.value();
    }
  }
  // Explicit beats shortcuts; verbose beats quiet.
  if (given.log_level) {
    auto level = check_log_level(*given.log_level, options.notes);
    if (!level) return level.error();
    options.settings["log_level"] = level.value();
  } else if (given.verbose || given.quiet) {
    options.settings["log_level"] = given.verbose ? "debug" : "error";
  }
  const auto set = [&](const char* key) {
    const auto found = options.settings.find(key);
    return found == options.settings.end() ? std::string() : found->second;
  };
  const std::vector<std::string> devices = split_list(set("device"));
  if (const std::string sample = set("host_sample");
      !sample.empty() && sample != "0" &&
      std::find(devices.begin(), devices.end(), "host") == devices.end()) {
    options.notes.warnings.emplace_back(
        "--host-sample does nothing without host memory: give --device auto,host");
  }
  const bool has_inputs = given.values[10].has_value();
  static_assert(std::string_view(kOptions[10].names) == "-i,--input-path");
  if (options.compare != has_inputs) {
    return Error{
        "Please use compare command with correct input paths! --compare needs "
        "--input-path A,B, and --input-path needs --compare"};
  }
  return std::nullopt;
}

}  // namespace

bool LauncherOptions::asks_for_leaks() const {
  const auto analysis = settings.find("analysis");
  if (analysis == settings.end()) return false;
  for (const std::string& item : split_list(analysis->second)) {
    if (item == "leaks") return true;
  }
  return false;
}

Result<LauncherOptions> parse_launcher(const std::vector<std::string>& arguments) {
  LauncherOptions options;
  Given given;
  CLI::App app;
  prepare(app);
  add_options(app, given, options);

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
  for (std::string& word : reversed) {
    if (word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1) {
      word += kEmptyValue;
    }
  }
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return Error{fmt::format("{}; see msmemscope --help", error.what())};
  }
  // What is left is the tail of the arguments, untouched; a mark before it is not counted.
  const auto left = std::min(app.remaining_size(), arguments.size());
  const auto first = arguments.end() - static_cast<std::ptrdiff_t>(left);
  options.after_mark = first != arguments.begin() && *(first - 1) == "--";
  // An option that is none is left over too, and then it is not the program's beginning.
  const std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest.front() != "--" && rest.front().size() > 1 && rest.front()[0] == '-') {
    return Error{fmt::format("unrecognized command {}; see msmemscope --help", rest.front())};
  }
  options.program.assign(first, arguments.end());
  if (options.help || options.version) return options;
  if (auto error = apply(given, options)) return *error;
  return options;
}

std::string launcher_help() {
  LauncherOptions options;
  Given given;
  CLI::App app;
  prepare(app);
  add_options(app, given, options);
  std::string text =
      "MemScope finds why an AI process uses ever more memory, and the line to change.\n"
      "\n"
      "Usage\n"
      "  msmemscope [options] [--] PROGRAM ARGS...   run a program and diagnose it\n"
      "  msmemscope VERB ...                         work on what was recorded\n"
      "\n"
      "Verbs (each has --help; a program of that name is run after --)\n"
      "  analyze INPUT...       print the diagnosis\n"
      "  info INPUT             what is in it, and how complete it is\n"
      "  compare BASE NEW       what NEW holds that BASE does not\n"
      "  convert INPUT -o PATH  as msMemScope's csv or db, or for Perfetto\n"
      "  view INPUT...          the viewer, in a browser\n"
      "  report INPUT -o FILE   the viewer's page as one file, to send away\n";
  text += option_help(app);
  text +=
      "\n"
      "Environment\n"
      "  MSMEMSCOPE_DISABLE=1   switch everything off\n"
      "  MSMEMSCOPE_RUN_ID      the run's name; set it to the same on several nodes\n"
      "  MSMEMSCOPE_SLAB_DIR    a local directory for the hot slab\n"
      "  MSMEMSCOPE_SOURCE=0    keep statements only, no source files\n"
      "  NO_COLOR               no colours\n"
      "\n"
      "Exit status\n"
      "  the program's own, or its signal; 126 it cannot be run, 127 it is not found,\n"
      "  2 wrong use\n"
      "\n"
      "Examples\n"
      "  msmemscope python train.py\n"
      "  msmemscope --analysis=leaks --device=npu:0,npu:1 -o results -- python train.py\n"
      "  msmemscope analyze results\n";
  return text;
}

std::string version_text() {
  return "MemScope " MEMSCOPE_VERSION
         "\nmemory diagnosis for PyTorch on Ascend NPUs, NVIDIA GPUs and CPUs\n";
}

}  // namespace memscope::cli
