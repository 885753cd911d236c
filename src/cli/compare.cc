// `msmemscope compare BASE NEW`: what NEW holds that BASE does not.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "analysis/compare.h"
#include "analysis/diagnose_inputs.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/symbol_options.h"
#include "import/find_inputs.h"
#include "import/open_input.h"
#include "report/compare_json.h"
#include "report/compare_text.h"
#include "report/terminal.h"

namespace memscope::cli {
namespace {

constexpr size_t kRowsOnScreen = 10;

struct Arguments {
  std::vector<std::string> sides;
  bool help = false, json = false;
  std::optional<std::string> steps, device, layer, top;
  std::string target = "stdout";
  SymbolArguments symbols;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.set_help_flag();
  app.add_option("SIDE", arguments.sides)->group("");
  constexpr const char* kWhat = "What to look at";
  constexpr const char* kHow = "How to say it";
  app.add_option("--steps", arguments.steps,
                 "only blocks born in the steps A to B, both included, that are held when B ends")
      ->group(kWhat)
      ->type_name("A:B");
  app.add_option("--device", arguments.device, "one device: cpu, cuda:0, npu:3")
      ->group(kWhat)
      ->type_name("DEVICE");
  app.add_option("--layer", arguments.layer,
                 "driver, pool, tensor, workspace, host, pinned, python. Default: on each device "
                 "the innermost ones, which the others contain")
      ->group(kWhat)
      ->type_name("LAYER");
  describe_symbols(app, arguments.symbols);
  app.add_flag("--json", arguments.json, "one JSON object, see docs/compare.schema.json")
      ->group(kHow);
  app.add_option("--top", arguments.top,
                 "the N rows of each table that changed most, and the sum of the rest. Default 10, "
                 "with --json all")
      ->group(kHow)
      ->type_name("N");
  app.add_option("--report-to", arguments.target, "stdout, stderr, none, or a FILE. Default stdout")
      ->group(kHow)
      ->type_name("TARGET");
  app.add_flag("-h,--help", arguments.help, "this text")->group(kHow);
}

std::string help_text() {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  return "Tells two runs, ranks, files or steps apart: what NEW holds that BASE does not,\n"
         "by line, by owner and by operator.\n"
         "\n"
         "Usage\n"
         "  msmemscope compare BASE NEW [options]\n"
         "\n"
         "BASE and NEW are inputs as analyze takes them, looked at when they end, or with\n"
         "@step=K behind the path when step K ends; @rank=N takes one rank of a run.\n"
         "Several processes are summed up. Inputs are never changed.\n" +
         option_help(app) +
         "\n"
         "Exit status\n"
         "  0 fine, 2 wrong use or unreadable input\n"
         "\n"
         "Examples\n"
         "  msmemscope compare results/run-good results/run-bad\n"
         "  msmemscope compare results@step=3 results@step=30\n"
         "  msmemscope compare results@rank=0 results@rank=1\n"
         "  msmemscope compare good.csv bad.csv --json\n";
}

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "A:B", two steps in order.
std::optional<std::pair<uint32_t, uint32_t>> step_range(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const uint32_t first = whole_number(text.substr(0, colon)).value_or(0);
  const uint32_t last = whole_number(text.substr(colon + 1)).value_or(0);
  if (first == 0 || first > last) return std::nullopt;
  return std::pair{first, last};
}

Error refuse(std::string_view option, std::string_view value, std::string_view allowed) {
  return Error{fmt::format("compare: {} is \"{}\"; allowed: {}", option, value, allowed)};
}

// One of the two: a path and what is meant of it.
struct Side {
  std::string given, path;
  std::optional<uint32_t> step, rank;
};

Result<Side> parse_side(const std::string& given) {
  Side side{.given = given, .path = given};
  std::error_code error;
  // A path may have an @ of its own.
  while (!std::filesystem::exists(side.path, error)) {
    const size_t at = side.path.rfind('@');
    if (at == std::string::npos) break;
    const std::string what = side.path.substr(at + 1);
    const size_t equals = what.find('=');
    const std::string key = what.substr(0, equals);
    if (key != "step" && key != "rank") break;
    const auto number =
        equals == std::string::npos ? std::nullopt : whole_number(what.substr(equals + 1));
    if (!number || (key == "step" && *number == 0)) {
      return refuse(key == "step" ? "the step of " + given : "the rank of " + given, what,
                    key == "step" ? "@step=K, a whole number from 1 on" : "@rank=N");
    }
    (key == "step" ? side.step : side.rank) = *number;
    side.path.resize(at);
  }
  return side;
}

struct Request {
  Side base, now;
  HoldingsOptions holdings;
  CompareOptions compare;
  std::optional<size_t> top;
};

Result<Request> request_of(const Arguments& arguments) {
  Request request;
  if (arguments.sides.size() != 2) {
    return Error{
        fmt::format("compare: two inputs are needed, BASE and NEW, not {}; see compare --help",
                    arguments.sides.size())};
  }
  for (const size_t i : {0, 1}) {
    auto side = parse_side(arguments.sides[i]);
    if (!side) return side.error();
    (i == 0 ? request.base : request.now) = std::move(side).value();
  }
  if (arguments.steps) {
    const auto range = step_range(*arguments.steps);
    if (!range) return refuse("--steps", *arguments.steps, "A:B, two steps with 1 <= A <= B");
    request.holdings.first_step = range->first;
    request.holdings.last_step = range->second;
    if (request.base.step || request.now.step) {
      return Error{"compare: --steps and @step=K do not go together; give one of them"};
    }
  }
  if (arguments.device) {
    request.holdings.device = device_from_name(*arguments.device);
    if (!request.holdings.device) {
      return refuse("--device", *arguments.device, "cpu, cuda:N, npu:N, xpu:N");
    }
  }
  if (arguments.layer) {
    request.compare.layer = layer_from_name(*arguments.layer);
    if (!request.compare.layer) {
      return refuse("--layer", *arguments.layer,
                    "driver, pool, tensor, workspace, host, pinned, python");
    }
  }
  auto symbols = symbol_options_of(arguments.symbols, "compare");
  if (!symbols) return symbols.error();
  request.holdings.symbols = std::move(symbols).value();
  if (arguments.top) {
    const auto top = whole_number(*arguments.top);
    if (!top || *top == 0) return refuse("--top", *arguments.top, "a whole number from 1 on");
    request.top = *top;
  }
  Notes notes;
  const auto target = check_report_to(arguments.target, notes);
  if (!target) return target.error();
  return request;
}

struct Read {
  Holdings holdings;
  ComparedSide side;
  std::vector<std::string> damage;
  bool lost = false;
};

Result<Read> read_side(const Side& side, HoldingsOptions options) {
  const auto paths = find_inputs(side.path);
  if (!paths) return paths.error();
  if (side.step) options.at_step = *side.step;
  Read read;
  read.side.name = side.given;
  if (side.step) read.side.at_step = *side.step;
  if (options.last_step != 0) {
    read.side.first_step = options.first_step;
    read.side.last_step = options.last_step;
  }
  for (const std::filesystem::path& path : paths.value()) {
    auto opened = open_input(path);
    if (!opened) {
      read.damage.push_back(opened.error().message);
      read.lost = true;
      continue;
    }
    for (Input& input : opened.value()) {
      const InputInfo info = input.info();
      if (side.rank && (!info.process || info.process->rank != *side.rank)) continue;
      auto held = input.visit([&](auto& source) { return holdings_of(source, options); });
      if (!held) return Error{fmt::format("{}: {}", path.string(), held.error().message)};
      read.holdings.add(std::move(held).value());
      read.side.inputs.push_back(input_summary(input.info()));
      read.lost = read.lost || input.lost();
      for (std::string& line : input.damage()) read.damage.push_back(std::move(line));
    }
  }
  if (!read.side.inputs.empty()) return read;
  if (!read.damage.empty()) return Error{read.damage.front()};
  return Error{fmt::format("{}: no process of rank {}", side.path, side.rank.value_or(0))};
}

int compare_and_print(const Request& request, const Arguments& arguments) {
  auto base = read_side(request.base, request.holdings);
  if (!base) return fail(base.error().message);
  auto now = read_side(request.now, request.holdings);
  if (!now) return fail(now.error().message);
  Comparison comparison = compare(base.value().holdings, now.value().holdings, request.compare);
  comparison.tool = "msmemscope " MEMSCOPE_VERSION;
  const auto take = [](ComparedSide& to, ComparedSide from) {
    from.steps_source = to.steps_source;
    from.steps = to.steps;
    to = std::move(from);
  };
  take(comparison.base, std::move(base.value().side));
  take(comparison.now, std::move(now.value().side));
  std::string text;
  if (arguments.json) {
    if (request.top) limit_rows(comparison, *request.top);
    text = comparison_json(comparison);
  } else {
    limit_rows(comparison, request.top.value_or(kRowsOnScreen), true);
    const int fd = arguments.target == "stdout"   ? STDOUT_FILENO
                   : arguments.target == "stderr" ? STDERR_FILENO
                                                  : -1;
    text = comparison_text(comparison, style_for(fd));
  }
  const auto written = write_to(arguments.target, text);
  if (!written) return fail(written.error().message);
  std::vector<std::string> damage = std::move(base.value().damage);
  damage.insert(damage.end(), now.value().damage.begin(), now.value().damage.end());
  say_damage(damage);
  return base.value().lost || now.value().lost ? 2 : 0;
}

}  // namespace

int compare_command(const std::vector<std::string>& words) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  if (const auto over = parse_or_help(app, "compare", words, arguments.help, help_text))
    return *over;
  const auto request = request_of(arguments);
  if (!request) return fail(request.error().message);
  return compare_and_print(request.value(), arguments);
}

}  // namespace memscope::cli
