#include "report/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/format.h"
#include "report/paint.h"
#include "report/text.h"

namespace memscope {
namespace {

constexpr size_t kLabelWidth = 13;  // "  allocated  "
constexpr size_t kSparkColumns = 16;
constexpr size_t kFurtherSites = 3;
constexpr size_t kHolders = 2;
constexpr size_t kCallers = 2;

struct Wording {
  std::string_view cause, tag, what;  // `what` "" = named after the layer
};

constexpr std::array<Wording, 13> kWordings = {{
    {"leak", "LEAK", ""},
    {"retained_graph", "LEAK", "autograd graphs are kept"},
    {"cycle", "LEAK", "unreachable cycles wait for gc"},
    {"unbounded_cache", "LEAK", "a cache grows with every new key"},
    {"python_objects", "LEAK", "Python objects pile up"},
    {"host_leak", "LEAK", "host memory piles up"},
    {"pinned", "PINNED", "pinned memory grows"},
    {"cache", "CACHE", "the allocator hoards free memory"},
    {"fragmentation", "FRAGMENTED", "free memory that cannot be used"},
    {"pending_free", "PENDING", "freed, but waiting for a stream"},
    {"outside_pool", "OUTSIDE", "memory outside the framework"},
    {"peak", "PEAK", "nothing grows, but it does not fit"},
    {"misconfigured", "SETTING", "a setting does not do what it says"},
}};

std::string_view things_on(const std::optional<std::string>& layer) {
  if (layer == "host") return "host memory piles up";
  if (layer == "pinned") return "pinned memory piles up";
  if (layer == "driver") return "device memory piles up";
  if (layer == "workspace") return "workspaces pile up";
  if (layer == "python") return "Python objects pile up";
  return "tensors pile up";
}

// Rows "  label      text", wrapped and hung under the text.
class Rows {
 public:
  Rows(const TerminalStyle& style, std::string& out) : style_(style), paint_(style), out_(out) {}

  size_t room() const { return style_.width - kLabelWidth; }

  void raw(std::string_view label, const std::string& painted) {
    std::string head = "  " + std::string(label);
    head.resize(kLabelWidth, ' ');
    out_ += paint_.label(head) + painted + "\n";
  }
  void text(std::string_view label, std::string_view text) {
    for (const std::string& line : wrap(text, room())) {
      raw(label, line);
      label = "";
    }
  }
  // "train.py:41   x = f(y)", the statement on a line of its own where both do not fit.
  void frame(std::string_view label, const SiteFrame& frame, std::string_view after = "") {
    const std::string place = place_text(frame, room());
    std::string statement = printable(frame.text.value_or(""));
    if (statement.empty() && !frame.function.empty()) {
      statement = "in " + printable(frame.function);
    }
    if (frame.inferred) statement += "  (the file has changed since)";
    statement += after;
    const size_t used = display_width(place) + 3;
    if (used + display_width(statement) <= room()) {
      raw(label, paint_.place(place) + (statement.empty() ? "" : "   " + statement));
      return;
    }
    raw(label, paint_.place(place));
    raw("", cut_end(statement, room(), paint_.ellipsis()));
  }
  std::string place_text(const SiteFrame& frame, size_t width) const {
    if (!frame.file) {
      return cut_end(printable(frame.module.value_or(frame.function)), width, paint_.ellipsis());
    }
    std::string place = printable(relative_path(*frame.file, style_.working_directory));
    if (frame.line) place += ":" + std::to_string(*frame.line);
    return cut_start(place, width, paint_.ellipsis());
  }

 private:
  const TerminalStyle& style_;
  Paint paint_;
  std::string& out_;
};

std::optional<std::string> rate_text(const Verdict& v) {
  if (v.bytes_per_step) return format_bytes_change(*v.bytes_per_step) + " per step";
  if (v.bytes_per_second) return format_bytes_change(*v.bytes_per_second) + " per second";
  return std::nullopt;
}

std::string headline(const Verdict& v) {
  const auto wording = std::find_if(kWordings.begin(), kWordings.end(),
                                    [&v](const Wording& w) { return w.cause == v.cause; });
  std::string text(wording == kWordings.end() ? std::string_view(v.cause)
                   : wording->what.empty()    ? things_on(v.layer)
                                              : wording->what);
  if (v.cause == "misconfigured") return text;
  const auto rate = rate_text(v);
  text += ": " + (rate ? *rate : format_bytes(v.bytes_total));
  auto per_step = evidence_number(v, "blocks_per_step");
  if (!per_step && v.bytes_per_step && v.blocks > 0 && v.first_step && v.last_step &&
      *v.last_step >= *v.first_step) {
    per_step =
        static_cast<double>(v.blocks) / static_cast<double>(*v.last_step - *v.first_step + 1);
  }
  if (v.bytes_per_step && per_step && *per_step >= 0.005) {
    const std::string count = format_rate(*per_step);
    text += ", " + count + (count == "1" ? " block" : " blocks") + " per step";
  }
  return text;
}

// " ± 2.1 MiB", where it was sampled.
std::string error_text(const Verdict& v, std::string_view key, const TerminalStyle& style) {
  const auto error = evidence_number(v, key);
  if (!error || !std::isfinite(*error)) return {};
  return (style.unicode ? " ± " : " +- ") + format_bytes(*error);
}

std::string sampled_text(const Verdict& v) {
  const auto every = evidence_number(v, "sampled_every_bytes");
  return every ? "sampled, every " + format_bytes(*every) : "";
}

std::string total_text(const Verdict& v, const TerminalStyle& style) {
  std::string text = format_bytes(v.bytes_total) + error_text(v, "bytes_total_error", style);
  if (v.blocks > 0) {
    text += std::string(" in ") + (evidence_number(v, "sampled_every_bytes") ? "about " : "") +
            format_plural(v.blocks, "block");
  }
  if (v.first_step) text += ", since step " + format_count(*v.first_step);
  return text;
}

std::string where_text(const Verdict& v, const Diagnosis& d) {
  std::string text;
  if (d.devices.size() > 1 && v.device) text = printable(*v.device);
  if (d.inputs.size() > 1 && !v.processes.empty()) {
    if (!text.empty()) text += ", ";
    const auto all = v.processes.size() == d.inputs.size();
    text += all ? "all " + std::to_string(d.inputs.size()) + " inputs"
                : "input " + std::to_string(v.processes.front());
    if (!all && v.processes.size() > 1) {
      text += " and " + std::to_string(v.processes.size() - 1) + " more";
    }
  }
  if (v.owner) {
    if (!text.empty()) text += ", ";
    text += printable(*v.owner);
  }
  return text;
}

// The user's functions that lead to the site, nearest first: the same helper serves many.
std::string callers_text(const Verdict& v, const Paint& paint) {
  std::string text;
  size_t shown = 0;
  bool below_site = !v.site.has_value();
  for (const SiteFrame& frame : v.stack) {
    if (!below_site) {
      below_site = frame.file == v.site->file && frame.function == v.site->function;
      continue;
    }
    if (!frame.user || shown == kCallers) continue;
    if (shown++ != 0) text += paint.from();
    text += printable(frame.function);
    if (frame.file) {
      text += " (" + printable(frame.file->substr(frame.file->rfind('/') + 1));
      if (frame.line) text += ":" + std::to_string(*frame.line);
      text += ")";
    }
  }
  return text;
}

std::string with_confidence(const std::string& tag, std::string_view painted_tag,
                            const std::string& line, const Verdict& v, const TerminalStyle& style) {
  const std::string sure = format_percent(v.confidence) + " sure";
  const size_t indent = tag.size() + 2;
  const size_t room = style.width - indent - sure.size() - 2;
  std::string out;
  const auto lines = wrap(line, room);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 0) {
      const size_t pad = style.width - indent - display_width(lines[0]) - sure.size();
      out += std::string(painted_tag) + "  " + Paint(style).strong(lines[0]);
      out += std::string(pad, ' ') + Paint(style).label(sure) + "\n";
    } else {
      out += std::string(indent, ' ') + Paint(style).strong(lines[i]) + "\n";
    }
  }
  return out;
}

std::string none_text(const Verdict& v, const TerminalStyle& style) {
  const Paint paint(style);
  const auto steps = evidence_number(v, "steps");
  std::string_view unit = "step";
  auto limit = evidence_number(v, "detection_limit_bytes_per_step");
  if (!limit) {
    limit = evidence_number(v, "detection_limit_bytes_per_second");
    unit = "second";
  }
  std::string out;
  const bool healthy = limit && std::isfinite(*limit);
  if (healthy) {
    std::string line =
        fmt::format("no leak: nothing grows by more than {} a {}", format_bytes(*limit), unit);
    if (steps && unit == "step") {
      line += " (" + format_plural(static_cast<int64_t>(*steps), "step") + ")";
    }
    out = with_confidence("OK", paint.good("OK"), line, v, style);
  } else {
    std::string line = "too short a run to tell whether anything grows";
    if (steps) line += ": " + format_plural(static_cast<int64_t>(*steps), "step") + " to judge";
    for (const std::string& part : wrap(line, style.width - 9)) {
      out += (out.empty() ? paint.warning("UNKNOWN") : std::string(7, ' ')) + "  " +
             paint.strong(part) + "\n";
    }
  }
  // A healthy run needs no advice.
  if (!healthy && !v.advice.empty()) Rows(style, out).text("do", printable(v.advice));
  return out;
}

}  // namespace

std::optional<double> evidence_number(const Verdict& verdict, std::string_view key) {
  const auto found = verdict.evidence.find(std::string(key));
  if (found == verdict.evidence.end()) return std::nullopt;
  if (const auto* number = std::get_if<double>(&found->second)) return *number;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) {
    return static_cast<double>(*whole);
  }
  return std::nullopt;
}

std::string verdict_text(const Verdict& v, const Diagnosis& diagnosis, const TerminalStyle& style) {
  if (v.cause == "none") return none_text(v, style);
  const Paint paint(style);
  const auto wording = std::find_if(kWordings.begin(), kWordings.end(),
                                    [&v](const Wording& w) { return w.cause == v.cause; });
  const std::string tag(wording == kWordings.end() ? "FOUND" : wording->tag);
  const bool is_leak = tag == "LEAK";
  std::string out =
      with_confidence(tag, is_leak ? paint.bad(tag) : paint.warning(tag), headline(v), v, style);
  Rows rows(style, out);
  if (v.site) rows.frame("allocated", *v.site);
  for (size_t i = 1; i < std::min(v.sites.size(), kFurtherSites + 1); ++i) {
    rows.frame(i == 1 ? "also" : "", v.sites[i].site, "  (" + format_bytes(v.sites[i].bytes) + ")");
  }
  const std::string callers = callers_text(v, paint);
  if (!callers.empty()) rows.text("called at", callers);
  if (v.kept_at) rows.frame("kept by", *v.kept_at);
  for (size_t i = 0; i < std::min(v.holders.size(), kHolders); ++i) {
    const std::string text = printable(v.holders[i].text);
    if (!text.empty()) rows.text(i == 0 ? "held in" : "", text);
  }
  std::string total = total_text(v, style);
  const auto curve = v.evidence.find("curve");
  if (curve != v.evidence.end()) {
    if (const auto* values = std::get_if<std::vector<double>>(&curve->second)) {
      const size_t used = display_width(total) + 3;
      const size_t columns = used < rows.room() ? std::min(kSparkColumns, rows.room() - used) : 0;
      const std::string line = sparkline(*values, columns, style.unicode);
      if (!line.empty()) total += "   " + paint.place(line);
    }
  }
  if (v.cause != "misconfigured") rows.raw("total", total);
  if (const std::string sampled = sampled_text(v); !sampled.empty()) {
    std::string rate = error_text(v, "bytes_per_step_error", style);
    if (!rate.empty()) rate = ";" + rate + " per step";
    if (rate.empty()) {
      rate = error_text(v, "bytes_per_second_error", style);
      if (!rate.empty()) rate = ";" + rate + " per second";
    }
    rows.text("figures", sampled + rate);
  }
  const std::string where = where_text(v, diagnosis);
  if (!where.empty()) rows.text("where", where);
  if (!v.advice.empty()) rows.text("do", printable(v.advice));
  return out;
}

std::string one_line(const Verdict& v, const TerminalStyle& style, size_t width) {
  const Paint paint(style);
  const std::string head = rate_text(v).value_or(format_bytes(v.bytes_total));
  const std::string tail = format_percent(v.confidence);
  const size_t fixed = display_width(head) + 4 + tail.size();
  std::string unused;
  std::string site;
  if (v.site && width > fixed) {
    site = Rows(style, unused).place_text(*v.site, width - fixed);
    if (v.site->text) site += "  " + printable(*v.site->text);
    site = cut_end(site, width - fixed, paint.ellipsis());
  }
  return head + "  " + site + "  " + paint.label(tail);
}

}  // namespace memscope
