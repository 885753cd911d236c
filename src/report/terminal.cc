#include "report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "report/format.h"
#include "report/paint.h"
#include "report/text.h"
#include "report/verdict_text.h"

namespace memscope {
namespace {

constexpr size_t kMemoryRows = 8;
constexpr size_t kSuspects = 3;
constexpr size_t kGaps = 3;
constexpr double kSure = 0.5;  // the contract: weaker ones are suspects

std::string base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string steps_text(const StepSummary& steps) {
  if (steps.source == "time") return format_plural(steps.count, "time window");
  if (steps.source == "none" || steps.count == 0) return "no steps";
  return format_plural(steps.count, "step");
}

std::string input_name(const InputSummary& input) {
  std::string name;
  if (input.process) name = program_name(input.process->argv0, input.process->command);
  if (name.empty()) name = base_name(input.path);
  return printable(name);
}

// "8 processes", or "3 inputs" where some are other people's files.
std::string inputs_text(const std::vector<InputSummary>& inputs) {
  const bool processes = std::all_of(inputs.begin(), inputs.end(),
                                     [](const InputSummary& i) { return i.process.has_value(); });
  return std::to_string(inputs.size()) + (processes ? " processes" : " inputs");
}

// What the input is called in a row: its rank, else its place in the list.
std::string row_name(const Diagnosis& d, int64_t input) {
  const auto index = static_cast<size_t>(input);
  if (index < d.inputs.size() && d.inputs[index].process && d.inputs[index].process->rank) {
    return "rank " + std::to_string(*d.inputs[index].process->rank);
  }
  return "#" + std::to_string(input);
}

void add_header(const Diagnosis& d, const TerminalStyle& style, std::string& out) {
  const Paint paint(style);
  const std::string dot = std::string(" ") + std::string(paint.dot()) + " ";
  std::string rest;
  if (!d.inputs.empty()) rest = input_name(d.inputs.front());
  if (d.inputs.size() > 1) {
    rest += dot + inputs_text(d.inputs);
  }
  rest += dot + steps_text(d.steps);
  if (!d.devices.empty()) {
    std::string devices;
    const size_t shown = std::min<size_t>(d.devices.size(), 4);
    for (size_t i = 0; i < shown; ++i) devices += (i == 0 ? "" : ", ") + d.devices[i];
    if (d.devices.size() > shown) devices += ", " + std::string(paint.ellipsis());
    rest += dot + printable(devices);
  }
  out += paint.strong("MemScope") + "  " + cut_end(rest, style.width - 10, paint.ellipsis());
  out += "\n";
}

// "Nothing else grows by more than 2.1 KiB per step." where a verdict says how little could be
// seen.
void add_else(const Diagnosis& d, std::string& out) {
  const auto sure = std::count_if(d.verdicts.begin(), d.verdicts.end(), [](const Verdict& v) {
    return v.cause != "none" && v.confidence >= kSure;
  });
  if (sure == 0 || !d.suspects.empty()) return;
  for (const Verdict& v : d.verdicts) {
    for (const auto& [key, unit] : {std::pair{"detection_limit_bytes_per_step", "step"},
                                    std::pair{"detection_limit_bytes_per_second", "second"}}) {
      const auto limit = evidence_number(v, key);
      if (!limit || !std::isfinite(*limit) || *limit <= 0) continue;
      out += "\nNothing else grows by more than " + format_bytes(*limit) + " per " + unit + ".\n";
      return;
    }
  }
  out += "\nNothing else grows.\n";
}

void add_suspects(const Diagnosis& d, const TerminalStyle& style, std::string& out) {
  const Paint paint(style);
  if (!d.suspects.empty()) out += "\n" + paint.label("Not sure enough to accuse") + "\n";
  for (size_t i = 0; i < std::min(d.suspects.size(), kSuspects); ++i) {
    out += "  " + one_line(d.suspects[i], style, style.width - 2) + "\n";
  }
  if (d.suspects.size() > kSuspects) {
    out +=
        "  " + paint.label("and " + std::to_string(d.suspects.size() - kSuspects) + " more") + "\n";
  }
  if (!d.suppressed.empty()) out += "\n" + paint.label("Declared as expected") + "\n";
  for (size_t i = 0; i < std::min(d.suppressed.size(), kSuspects); ++i) {
    out += "  " + one_line(d.suppressed[i], style, style.width - 2) + "\n";
  }
}

std::string right(std::string_view text, size_t width) {
  const size_t have = display_width(text);
  return std::string(width > have ? width - have : 0, ' ').append(text);
}

std::string left(std::string_view text, size_t width) {
  const size_t have = display_width(text);
  return std::string(text).append(width > have ? width - have : 0, ' ');
}

std::string sampled_text(const LayerSummary& layer) {
  return "sampled, every " + format_bytes(layer.sampled_every);
}

void add_memory(const Diagnosis& d, const TerminalStyle& style, std::string& out) {
  if (d.layers.empty()) return;
  const Paint paint(style);
  std::vector<const LayerSummary*> rows;
  for (const LayerSummary& layer : d.layers) rows.push_back(&layer);
  std::stable_sort(rows.begin(), rows.end(), [](const LayerSummary* a, const LayerSummary* b) {
    return a->allocated.peak > b->allocated.peak;
  });
  const size_t left_out = rows.size() > kMemoryRows ? rows.size() - kMemoryRows : 0;
  rows.resize(rows.size() - left_out);

  const bool stepped = d.steps.source != "time" && d.steps.source != "none";
  const auto row = [&](const std::string& name, const Peaks& peaks, const std::string& slope) {
    out += "  " + left(cut_end(name, 26, paint.ellipsis()), 26);
    out += right(format_bytes(peaks.start), 11) + right(format_bytes(peaks.peak), 11);
    out += right(format_bytes(peaks.end), 11) + right(slope, 15) + "\n";
  };
  out += "\n" +
         paint.label(left("memory", 28) + right("start", 11) + right("peak", 11) +
                     right("end", 11) + right(stepped ? "per step" : "per second", 15)) +
         "\n";
  for (const LayerSummary* layer : rows) {
    std::string name = layer->device + " " + layer->layer;
    if (d.inputs.size() > 1) name.insert(0, row_name(d, layer->input) + " ");
    const std::string slope =
        layer->bytes_per_step ? format_bytes_change(*layer->bytes_per_step) : "-";
    row(printable(name), layer->allocated, slope);
    if (layer->sampled_every != 0) {
      const auto error = [&](int64_t bytes) {
        return (style.unicode ? "± " : "+-") + format_bytes(bytes);
      };
      out += "  " + left("  " + sampled_text(*layer), 37) + right(error(layer->peak_error), 11) +
             right(error(layer->end_error), 11) + "\n";
    }
    if (layer->reserved) row("  reserved", *layer->reserved, "");
  }
  if (left_out != 0) {
    out += "  " + paint.label("and " + std::to_string(left_out) + " smaller") + "\n";
  }
}

// What the result stands on: where the steps come from, how complete the input is.
void add_basis(const Diagnosis& d, const TerminalStyle& style, std::string& out) {
  const Paint paint(style);
  const auto line = [&](std::string_view label, std::string_view text, bool warn) {
    bool first = true;
    for (const std::string& part : wrap(text, style.width - 8)) {
      out += paint.label(left(first ? label : "", 8)) + (warn ? paint.warning(part) : part) + "\n";
      first = false;
    }
  };
  out += "\n";
  const bool counted = d.steps.source != "time" && d.steps.source != "none";
  std::string steps = counted ? format_count(d.steps.count) : steps_text(d.steps);
  if (d.steps.source == "api") steps += " from msmemscope.step()";
  if (d.steps.source == "mstx") steps += " from mstx ranges";
  if (d.steps.source == "optimizer") steps += " from optimizer.step()";
  if (d.steps.source == "none") steps += ": call msmemscope.step() once in each round of the loop";
  if (d.steps.warmup_until && d.steps.source != "none") {
    steps += ", judged after step " + format_count(*d.steps.warmup_until);
  }
  line("steps", steps, false);

  const bool complete = std::all_of(d.inputs.begin(), d.inputs.end(),
                                    [](const InputSummary& i) { return i.complete; });
  std::string trace = complete && d.dropped_events == 0 && d.gaps.empty() ? "complete" : "";
  const auto add = [&trace, &paint](const std::string& part) {
    trace += (trace.empty() ? "" : std::string(paint.dot())) + part;
  };
  if (d.dropped_events != 0) add(format_plural(d.dropped_events, "event") + " dropped");
  if (!complete && d.dropped_events == 0) add("incomplete");
  if (d.ambiguous != 0) add(format_plural(d.ambiguous, "event") + " of uncertain order");
  const auto killed = std::count_if(d.inputs.begin(), d.inputs.end(),
                                    [](const InputSummary& i) { return i.ended == "killed"; });
  const auto running = std::count_if(d.inputs.begin(), d.inputs.end(),
                                     [](const InputSummary& i) { return i.ended == "running"; });
  if (killed != 0) {
    add(d.inputs.size() == 1 ? "the process was killed"
                             : std::to_string(killed) + " of them killed");
  }
  if (running != 0) add("still running");
  if (d.inputs.size() == 1) {
    add(printable(relative_path(d.inputs.front().path, style.working_directory)));
  } else if (!d.inputs.empty()) {
    const std::string& path = d.inputs.front().path;  // of several: the run they are in
    add(printable(relative_path(path.substr(0, path.rfind('/')), style.working_directory)));
  }
  const bool traces = std::all_of(d.inputs.begin(), d.inputs.end(),
                                  [](const InputSummary& i) { return i.kind == "trace"; });
  line(traces ? "trace" : "input", trace, !complete || d.dropped_events != 0);
  for (size_t i = 0; i < std::min(d.gaps.size(), kGaps); ++i) {
    const GapSummary& gap = d.gaps[i];
    const uint64_t span = gap.to_ns > gap.from_ns ? gap.to_ns - gap.from_ns : 0;
    line("", "events may be missing over " + format_duration(span) + ": " + printable(gap.reason),
         true);
  }
  if (d.gaps.size() > kGaps) {
    line("", "and " + std::to_string(d.gaps.size() - kGaps) + " more gaps", true);
  }
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string_view locale = value;
    const size_t dot = locale.find('.');
    // "C", "de_DE": no character set is named; terminals of today read UTF-8.
    if (dot == std::string_view::npos) return true;
    std::string charset;
    for (const char c : locale.substr(dot + 1)) {
      if (c == '@') break;
      if (c != '-') charset += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return charset == "utf8";
  }
  return true;
}

}  // namespace

TerminalStyle style_for(int fd) {
  TerminalStyle style;
  style.unicode = utf8_locale();
  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof directory) != nullptr) style.working_directory = directory;
  if (::isatty(fd) == 0) return style;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    style.width = std::clamp<size_t>(size.ws_col, 60, 110);
  }
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  style.colour = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                 std::string_view(term) != "dumb";
  return style;
}

std::string diagnosis_text(const Diagnosis& diagnosis, const TerminalStyle& style) {
  std::string out;
  add_header(diagnosis, style, out);
  for (const Verdict& verdict : diagnosis.verdicts) {
    out += "\n" + verdict_text(verdict, diagnosis, style);
  }
  add_else(diagnosis, out);
  add_suspects(diagnosis, style, out);
  add_memory(diagnosis, style, out);
  add_basis(diagnosis, style, out);
  return out;
}

}  // namespace memscope
