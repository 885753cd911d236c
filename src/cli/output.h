// Where a result goes: stdout, stderr, nowhere, or a file that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace memscope::cli {

// All of `text`, whatever the descriptor does with partial writes.
Result<void> write_all(int fd, std::string_view text);

// Writes a file beside `path` and renames it: mode 0600, never half of it, and what was there
// before stays until then. A link stays and what it leads to is replaced; a device or a pipe is
// written to; a file that could be an input (a trace, a dump, a snapshot) is an error.
Result<void> write_file(const std::string& path, std::string_view text);

// `target`: "stdout", "stderr", "none" or a file's path, as --report-to takes it.
Result<void> write_to(const std::string& target, std::string_view text);

// One line on stderr, as it is. That nobody reads it any more is no matter.
void raw_line(std::string_view line);

// With the tool's name before it, and control characters made harmless.
void say(std::string_view line);

// What could not be read of an input: the first, and how many more. Nothing where there is none.
void say_damage(const std::vector<std::string>& damage);

// As say(), for what ends the command: returns the exit status for wrong use, 2.
int fail(std::string_view line);

}  // namespace memscope::cli
