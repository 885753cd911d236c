// msmemscope: a verb, or a program to run under the agent.
#include <array>
#include <csignal>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace memscope::cli {
namespace {

struct Verb {
  std::string_view name;
  int (*command)(const std::vector<std::string>&);
};
constexpr std::array<Verb, 9> kVerbs = {{{"analyze", analyze_command},
                                         {"info", info_command},
                                         {"compare", compare_command},
                                         {"view", view_command},
                                         {"report", report_command},
                                         {"convert", convert_command},
                                         {"offline-fold", offline_fold_command},
                                         {"offline-inefficient", offline_inefficient_command},
                                         {"offline-leaks", offline_leaks_command}}};

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

int dispatch(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) {
    if (const Verb* verb = find_verb(arguments.front())) {
      return verb->command({arguments.begin() + 1, arguments.end()});
    }
  }
  auto options = parse_launcher(arguments);
  if (!options) return fail(options.error().message);
  const LauncherOptions& given = options.value();
  if (given.help || given.version) {
    const auto written = write_to("stdout", given.help ? launcher_help() : version_text());
    return written ? 0 : fail(written.error().message);
  }
  if (given.compare) return compare_dumps_command(given);
  if (given.program.empty()) {
    return fail("no program to run: msmemscope [options] [--] PROGRAM ARGS...; see --help");
  }
  if (!given.after_mark && find_verb(given.program.front()) != nullptr) {
    return fail(given.program.front() +
                " is a verb and comes first, without the launcher's options; to run a program of "
                "that name, put -- before it");
  }
  return run_command(given);
}

}  // namespace
}  // namespace memscope::cli

int main(int argc, char** argv) {
  try {
    return memscope::cli::dispatch({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::exception& error) {
    // Below the commands errors are values; what still comes here is memory that ran out, or a bug.
    return memscope::cli::fail(error.what());
  }
}
