#include "cli/diagnose_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "analysis/diagnose_inputs.h"
#include "cli/inputs.h"
#include "core/where.h"

namespace memscope::cli {
namespace {

// One pattern a line; blanks around it, empty lines and `#` comments do not count.
Result<std::vector<std::string>> read_suppressions(const std::string& path) {
  constexpr size_t kMaxPatterns = 10'000;
  std::ifstream file(path);
  if (!file) return Error{fmt::format("{}: cannot be read (--suppressions)", path)};
  std::vector<std::string> patterns;
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kBlank = " \t\r";
    const size_t first = line.find_first_not_of(kBlank);
    if (first == std::string::npos || line[first] == '#') continue;
    if (patterns.size() == kMaxPatterns) {
      return Error{fmt::format("{}: more than {} patterns", path, kMaxPatterns)};
    }
    patterns.push_back(line.substr(first, line.find_last_not_of(kBlank) - first + 1));
  }
  return patterns;
}

}  // namespace

Result<Found> diagnose_inputs(const DiagnoseRequest& request) {
  auto inputs = expand_inputs(request.inputs, request.all_runs);
  if (!inputs) return inputs.error();
  DiagnoseOptions options;
  options.symbols = request.symbols;
  const auto step = [](int64_t number) {
    return static_cast<uint32_t>(std::min<int64_t>(number, UINT32_MAX));
  };
  options.first_step = step(request.first_step.value_or(0));
  options.last_step = step(request.last_step.value_or(0));
  if (request.device) options.device = device_from_name(*request.device);
  if (request.suppressions) {
    auto patterns = read_suppressions(*request.suppressions);
    if (!patterns) return patterns.error();
    options.suppressions = std::move(patterns).value();
  }
  const std::vector<std::filesystem::path> paths(inputs.value().begin(), inputs.value().end());
  auto result = memscope::diagnose_inputs(paths, options);
  if (!result) return result.error();
  if (const auto& devices = result.value().diagnosis.devices;
      request.device &&
      std::find(devices.begin(), devices.end(), *request.device) == devices.end()) {
    return Error{
        fmt::format("--device {}: no memory of it in {}; `msmemscope info` says what is in it",
                    *request.device, fmt::join(request.inputs, ", "))};
  }
  Found found{std::move(result.value().diagnosis), std::move(result.value().pools),
              std::move(result.value().damage), result.value().lost,
              std::move(result.value().notes)};
  if (found.diagnosis.tool.empty()) found.diagnosis.tool = "msmemscope " MEMSCOPE_VERSION;
  return found;
}

}  // namespace memscope::cli
