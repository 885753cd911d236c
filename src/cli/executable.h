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

// Why the agent cannot be preloaded into `program`: "is statically linked" (trace/program_kind.h).
// Follows `#!` lines. Nothing where it can, or where the file cannot be judged. Reads the file,
// never runs it.
std::optional<std::string> why_not_traceable(const std::filesystem::path& program);
// Whether it would complain, or not run, with the agent in its LD_PRELOAD.
bool preload_would_harm(const std::filesystem::path& program);

}  // namespace memscope::cli
