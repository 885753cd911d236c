#include "cli/symbol_options.h"

#include <fmt/format.h>

#include <filesystem>

namespace memscope::cli {
namespace {

// Absolute and without a slash at its end: the paths recorded are put behind it.
Result<std::string> directory(const std::string& verb, std::string_view option,
                              const std::string& value) {
  std::error_code error;
  if (!std::filesystem::is_directory(value, error)) {
    return Error{fmt::format("{}: {} is \"{}\", which is no directory here", verb, option, value)};
  }
  std::string path = std::filesystem::canonical(value, error).string();
  if (error) return Error{fmt::format("{}: {} \"{}\": {}", verb, option, value, error.message())};
  return path == "/" ? std::string() : path;
}

}  // namespace

void describe_symbols(CLI::App& app, SymbolArguments& arguments) {
  constexpr const char* kSymbols = "Names of native frames";
  app.add_option("--sysroot", arguments.sysroot,
                 "the traced machine's file system, where this is another machine")
      ->group(kSymbols)
      ->type_name("DIR");
  app.add_option("--debug-path", arguments.debug_paths,
                 "a directory with debug files or the libraries themselves, found by build-id or "
                 "name; may be given again")
      ->group(kSymbols)
      ->allow_extra_args(false)
      ->type_name("DIR");
  app.add_flag("--debuginfod", arguments.debuginfod,
               "ask the servers of DEBUGINFOD_URLS for debug files")
      ->group(kSymbols);
}

Result<SymbolOptions> symbol_options_of(const SymbolArguments& arguments, const std::string& verb) {
  SymbolOptions options;
  options.debuginfod = arguments.debuginfod;
  if (!arguments.sysroot.empty()) {
    auto path = directory(verb, "--sysroot", arguments.sysroot);
    if (!path) return path.error();
    options.sysroot = std::move(path).value();
  }
  for (const std::string& given : arguments.debug_paths) {
    auto path = directory(verb, "--debug-path", given);
    if (!path) return path.error();
    options.debug_paths.push_back(std::move(path).value());
  }
  return options;
}

}  // namespace memscope::cli
