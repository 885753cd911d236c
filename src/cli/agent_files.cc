#include "cli/agent_files.h"

#include <fmt/format.h>

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLibrary = "libmsmemscope_agent.so";
constexpr const char* kPackage = "msmemscope";

fs::path package_in(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / kPackage / "__init__.py", error) ? directory : fs::path();
}

}  // namespace

Result<AgentFiles> find_agent(const fs::path& executable) {
  const fs::path bin = executable.parent_path();
  std::error_code error;
  AgentFiles files;
  for (const fs::path& library : {bin.parent_path() / "lib" / kLibrary, bin / kLibrary}) {
    if (!fs::exists(library, error)) continue;
    files.library = library;
    break;
  }
  if (files.library.empty()) {
    return Error{fmt::format("the agent {} is neither in {} nor in {}: install the package again",
                             kLibrary, (bin.parent_path() / "lib").string(), bin.string())};
  }
  if (files.library.parent_path() == bin) files.build = bin;
  // ld.so(8): LD_PRELOAD is split at blanks and colons, and there is no escaping.
  if (files.library.string().find_first_of(" :") != std::string::npos) {
    return Error{
        fmt::format("the agent lies at {}, and LD_PRELOAD can hold no path with a blank or "
                    "a colon: move the installation",
                    files.library.string())};
  }
  for (const fs::path& place : {bin.parent_path().parent_path(), bin.parent_path() / "python"}) {
    files.python_path = package_in(place);
    if (!files.python_path.empty()) break;
  }
  return files;
}

Result<AgentFiles> find_agent() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return Error{fmt::format("cannot read /proc/self/exe: {}", error.message())};
  return find_agent(self);
}

}  // namespace memscope::cli
