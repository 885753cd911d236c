// `msmemscope info INPUT`: what is in an input, how complete it is, and what is missing and why.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/inputs.h"
#include "cli/memory_parts.h"
#include "cli/output.h"
#include "cli/trace_summary.h"
#include "report/format.h"
#include "report/paint.h"
#include "report/text.h"
#include "trace/records.h"

namespace memscope::cli {
namespace {

struct Arguments {
  std::vector<std::string> inputs;
  bool help = false, json = false, all_runs = false;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.set_help_flag();
  app.add_option("INPUT", arguments.inputs)->group("");
  app.add_flag("--all-runs", arguments.all_runs,
               "all runs of a directory of runs, not just the newest")
      ->group("Options");
  app.add_flag("--json", arguments.json, "one JSON object")->group("Options");
  app.add_flag("-h,--help", arguments.help, "this text")->group("Options");
}

std::string help_text() {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  return "Says what is in a run, a trace, a csv, a db or a snapshot: who was traced, how\n"
         "it ended, what was dropped, what was switched off and why, where the files lie,\n"
         "which child processes were not traced.\n"
         "\n"
         "Usage\n"
         "  msmemscope info INPUT... [options]\n" +
         option_help(app) +
         "\n"
         "Exit status\n"
         "  0 fine, 2 wrong use or unreadable input\n";
}

// Rows "  label      text", wrapped and hung under the text.
class Rows {
 public:
  explicit Rows(const TerminalStyle& style) : style_(style), paint_(style) {}

  void head(std::string_view text) {
    out_ += paint_.strong(cut_end(printable(text), style_.width, paint_.ellipsis())) + "\n";
  }
  void row(std::string_view label, std::string_view text, bool warn = false) {
    for (const std::string& line : wrap(printable(text), style_.width - kLabel)) {
      std::string name = "  " + std::string(label);
      name.resize(kLabel, ' ');
      out_ += paint_.label(name) + (warn ? paint_.warning(line) : line) + "\n";
      label = "";
    }
  }
  std::string take() { return std::move(out_); }
  std::string_view dot() const { return paint_.dot(); }

 private:
  static constexpr size_t kLabel = 13;
  const TerminalStyle& style_;
  Paint paint_;
  std::string out_;
};

constexpr size_t kListed = 10;  // notices, children, damage: lines of each

std::string ended_text(const std::string& ended) {
  if (ended == "stop") return "stopped recording";
  if (ended == "exit") return "ended cleanly";
  if (ended == "killed") return "was killed";
  if (ended == "running") return "is still running";
  return "ended in an unknown way";
}

// "poolAlloc" as "pool alloc".
std::string words(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital) text += ' ';
    text += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

void add_completeness(const TraceSummary& s, Rows& rows) {
  if (s.complete()) {
    rows.row("complete", s.pools.empty() ? "yes: no event dropped, none before the hooks came"
                                         : "yes: the history goes back to the first block");
  } else {
    std::vector<std::string> why;
    if (s.info.dropped_events() != 0) {
      std::string kinds;
      for (const auto& [kind, drop] : s.info.dropped) {
        kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ",
                             format_count(static_cast<int64_t>(drop.count)),
                             kind == 0 ? "of unknown kind" : record_name(kind));
      }
      why.push_back(fmt::format(
          "{} dropped ({})", format_plural(static_cast<int64_t>(s.info.dropped_events()), "event"),
          kinds));
    }
    uint64_t older = 0, entries = 0;
    for (const TraceSummary::Pool& pool : s.pools) {
      older += pool.older;
      entries += pool.entries;
    }
    if (!s.pools.empty() && entries == 0) why.emplace_back("no history was recorded");
    if (older != 0) {
      why.push_back(format_plural(static_cast<int64_t>(older), "block") +
                    " older than the history");
    } else if (s.info.preexisting != 0) {
      why.push_back(format_plural(static_cast<int64_t>(s.info.preexisting), "block") +
                    " older than the hooks");
    }
    if (!s.info.gaps.empty()) {
      why.push_back(format_plural(static_cast<int64_t>(s.info.gaps.size()), "gap"));
    }
    if (!s.damage.empty()) why.emplace_back("damage");
    rows.row("complete", fmt::format("no: {}", fmt::join(why, ", ")), true);
  }
  for (const auto& gap : s.info.gaps) {
    rows.row("gap", format_duration(gap.to_ns > gap.from_ns ? gap.to_ns - gap.from_ns : 0) + ": " +
                        gap.reason);
  }
}

// What there are curves and live blocks of, but no events any more.
void add_folded(const TraceInfo::Folded& folded, Rows& rows) {
  if (folded.folds == 0) return;
  const std::string steps =
      folded.steps == 0
          ? ""
          : fmt::format("steps 1 to {}, ", format_count(static_cast<int64_t>(folded.steps)));
  rows.row("folded",
           fmt::format("{}the first {}: {} are kept as curves and live blocks (disk budget)", steps,
                       format_duration(folded.to_ns - folded.from_ns),
                       format_plural(static_cast<int64_t>(folded.events), "event")));
}

std::string file_text(const TraceSummary::File& file) {
  return file.path.empty()
             ? "none"
             : fmt::format("{} ({})", file.path, format_bytes(static_cast<int64_t>(file.bytes)));
}

// "34 segments, 486.0 MiB reserved; 645 blocks, 397.1 MiB allocated (389.5 MiB requested); ..."
std::string pool_text(const TraceSummary::Pool& pool) {
  const auto bytes = [](uint64_t number) { return format_bytes(static_cast<int64_t>(number)); };
  const auto plural = [](uint64_t number, std::string_view word) {
    return format_plural(static_cast<int64_t>(number), word);
  };
  std::string text =
      fmt::format("{}, {} reserved; {}, {} allocated ({} requested)",
                  plural(pool.segments, "segment"), bytes(pool.reserved),
                  plural(pool.blocks, "block"), bytes(pool.allocated), bytes(pool.requested));
  if (pool.active != pool.allocated) {
    text += fmt::format(", {} freed but in use on another stream",
                        bytes(pool.active - std::min(pool.active, pool.allocated)));
  }
  if (pool.workspace != 0) text += fmt::format("; workspaces {}", bytes(pool.workspace));
  if (pool.entries == 0) return text + "; no history was recorded";
  text += fmt::format("; history of {} {}", format_count(static_cast<int64_t>(pool.entries)),
                      pool.entries == 1 ? "entry" : "entries");
  if (pool.older != 0) text += fmt::format(", {} older than it", plural(pool.older, "block"));
  return text;
}

std::string text_of(const TraceSummary& s, const TerminalStyle& style) {
  Rows rows(style);
  std::string head = s.path;
  if (s.info.process) {
    const ProcessInfo& p = *s.info.process;
    const bool named = !p.argv0.empty() || !p.command.empty();
    head = named ? program_name(p.argv0, p.command)
                 : std::filesystem::path(s.path).filename().string();
    head += fmt::format("{}pid {}", rows.dot(), p.pid);
    if (!p.host.empty()) head += " on " + p.host;
    if (p.rank) head += fmt::format("{}rank {}", rows.dot(), *p.rank);
  }
  rows.head(fmt::format("{}{}{}", head, rows.dot(), ended_text(s.info.ended)));
  if (s.info.process && !s.info.process->command.empty()) {
    rows.row("command", s.info.process->command);
  }
  if (s.info.process && s.kind == "trace") {
    rows.row("versions",
             fmt::format("agent {}, Python {}", s.info.process->agent,
                         s.info.process->python.empty() ? "none" : s.info.process->python));
    if (!s.info.process->parent_trace.empty()) {
      rows.row("parent", s.info.process->parent_trace);
    }
  }
  rows.row(s.kind, file_text(s.trace));
  if (s.kind == "trace") {
    rows.row("slab", s.slab.path.empty() && (s.info.ended == "exit" || s.info.ended == "stop")
                         ? "removed at the clean end"
                         : file_text(s.slab));
  }
  if (s.rows) {
    const auto count = [](uint64_t number) { return format_count(static_cast<int64_t>(number)); };
    rows.row("rows",
             fmt::format("{} used, {} that say nothing about memory, {} that cannot be used",
                         count(s.rows->used), count(s.rows->unused), count(s.rows->bad)),
             s.rows->bad != 0);
  }
  for (const TraceSummary::Pool& pool : s.pools) {
    rows.row(pool.device, pool_text(pool));
    if (!pool.model.empty()) rows.row("simulator", pool.model);
  }
  std::string counts;
  for (const auto& [name, count] : s.events) {
    counts +=
        (counts.empty() ? "" : ", ") + format_plural(static_cast<int64_t>(count), words(name));
  }
  rows.row("recorded", fmt::format("{} in {}", counts.empty() ? "nothing" : counts,
                                   format_duration(s.last_ns - s.first_ns)));
  add_folded(s.info.folded, rows);
  if (s.kind == "trace") {
    if (const auto parts = read_memory_parts(s.path)) {
      rows.row("memory", memory_parts_line(*parts));
    }
  }
  if (const auto found = s.info.configs.find(std::string(kHostSampleKey));
      found != s.info.configs.end() && host_sampling(found->second).on()) {
    const auto every = static_cast<int64_t>(host_sampling(found->second).rate);
    rows.row("host", fmt::format("sampled, every {}: what is said of it is scaled up",
                                 format_bytes(every)));
  }
  add_completeness(s, rows);
  std::string settings;
  for (const auto& [key, value] : s.info.configs) {
    if (!value.empty())
      settings += fmt::format("{}{}={}", settings.empty() ? "" : ", ", key, value);
  }
  if (!settings.empty()) rows.row("settings", settings);
  for (size_t i = 0; i < std::min(s.info.notices.size(), kListed); ++i) {
    rows.row("off", s.info.notices[i].what + ": " + s.info.notices[i].why, true);
  }
  for (size_t i = 0; i < std::min(s.info.children.size(), kListed); ++i) {
    const auto& child = s.info.children[i];
    // posix_spawn() tells us of a program before it has a pid.
    const std::string who =
        child.pid == 0 ? child.how : fmt::format("pid {} ({})", child.pid, child.how);
    rows.row("child", who + ": " + (child.traced.empty() ? "not traced" : child.traced));
  }
  if (s.info.children.size() > kListed) {
    rows.row("", fmt::format("and {} more", s.info.children.size() - kListed));
  }
  for (size_t i = 0; i < std::min(s.damage.size(), kListed); ++i) {
    rows.row("damage", s.damage[i], true);
  }
  return rows.take();
}

}  // namespace

int info_command(const std::vector<std::string>& words) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  if (const auto over = parse_or_help(app, "info", words, arguments.help, help_text)) return *over;
  if (arguments.inputs.empty()) {
    return fail(
        "info: no input; give a run's directory, a trace, a csv, a db or a snapshot, see info "
        "--help");
  }
  auto paths = expand_inputs(arguments.inputs, arguments.all_runs);
  if (!paths) return fail(paths.error().message);

  const TerminalStyle style = style_for(STDOUT_FILENO);
  std::vector<TraceSummary> summaries;
  for (const std::string& path : paths.value()) {
    auto found = summarize_input(path);
    if (!found) return fail(found.error().message);
    for (TraceSummary& summary : found.value()) summaries.push_back(std::move(summary));
  }
  std::string text;
  if (arguments.json) {
    text = summaries_json(summaries);
  } else {
    for (const TraceSummary& summary : summaries) {
      if (!text.empty()) text += "\n";
      text += text_of(summary, style);
    }
  }
  const auto written = write_to("stdout", text);
  return written ? 0 : fail(written.error().message);
}

}  // namespace memscope::cli
