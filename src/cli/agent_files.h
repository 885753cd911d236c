// Where the agent and the Python package lie, seen from the command's own file:
//
//   <site>/msmemscope/bin/msmemscope              installed: the command
//   <site>/msmemscope/lib/libmsmemscope_agent.so             the agent
//   <site>/msmemscope/__init__.py                            the package, imported from <site>
//   <build>/msmemscope, <build>/libmsmemscope_agent.so, <build>/../python/msmemscope/   in a
//   checkout
#pragma once

#include <filesystem>

#include "core/result.h"

namespace memscope::cli {

struct AgentFiles {
  std::filesystem::path library;
  std::filesystem::path python_path;  // the directory that contains the package; "" if none
  std::filesystem::path build;        // in a checkout: the build directory
};

Result<AgentFiles> find_agent(const std::filesystem::path& executable);
Result<AgentFiles> find_agent();  // for /proc/self/exe

}  // namespace memscope::cli
