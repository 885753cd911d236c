// The options of a command as --help shows them, in 80 columns: every command looks the same.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memscope::cli {

// A headed block for each group, in the order the options were added; hidden ones left out.
std::string option_help(const CLI::App& app);

// Fills what is bound to `app` from a verb's words. Set where the verb is over with that exit
// status: a word is wrong, which was said in a line, or `help` was asked for, which is on stdout.
std::optional<int> parse_or_help(CLI::App& app, std::string_view verb,
                                 const std::vector<std::string>& words, const bool& help,
                                 std::string (*help_text)());

}  // namespace memscope::cli
