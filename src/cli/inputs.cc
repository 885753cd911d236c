#include "cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "trace/run_layout.h"

namespace memscope::cli {
namespace {

constexpr std::array<std::string_view, 4> kForeign = {".csv", ".db", ".pickle", ".pkl"};

}  // namespace

Result<std::vector<std::string>> expand_inputs(const std::vector<std::string>& inputs,
                                               bool all_runs) {
  std::vector<std::string> expanded;
  for (const std::string& input : inputs) {
    const std::filesystem::path path(input);
    std::error_code error;
    const std::string suffix = path.extension().string();
    if (std::find(kForeign.begin(), kForeign.end(), suffix) != kForeign.end() &&
        std::filesystem::is_regular_file(path, error)) {
      return Error{
          fmt::format("{}: {} files cannot be read yet, only MemScope's traces", input, suffix)};
    }
    auto found = find_processes(path, all_runs ? WhichRuns::kAll : WhichRuns::kNewest);
    if (!found) return found.error();
    for (const auto& process : found.value()) {
      // Absolute, but with the names the user knows: links are not resolved.
      std::string name = std::filesystem::absolute(process, error).lexically_normal().string();
      if (std::find(expanded.begin(), expanded.end(), name) == expanded.end()) {
        expanded.push_back(std::move(name));
      }
    }
  }
  return expanded;
}

}  // namespace memscope::cli
