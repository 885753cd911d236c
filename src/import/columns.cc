#include "import/columns.h"

#include <algorithm>
#include <cctype>

namespace memscope {
namespace {

constexpr std::array<std::string_view, kColumns> kNames = {
    "ID",        "Event",     "Event Type", "Name", "Timestamp(ns)",      "Process Id",
    "Thread Id", "Device Id", "Ptr",        "Attr", "Call Stack(Python)", "Call Stack(C)"};

constexpr std::array<std::string_view, 11> kEvents = {
    "SYSTEM", "MALLOC",   "FREE",       "ACCESS",   "OP_LAUNCH",   "KERNEL_LAUNCH",
    "MSTX",   "SNAPSHOT", "OOM_DETAIL", "CLEAN_UP", "MEMORY_OWNER"};

constexpr std::string_view kMark = "\xEF\xBB\xBF";  // UTF-8's byte order mark

bool same_text(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [&](char x, char y) { return lower(x) == lower(y); });
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads cells of a csv in turn; `short_` where the text ended before it was clear.
class Cells {
 public:
  explicit Cells(std::string_view text) : text_(text) {}

  bool too_short() const { return short_; }
  // A number, "N/A" where that is allowed, and the comma after it.
  bool number(bool or_none) {
    const bool quoted = take('"');
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_]) && at_ - start < 20) ++at_;
    if (at_ == text_.size()) return cut();
    if (at_ == start) {
      if (!or_none || !word("N/A")) return false;
    }
    return end(quoted);
  }
  // `0`, `cpu`, `cuda:1`, `N/A`.
  bool device() {
    const bool quoted = take('"');
    constexpr size_t kLongest = 12;
    const size_t start = at_;
    if (text_.substr(at_).starts_with("0x")) return false;
    while (at_ < text_.size() && at_ - start < kLongest &&
           (is_alphanumeric(text_[at_]) || text_[at_] == ':' || text_[at_] == '/')) {
      ++at_;
    }
    if (at_ == text_.size()) return cut();
    return at_ != start && end(quoted);
  }
  // `0x12`, `18`, `N/A`.
  bool address() {
    const bool quoted = take('"');
    constexpr size_t kLongest = 20;
    const size_t start = at_;
    while (at_ < text_.size() && at_ - start < kLongest &&
           (is_alphanumeric(text_[at_]) || text_[at_] == '/')) {
      ++at_;
    }
    if (at_ == text_.size()) return cut();
    return at_ != start && end(quoted);
  }
  bool one_of_events() {
    const bool quoted = take('"');
    for (const std::string_view event : kEvents) {
      const std::string_view rest = text_.substr(at_);
      if (rest.size() < event.size() && event.starts_with(rest)) return cut();
      if (!rest.starts_with(event)) continue;
      at_ += event.size();
      return end(quoted);
    }
    return false;
  }
  bool word(std::string_view word) {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with(word)) {
      at_ += word.size();
      return true;
    }
    return word.starts_with(rest) ? cut() : false;
  }

 private:
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool end(bool quoted) {
    if (quoted && at_ < text_.size() && !take('"')) return false;
    if (at_ == text_.size()) return cut();
    return take(',');
  }
  bool cut() {
    short_ = true;
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool short_ = false;
};

Looks answer(bool yes, const Cells& cells) {
  return yes ? Looks::kYes : cells.too_short() ? Looks::kTooShort : Looks::kNo;
}

}  // namespace

std::optional<Column> column_from_name(std::string_view name) {
  if (name.starts_with(kMark)) name.remove_prefix(kMark.size());
  constexpr std::string_view kAround = " \t\r\"'";
  while (!name.empty() && kAround.find(name.front()) != std::string_view::npos)
    name.remove_prefix(1);
  while (!name.empty() && kAround.find(name.back()) != std::string_view::npos)
    name.remove_suffix(1);
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (same_text(name, kNames[i])) return static_cast<Column>(i);
  }
  if (same_text(name, "Timestamp") || same_text(name, "Timestamp(us)")) return Column::kTime;
  return std::nullopt;
}

std::string_view column_name(Column column) {
  return kNames[static_cast<size_t>(column)];
}

ColumnMap::ColumnMap() {
  places_.fill(kColumns);
  for (size_t i = 0; i < kColumns; ++i) places_[i] = static_cast<uint8_t>(i);
  update();
}

bool ColumnMap::take_header(std::span<const std::string_view> names) {
  std::array<uint8_t, kMaxPlaces> places;
  places.fill(kColumns);
  std::array<bool, kColumns> seen{};
  for (size_t i = 0; i < std::min(names.size(), places.size()); ++i) {
    const auto column = column_from_name(names[i]);
    if (!column || seen[static_cast<size_t>(*column)]) continue;
    places[i] = static_cast<uint8_t>(*column);
    seen[static_cast<size_t>(*column)] = true;
  }
  for (const Column column : {Column::kEvent, Column::kEventType, Column::kTime}) {
    if (!seen[static_cast<size_t>(column)]) return false;
  }
  places_ = places;
  count_ = std::min(names.size(), kMaxPlaces);
  update();
  return true;
}

void ColumnMap::update() {
  needed_ = 0;
  for (size_t i = 0; i < count_; ++i) {
    const uint8_t column = places_[i];
    if (column < static_cast<uint8_t>(Column::kPythonStack)) needed_ = i + 1;
  }
  constexpr size_t kLeading = static_cast<size_t>(Column::kTid) + 1;
  standard_ = count_ > kLeading;
  for (size_t i = 0; i < kLeading; ++i) standard_ = standard_ && places_[i] == i;
}

Looks looks_like_row(std::string_view text) {
  if (text.starts_with("ID,Event,")) return Looks::kYes;
  if (!text.empty() && std::string_view("ID,Event,").starts_with(text)) return Looks::kTooShort;
  Cells cells(text);
  const bool yes = cells.number(true) && cells.one_of_events();
  return answer(yes, cells);
}

Looks looks_like_after_name(std::string_view text) {
  Cells cells(text);
  const bool yes = cells.number(false) && cells.number(true) && cells.number(true) &&
                   cells.device() && cells.address();
  return answer(yes, cells);
}

std::string_view skip_noise(std::string_view start) {
  if (start.starts_with(kMark)) start.remove_prefix(kMark.size());
  while (!start.empty() &&
         (start.front() == '\0' || start.front() == '\n' || start.front() == '\r')) {
    start.remove_prefix(1);
  }
  if (start.starts_with(kMark)) start.remove_prefix(kMark.size());
  return start;
}

bool starts_dump(std::string_view start) {
  start = skip_noise(start);
  if (looks_like_row(start) == Looks::kYes) return true;
  const std::string_view line = start.substr(0, start.find('\n'));
  std::array<std::string_view, 64> names;
  size_t count = 0;
  for (size_t at = 0; count < names.size() && at <= line.size();) {
    const size_t comma = std::min(line.find(',', at), line.size());
    names[count++] = line.substr(at, comma - at);
    at = comma + 1;
  }
  ColumnMap map;
  return map.take_header({names.data(), count});
}

bool starts_python_trace(std::string_view start) {
  start = skip_noise(start);
  return start.starts_with("FuncInfo,StartTime(ns),EndTime(ns)");
}

}  // namespace memscope
