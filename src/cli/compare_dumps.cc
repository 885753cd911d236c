// `msmemscope --compare --input-path A,B`: the operators of two dumps, as msMemScope compares them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "cli/commands.h"
#include "cli/output.h"
#include "export/draft_file.h"
#include "import/find_inputs.h"
#include "import/open_input.h"
#include "report/compare_csv.h"

namespace memscope::cli {
namespace {

constexpr const char* kFailed = "Memory comparison failed!";

std::string setting(const LauncherOptions& options, const std::string& key,
                    const std::string& otherwise) {
  const auto found = options.settings.find(key);
  return found == options.settings.end() || found->second.empty() ? otherwise : found->second;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &local);
  return text;
}

// The processes of one side: a file may hold several.
Result<std::vector<Input>> open_side(const std::string& path) {
  const auto paths = find_inputs(path);
  if (!paths) return paths.error();
  std::vector<Input> found;
  for (const std::filesystem::path& one : paths.value()) {
    auto opened = open_input(one);
    if (!opened) return opened.error();
    for (Input& input : opened.value()) found.push_back(std::move(input));
  }
  return found;
}

struct Sides {
  std::vector<Input> base, compare;
};

struct Written {
  std::string rows, summary;
  size_t operators = 0;
};

Written compare_level(Sides& sides, OperatorLevel level, bool as_original) {
  const auto measure =
      as_original ? OperatorCollector::Measure::kNextRow : OperatorCollector::Measure::kDelta;
  StringTable names;
  const auto collect = [&](std::vector<Input>& inputs) {
    OperatorRun run;
    for (Input& input : inputs) {
      run.add(input.visit(
          [&](auto& source) { return collect_operators(source, level, measure, names); }));
    }
    return run;
  };
  const OperatorRun base = collect(sides.base), compare = collect(sides.compare);
  // What no operator ran on is no row, as in the original.
  const auto devices = compare_operators(base, compare);
  Written written{compare_csv_rows(devices, level, names), compare_csv_summary(devices, level)};
  for (const DeviceOperators& device : devices) written.operators += device.rows.size();
  return written;
}

// msMemScope ran one comparison a second at most; a second one does not replace the first.
std::filesystem::path free_name(const std::filesystem::path& directory) {
  const std::string time = now_text();
  std::filesystem::path path = directory / ("memory_compare_" + time + ".csv");
  std::error_code error;
  for (int n = 2; std::filesystem::exists(path, error); ++n) {
    path = directory / fmt::format("memory_compare_{}.{}.csv", time, n);
  }
  return path;
}

}  // namespace

int compare_dumps_command(const LauncherOptions& options) {
  for (const std::string& line : options.notes.warnings) {
    (void)write_all(STDERR_FILENO, line + "\n");  // deprecated spellings
  }
  if (!options.program.empty()) {
    return fail(
        fmt::format("--compare runs no program, but \"{}\" is given; the two inputs go to "
                    "--input-path A,B",
                    options.program.front()));
  }
  if (options.inputs.size() != 2) {
    return fail(
        fmt::format("Please use compare command with correct input paths! --input-path "
                    "needs two paths, A,B, not {}",
                    options.inputs.size()));
  }
  auto base = open_side(options.inputs[0]);
  if (!base) return fail(fmt::format("{} {}", kFailed, base.error().message));
  auto compare = open_side(options.inputs[1]);
  if (!compare) return fail(fmt::format("{} {}", kFailed, compare.error().message));
  Sides sides{std::move(base).value(), std::move(compare).value()};

  const bool as_original = setting(options, "compat", "") == "26.0";
  const std::string level = setting(options, "level", "op");
  std::string text(kCompareCsvHeader), summary;
  size_t operators = 0;
  for (const auto& [name, which] :
       {std::pair{"op", OperatorLevel::kOperator}, std::pair{"kernel", OperatorLevel::kKernel}}) {
    if (level.find(name) == std::string::npos) continue;
    const Written written = compare_level(sides, which, as_original);
    text += written.rows;
    summary += written.summary;
    operators += written.operators;
  }
  bool lost = false;
  std::vector<std::string> said;
  for (const std::vector<Input>* side : {&sides.base, &sides.compare}) {
    for (const Input& input : *side) {
      lost = lost || input.lost();
      for (std::string& line : input.damage()) {
        // The processes of one file have its damage in common.
        if (std::find(said.begin(), said.end(), line) != said.end()) continue;
        say(line);
        said.push_back(std::move(line));
      }
    }
  }
  if (operators == 0) {
    return fail(fmt::format("{} Neither input has {}; record with --events=launch{}", kFailed,
                            level == "kernel" ? "kernel launches" : "operators",
                            level == "kernel" ? " --level=kernel" : ""));
  }
  const std::filesystem::path directory =
      std::filesystem::path(setting(options, "output_path", "memscopeDumpResults")) / "compare";
  std::vector<std::filesystem::path> made;
  Result<void> written = make_directories(directory, &made);
  const std::filesystem::path path = free_name(directory);
  if (written) written = write_file(path.string(), text);
  if (!written) {
    remove_empty(made);
    return fail(written.error().message);
  }
  const auto printed = write_to("stdout", summary + path.string() + "\n");
  if (!printed) return fail(printed.error().message);
  return lost ? 2 : 0;
}

}  // namespace memscope::cli
