// `msmemscope view INPUT...`: the viewer, on loopback, until Ctrl-C.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "cli/commands.h"
#include "cli/diagnose_inputs.h"
#include "cli/executable.h"
#include "cli/help.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/symbol_options.h"
#include "report/json.h"
#include "view/http_gate.h"
#include "view/server.h"

namespace memscope::cli {
namespace {

struct Arguments {
  std::vector<std::string> inputs;
  std::optional<std::string> port;
  SymbolArguments symbols;
  bool help = false, all_runs = false, no_browser = false, no_cache = false;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.set_help_flag();
  app.add_option("INPUT", arguments.inputs)->group("");
  constexpr const char* kWhat = "What to look at";
  constexpr const char* kHow = "How to show it";
  app.add_flag("--all-runs", arguments.all_runs,
               "all runs of a directory of runs, not just the newest")
      ->group(kWhat);
  app.add_option("--port", arguments.port, "the port on 127.0.0.1; any free one by default")
      ->group(kHow)
      ->type_name("N");
  app.add_flag("--no-browser", arguments.no_browser, "only print the address, open no browser")
      ->group(kHow);
  app.add_flag("--no-cache", arguments.no_cache, "keep no index in the cache directory")
      ->group(kHow);
  app.add_flag("-h,--help", arguments.help, "this text")->group(kHow);
  describe_symbols(app, arguments.symbols);
}

std::string help_text() {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  return "Opens the viewer in a browser: what grows, when, and which line is to blame.\n"
         "\n"
         "Usage\n"
         "  msmemscope view INPUT... [options]\n"
         "\n"
         "INPUT is a run's directory (of a directory of runs the newest run is taken) or\n"
         "the trace of one process; a run that is still being written is followed. Inputs\n"
         "are never changed; indices are kept in $XDG_CACHE_HOME/msmemscope/view.\n" +
         option_help(app) +
         "\n"
         "The page is served on this machine only, under an address with a secret in it,\n"
         "which is printed. From another machine: ssh -L N:127.0.0.1:N, with --port N.\n"
         "Ctrl-C ends it.\n"
         "\n"
         "Examples\n"
         "  msmemscope view memscopeDumpResults\n"
         "  msmemscope view run-7 --port 8765 --no-browser\n";
}

Result<uint16_t> port_of(const std::string& text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Error{fmt::format("view: --port is \"{}\"; allowed: 0 to 65535", text)};
  }
  return port;
}

void open_browser(const std::string& url) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if (!set("DISPLAY") && !set("WAYLAND_DISPLAY")) return;
  const auto program = find_program("xdg-open");
  if (!program) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  // A child of its own group: Ctrl-C is for us alone.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string name = program->string(), argument = url;
  char* words[] = {name.data(), argument.data(), nullptr};
  pid_t pid = 0;
  posix_spawn(&pid, program->c_str(), &actions, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

Result<std::string> diagnose(const std::vector<std::string>& paths, const SymbolOptions& symbols) {
  auto found = diagnose_inputs({.inputs = paths, .symbols = symbols});
  if (!found) return found.error();
  return diagnosis_json(found.value().diagnosis);
}

// Until a signal, or until nothing can be shown.
int serve(const view::Session& session, const sigset_t& signals) {
  constexpr timespec kLook{0, 200'000'000};
  for (;;) {
    if (sigtimedwait(&signals, nullptr, &kLook) > 0) return 0;
    const view::Session::Status status = session.status();
    if (status.state == "failed") return fail(status.error);
  }
}

}  // namespace

int view_command(const std::vector<std::string>& words) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  if (const auto over = parse_or_help(app, "view", words, arguments.help, help_text)) return *over;
  if (arguments.inputs.empty()) {
    return fail("view: no input; give a run's directory or a trace, see view --help");
  }
  view::ServerOptions options{.web = view::find_web(own_executable())};
  if (arguments.port) {
    auto port = port_of(*arguments.port);
    if (!port) return fail(port.error().message);
    options.port = port.value();
  }
  auto symbols = symbol_options_of(arguments.symbols, "view");
  if (!symbols) return fail(symbols.error().message);
  auto inputs = expand_inputs(arguments.inputs, arguments.all_runs);
  if (!inputs) return fail(inputs.error().message);

  // Taken by sigtimedwait, in this thread: blocked in all that are started from here on.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  view::Session session(
      {.paths = std::move(inputs).value(),
       .cache = arguments.no_cache ? view::IndexCache({}) : view::IndexCache::at_home(),
       .diagnose =
           [&symbols](const std::vector<std::string>& paths) {
             return diagnose(paths, symbols.value());
           },
       .symbols = symbols.value()});
  const view::Api api(session);
  auto server = view::Server::start(api, options);
  if (!server) return fail("view: " + server.error().message);
  session.start();
  const std::string url = server.value()->url();
  if (const auto written = write_to("stdout", url + "\n"); !written) {
    return fail(written.error().message);
  }
  if (!arguments.no_browser) open_browser(url);
  const int status = serve(session, signals);
  server.value()->stop();
  session.stop();
  return status;
}

}  // namespace memscope::cli
