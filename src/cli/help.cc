#include "cli/help.h"

#include <fmt/format.h>

#include <CLI/Error.hpp>
#include <algorithm>

#include "cli/output.h"
#include "report/text.h"

namespace memscope::cli {
namespace {

constexpr size_t kNameColumns = 27;
constexpr size_t kWidth = 80;

// "-o, --output-path DIR"
std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ", ";
  for (const std::string& name : option.get_lnames()) names += "--" + name + ", ";
  names.resize(names.size() - 2);
  if (option.get_items_expected_max() > 0) names += " " + option.get_type_name();
  return names;
}

}  // namespace

std::string option_help(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (!group.empty() && std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
  std::string out;
  for (const std::string& group : groups) {
    out += "\n" + group + "\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group || option->nonpositional() == false) continue;
      std::string head = "  " + names_of(*option);
      if (head.size() + 1 > kNameColumns) {
        out += head + "\n";
        head.clear();
      }
      for (const std::string& line : wrap(option->get_description(), kWidth - kNameColumns)) {
        head.resize(kNameColumns, ' ');
        out += head + line + "\n";
        head.clear();
      }
    }
  }
  return out;
}

std::optional<int> parse_or_help(CLI::App& app, std::string_view verb,
                                 const std::vector<std::string>& words, const bool& help,
                                 std::string (*help_text)()) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{}: {}; see {} --help", verb, error.what(), verb));
  }
  if (!help) return std::nullopt;
  const auto written = write_to("stdout", help_text());
  return written ? 0 : fail(written.error().message);
}

}  // namespace memscope::cli
