// The options of a command as --help shows them, in 80 columns: every command looks the same.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace memscope::cli {

// A headed block for each group, in the order the options were added; hidden ones left out.
std::string option_help(const CLI::App& app);

}  // namespace memscope::cli
