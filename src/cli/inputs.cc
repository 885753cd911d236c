#include "cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "import/find_inputs.h"

namespace memscope::cli {

Result<std::vector<std::string>> expand_inputs(const std::vector<std::string>& inputs,
                                               bool all_runs) {
  std::vector<std::string> expanded;
  for (const std::string& input : inputs) {
    auto found = find_inputs(input, all_runs ? WhichRuns::kAll : WhichRuns::kNewest);
    if (!found) return found.error();
    for (const auto& path : found.value()) {
      // Absolute, but with the names the user knows: links are not resolved.
      std::error_code error;
      std::string name = std::filesystem::absolute(path, error).lexically_normal().string();
      if (std::find(expanded.begin(), expanded.end(), name) == expanded.end()) {
        expanded.push_back(std::move(name));
      }
    }
  }
  return expanded;
}

}  // namespace memscope::cli
