#include "report/compare_text.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "report/format.h"
#include "report/paint.h"
#include "report/text.h"

namespace memscope {
namespace {

// BASE, NEW, change, blocks.
constexpr size_t kColumns[] = {11, 11, 12, 9};
constexpr size_t kNumbers = 11 + 11 + 12 + 9;

std::string right(std::string_view text, size_t width) {
  const size_t have = display_width(text);
  return std::string(width > have ? width - have : 0, ' ').append(text);
}

std::string left(std::string_view text, size_t width) {
  const size_t have = display_width(text);
  return std::string(text).append(width > have ? width - have : 0, ' ');
}

std::string signed_count(int64_t count) {
  return (count > 0 ? "+" : "") + format_count(count);
}

std::string bytes_or_dash(const std::optional<Held>& held) {
  return held ? format_bytes(held->bytes) : "-";
}

std::string place(const SiteFrame& site, const TerminalStyle& style) {
  std::string text = site.file ? printable(relative_path(*site.file, style.working_directory))
                               : printable(site.module.value_or(site.function));
  if (site.line && site.file) text += ":" + std::to_string(*site.line);
  return text;
}

// "step 7 of 300", "the end (300 steps)".
std::string moment(const ComparedSide& side) {
  if (side.last_step) {
    const std::string range = "born in steps " + format_count(side.first_step.value_or(1)) +
                              " to " + format_count(*side.last_step);
    return range + ", at the end of the last";
  }
  if (side.at_step) {
    return "end of step " + format_count(*side.at_step) + " of " + format_count(side.steps);
  }
  const bool counted = side.steps_source != "time" && side.steps_source != "none";
  if (!counted || side.steps == 0) return "its end";
  return "its end, " + format_plural(side.steps, "step");
}

void add_side(std::string_view label, const ComparedSide& side, const TerminalStyle& style,
              std::string& out) {
  const Paint paint(style);
  std::string rest = std::string(paint.dot()) + moment(side);
  if (side.inputs.size() > 1) {
    rest += std::string(paint.dot()) + format_count(static_cast<int64_t>(side.inputs.size())) +
            " processes";
  }
  const size_t room = style.width - 6;
  const size_t width = display_width(rest);
  const std::string name =
      cut_start(printable(side.name), room > width + 8 ? room - width : 8, paint.ellipsis());
  out += paint.label(left(label, 6)) + paint.strong(name) + rest + "\n";
}

// -- tables ---------------------------------------------------------------------------------------

class Table {
 public:
  Table(const TerminalStyle& style, std::string& out)
      : style_(style), paint_(style), out_(out), name_(style.width - 2 - kNumbers) {}

  void head(std::string_view title, std::string_view last) {
    out_ += "\n" +
            paint_.label(left(title, name_ + 2) + right("BASE", kColumns[0]) +
                         right("NEW", kColumns[1]) + right("change", kColumns[2]) +
                         right(last, kColumns[3])) +
            "\n";
  }
  void row(const std::string& name, const std::string& base, const std::string& now, int64_t change,
           const std::string& last) {
    const std::string text = right(format_bytes_change(static_cast<double>(change)), kColumns[2]);
    out_ += "  " + left(cut_end(name, name_ - 1, paint_.ellipsis()), name_) +
            right(base, kColumns[0]) + right(now, kColumns[1]) +
            (change > 0   ? paint_.warning(text)
             : change < 0 ? paint_.good(text)
                          : text) +
            (last.empty() ? "" : right(last, kColumns[3])) + "\n";
  }
  void row(const std::string& name, const Change& change) {
    const Held difference = change.difference();
    row(name, bytes_or_dash(change.base), bytes_or_dash(change.now), difference.bytes,
        difference.blocks == 0 ? "0" : signed_count(difference.blocks));
  }
  size_t name_width() const { return name_; }

 private:
  const TerminalStyle& style_;
  Paint paint_;
  std::string& out_;
  size_t name_;
};

// "train.py:88  x = f(y)"; the place is never cut for the statement.
std::string site_name(const SiteFrame& site, const TerminalStyle& style, size_t width) {
  const Paint paint(style);
  std::string name = cut_start(place(site, style), width, paint.ellipsis());
  std::string what = printable(site.text.value_or(""));
  if (what.empty() && !site.function.empty()) what = "in " + printable(site.function);
  if (!what.empty() && display_width(name) + 8 < width) name += "  " + what;
  return name;
}

struct ListWords {
  std::string_view title, none;
};

std::string row_name(const ComparedRow& row, const ListWords& words, const TerminalStyle& style,
                     size_t width) {
  if (row.site) return site_name(*row.site, style, width);
  if (row.name) return cut_start(printable(*row.name), width, Paint(style).ellipsis());
  return std::string(words.none);
}

void add_list(const ComparedList& list, const Change& total, const ListWords& words,
              bool several_places, const TerminalStyle& style, std::string& out) {
  if (list.rows.empty() && list.rest_rows == 0) return;
  Table table(style, out);
  table.head(words.title, "blocks");
  for (const ComparedRow& row : list.rows) {
    const std::string where = several_places ? " (" + row.device + " " + row.layer + ")" : "";
    const size_t room = table.name_width() - 1;
    const size_t width = room > where.size() + 12 ? room - where.size() : room;
    std::string name = row_name(row, words, style, width);
    if (width != room) {
      name = cut_end(name, width, Paint(style).ellipsis());
      name += where;
    }
    table.row(name, row.change);
  }
  if (list.rest_rows != 0) {
    std::string rest = (list.rows.empty() ? "" : "and ") +
                       format_count(static_cast<int64_t>(list.rest_rows)) + " more";
    if (list.rest_changed == 0) rest += ", unchanged";
    table.row(rest, list.rest);
  }
  if (list.rows.size() + (list.rest_rows != 0 ? 1 : 0) > 1) table.row("total", total);
}

// Whether the table tells anything: a name, and a change where anything changed at all.
bool is_worth_a_table(const ComparedList& list) {
  if (list.rows.empty()) return list.rest_changed != 0;
  return list.rest_changed != 0 ||
         std::any_of(list.rows.begin(), list.rows.end(),
                     [](const ComparedRow& row) { return row.site || row.name; });
}

void add_layers(const Comparison& c, const TerminalStyle& style, std::string& out) {
  if (c.layers.empty()) return;
  Table table(style, out);
  table.head("memory", "blocks");
  for (const ComparedLayer& layer : c.layers) {
    std::string name = printable(layer.device + " " + layer.layer);
    if (!layer.counted) name += ", not compared";
    table.row(name, layer.change);
    const auto number = [](int64_t bytes) { return format_bytes(bytes); };
    if (layer.base_peak != 0 || layer.now_peak != 0) {
      table.row("  peak", number(layer.base_peak), number(layer.now_peak),
                layer.now_peak - layer.base_peak, "");
    }
    if (layer.base_reserved || layer.now_reserved) {
      table.row("  reserved", layer.base_reserved ? number(*layer.base_reserved) : "-",
                layer.now_reserved ? number(*layer.now_reserved) : "-",
                layer.now_reserved.value_or(0) - layer.base_reserved.value_or(0), "");
    }
  }
}

void add_warnings(std::string_view label, const ComparedSide& side, const TerminalStyle& style,
                  std::string& out) {
  const auto incomplete = std::count_if(side.inputs.begin(), side.inputs.end(),
                                        [](const InputSummary& input) { return !input.complete; });
  if (incomplete == 0) return;
  int64_t dropped = 0;
  for (const InputSummary& input : side.inputs) dropped += input.dropped;
  std::string text = std::string(label) + " is incomplete";
  if (dropped != 0) text += ": " + format_plural(dropped, "event") + " missing";
  text += "; what it holds may be more or less than shown";
  for (const std::string& line : wrap(text, style.width)) {
    out += Paint(style).warning(line) + "\n";
  }
}

// -- the sentence ---------------------------------------------------------------------------------

// The row that explains most of the change, and how to name it.
struct Cause {
  const ComparedRow* row = nullptr;
  std::string words;  // "is allocated at train.py:88"
};

Cause cause_of(const Comparison& c, bool grew, const TerminalStyle& style) {
  const auto most = [grew](const ComparedList& list) -> const ComparedRow* {
    if (list.rows.empty()) return nullptr;
    const ComparedRow* row = grew ? &list.rows.front() : &list.rows.back();
    const int64_t change = row->change.difference().bytes;
    return (grew ? change > 0 : change < 0) ? row : nullptr;
  };
  const std::string verb = grew ? "is allocated" : "was allocated";
  const ComparedRow* site = most(c.sites);
  if (site != nullptr && site->site) return {site, verb + " at " + place(*site->site, style)};
  const ComparedRow* op = most(c.operators);
  if (op != nullptr && op->name) return {op, verb + " in " + printable(*op->name)};
  const ComparedRow* owner = most(c.owners);
  if (owner != nullptr && owner->name) {
    return {owner, std::string(grew ? "belongs" : "belonged") + " to " + printable(*owner->name)};
  }
  return {};
}

}  // namespace

std::string comparison_sentence(const Comparison& c, const TerminalStyle& style) {
  const int64_t change = c.total.difference().bytes;
  const int64_t held = c.total.now.value_or(Held{}).bytes;
  const auto at = [](const ComparedSide& side) {
    return side.at_step ? " at the end of step " + format_count(*side.at_step) : " at its end";
  };
  std::string born, now_at, base_at;  // "NEW holds 1 MiB more <now_at> than BASE <base_at>"
  if (c.now.last_step) {
    born = "Of what was born in steps " + format_count(c.now.first_step.value_or(1)) + " to " +
           format_count(*c.now.last_step) + ", ";
  } else {
    base_at = at(c.base);
    if (c.base.at_step != c.now.at_step) now_at = at(c.now);
  }
  if (change == 0) {
    const bool same = c.sites.rest_changed == 0 &&
                      std::all_of(c.sites.rows.begin(), c.sites.rows.end(), [](const auto& row) {
                        return row.change.difference() == Held{};
                      });
    return born + "NEW holds as much" + now_at + " as BASE" + base_at + ", " + format_bytes(held) +
           (same ? "." : ", but not in the same places.");
  }
  const bool grew = change > 0;
  const char* more = grew ? " more" : " less";
  std::string text = born + "NEW holds " + format_bytes(grew ? change : -change) + more + now_at +
                     " than BASE" + base_at;
  const Cause cause = cause_of(c, grew, style);
  if (cause.row != nullptr) {
    const auto part = static_cast<double>(cause.row->change.difference().bytes);
    const double share = part / static_cast<double>(change);
    if (share > 1) {  // where others changed the other way, more than 100 % would puzzle
      text += "; " + format_bytes(std::abs(part)) + more + " " + cause.words +
              ", and others hold " + (grew ? "less" : "more");
    } else {
      text += "; " + format_percent(share) + " of it " + cause.words;
    }
  }
  return text + ".";
}

std::string comparison_text(const Comparison& c, const TerminalStyle& style) {
  const Paint paint(style);
  std::string out;
  add_side("BASE", c.base, style, out);
  add_side("NEW", c.now, style, out);
  out += "\n";
  for (const std::string& line : wrap(comparison_sentence(c, style), style.width)) {
    out += paint.strong(line) + "\n";
  }
  add_warnings("BASE", c.base, style, out);
  add_warnings("NEW", c.now, style, out);

  std::set<std::string> places;
  for (const ComparedLayer& layer : c.layers) {
    if (layer.counted) places.insert(layer.device + layer.layer);
  }
  const bool several = places.size() > 1;
  if (is_worth_a_table(c.sites)) {
    add_list(c.sites, c.total, {"by line", "(no Python stack)"}, several, style, out);
  }
  if (is_worth_a_table(c.owners)) {
    add_list(c.owners, c.total, {"by owner", "(no owner)"}, several, style, out);
  }
  if (is_worth_a_table(c.operators)) {
    add_list(c.operators, c.total, {"by operator", "(outside operators)"}, several, style, out);
  }
  add_layers(c, style, out);
  return out;
}

}  // namespace memscope
