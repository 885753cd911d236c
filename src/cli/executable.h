// What kind of program a name stands for: whether the agent can be loaded into it at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace memscope::cli {

// This command's own file; "" where it cannot be told.
std::filesystem::path own_executable();

// The file execvp would run for `name`, or nothing.
std::optional<std::filesystem::path> find_program(const std::string& name);

// Why the agent cannot be preloaded into `program`: "is statically linked", "runs with other
// rights than the user's", "is no 64-bit program of this machine". Follows `#!` lines. Nothing
// where it can, or where the file cannot be judged. Reads the file, never runs it.
std::optional<std::string> why_not_traceable(const std::filesystem::path& program);

}  // namespace memscope::cli
