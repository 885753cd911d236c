// Where native frames get their names: the options that every verb with a diagnosis shares.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/result.h"
#include "symbols/look_up.h"

namespace memscope::cli {

struct SymbolArguments {
  std::string sysroot;
  std::vector<std::string> debug_paths;
  bool debuginfod = false;
};

void describe_symbols(CLI::App& app, SymbolArguments& arguments);

// An error where a directory is none.
Result<SymbolOptions> symbol_options_of(const SymbolArguments& arguments, const std::string& verb);

}  // namespace memscope::cli
