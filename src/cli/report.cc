// `msmemscope report INPUT... -o FILE.html`: the viewer's page with its answers in it, as one file.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "cli/commands.h"
#include "cli/diagnose_inputs.h"
#include "cli/executable.h"
#include "cli/help.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/symbol_options.h"
#include "report/format.h"
#include "report/json.h"
#include "report/page.h"
#include "view/http_gate.h"
#include "view/text.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> inputs;
  std::optional<std::string> output, redact, size;
  SymbolArguments symbols;
  bool help = false, all_runs = false, no_cache = false, quiet = false;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.set_help_flag();
  app.add_option("INPUT", arguments.inputs)->group("");
  constexpr const char* kWhat = "What to report";
  constexpr const char* kHow = "Where, and how";
  app.add_option("--redact", arguments.redact,
                 "what to leave out: paths (names of files stay), arguments (of the command line), "
                 "host, source (lines and statements), all")
      ->group(kWhat)
      ->type_name("LIST");
  app.add_flag("--all-runs", arguments.all_runs,
               "all runs of a directory of runs, not just the newest")
      ->group(kWhat);
  app.add_option("-o,--output", arguments.output, "the page: FILE.html")
      ->group(kHow)
      ->type_name("FILE");
  app.add_option("--max-size", arguments.size, "the most it may be: 1M to 100M. Default 10M")
      ->group(kHow)
      ->type_name("SIZE");
  app.add_flag("--no-cache", arguments.no_cache, "keep no index in the cache directory")
      ->group(kHow);
  app.add_flag("-q,--quiet", arguments.quiet, "do not name the file written")->group(kHow);
  app.add_flag("-h,--help", arguments.help, "this text")->group(kHow);
  describe_symbols(app, arguments.symbols);
}

std::string help_text() {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  return "Writes one page to send to a colleague: the verdicts and the viewer's views on\n"
         "reduced data. It opens in any browser, without this tool and without a network.\n"
         "\n"
         "Usage\n"
         "  msmemscope report INPUT... -o FILE.html [options]\n"
         "\n"
         "INPUT is a run's directory (of a directory of runs the newest run is taken), the\n"
         "trace of one process, or a csv or db. Inputs are never changed.\n" +
         option_help(app) +
         "\n"
         "The page holds names of functions and owners, and lines of the program's own\n"
         "source: see --redact. What had no room in it the page says itself.\n"
         "\n"
         "Examples\n"
         "  msmemscope report memscopeDumpResults -o leak.html\n"
         "  msmemscope report run-7 -o leak.html --redact paths,arguments,host\n"
         "\n"
         "Exit status\n"
         "  0 fine, 2 wrong use or unreadable input\n";
}

Result<size_t> size_of(const std::string& text) {
  // Units as people write them for mail: 10M is ten million.
  std::string_view digits = text;
  size_t unit = 1;
  if (!digits.empty() && (digits.back() == 'M' || digits.back() == 'm')) {
    unit = 1'000'000;
    digits.remove_suffix(1);
  }
  const auto number = view::number_from_text(digits);
  constexpr size_t kMillion = 1'000'000;
  const size_t bytes =
      number && *number > 0 && *number <= 100'000'000 ? static_cast<size_t>(*number) * unit : 0;
  if (digits.empty() || bytes < kMillion || bytes > 100 * kMillion) {
    return Error{fmt::format("report: --max-size is \"{}\"; allowed: 1M to 100M", text)};
  }
  return bytes;
}

// The page as it was built, without answers.
Result<std::string> page_template() {
  const fs::path web = view::find_web(own_executable());
  constexpr uintmax_t kMost = 8 << 20;
  std::error_code error;
  const fs::path file = web / "report.html";
  if (web.empty() || !fs::is_regular_file(file, error) || fs::file_size(file, error) > kMost) {
    return Error{
        "report: the viewer's page is not part of this installation; build it (make web), or "
        "set MSMEMSCOPE_WEB_DIR to a directory with its report.html"};
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) return Error{"report: " + file.string() + " cannot be read"};
  return text;
}

// Reads the inputs; shows how far it is.
std::shared_ptr<const view::ViewState> read_inputs(view::Session& session, Progress& progress) {
  session.start();
  for (;;) {
    const view::Session::Status status = session.status();
    if (status.state == "failed" ||
        (status.state == "ready" && status.diagnosis != "running" && status.names != "running")) {
      break;
    }
    progress.share("reading", std::max(status.progress, 0.0));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  auto state = session.state();
  session.stop();
  return state;
}

void tell(const Page& page, const std::string& file) {
  std::string missing;
  for (const auto& entry : page.left_out) {
    missing +=
        fmt::format("{}{} of {} {}", missing.empty() ? "; reduced: " : ", ",
                    format_count(entry["kept"].get<int64_t>()),
                    format_count(entry["all"].get<int64_t>()), entry["what"].get<std::string>());
  }
  say(fmt::format("wrote {} ({}{})", file, format_bytes(static_cast<int64_t>(page.text.size())),
                  missing));
}

int write_report(const Arguments& arguments, std::vector<std::string> inputs,
                 const SymbolOptions& symbols, PageRequest request) {
  std::atomic<bool> lost = false;
  view::Session session(
      {.paths = std::move(inputs),
       .cache = arguments.no_cache ? view::IndexCache({}) : view::IndexCache::at_home(),
       .diagnose = [&](const std::vector<std::string>& paths) -> Result<std::string> {
         auto found = diagnose_inputs({.inputs = paths, .symbols = symbols});
         if (!found) return found.error();
         if (found.value().lost) lost = true;
         return diagnosis_json(found.value().diagnosis);
       },
       .symbols = symbols});
  Progress progress;
  request.state = read_inputs(session, progress);
  if (request.state == nullptr) {
    progress.clear();
    return fail(session.status().error);
  }
  request.progress = [&progress](double share) { progress.share("drawing", share); };
  auto page = make_page(request);
  progress.clear();
  if (!page) return fail("report: " + page.error().message);
  const auto written = write_file(*arguments.output, page.value().text);
  if (!written) return fail(written.error().message);
  if (!arguments.quiet) tell(page.value(), *arguments.output);
  std::vector<std::string> damage;
  for (const auto& input : request.state->inputs) {
    damage.insert(damage.end(), input->damage.begin(), input->damage.end());
    // A diagnosis that was kept from before does not say it again.
    if (input->facts.kind == "trace" && !input->damage.empty()) lost = true;
  }
  say_damage(damage);
  return lost ? 2 : 0;
}

}  // namespace

int report_command(const std::vector<std::string>& words) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  if (const auto over = parse_or_help(app, "report", words, arguments.help, help_text))
    return *over;
  if (arguments.inputs.empty()) {
    return fail(
        "report: no input; give a run's directory, a trace, a csv or a db, see report --help");
  }
  if (!arguments.output || arguments.output->empty()) {
    return fail("report: say where to write: -o FILE.html");
  }
  PageRequest request;
  if (arguments.redact) {
    auto what = Redaction::from_text(*arguments.redact);
    if (!what) return fail("report: --redact is " + what.error().message);
    request.redact = what.value();
  }
  if (arguments.size) {
    auto size = size_of(*arguments.size);
    if (!size) return fail(size.error().message);
    request.most = size.value();
  }
  auto symbols = symbol_options_of(arguments.symbols, "report");
  if (!symbols) return fail(symbols.error().message);
  auto page = page_template();
  if (!page) return fail(page.error().message);
  request.page = page.value();
  auto inputs = expand_inputs(arguments.inputs, arguments.all_runs);
  if (!inputs) return fail(inputs.error().message);
  return write_report(arguments, std::move(inputs).value(), symbols.value(), std::move(request));
}

}  // namespace memscope::cli
