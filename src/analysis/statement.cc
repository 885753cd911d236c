#include "analysis/statement.h"

#include <algorithm>

#include "core/text.h"

namespace memscope {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A string or a replacement field of an f-string that is open.
struct Mode {
  enum Kind : uint8_t { kString, kField, kFormat } kind;
  char quote = 0;
  bool triple = false, raw = false, formatted = false;
  uint32_t depth = 0;  // brackets open in a field
};

// Deeper nesting of f-strings than this is not code.
constexpr size_t kMaxNesting = 64;

// Walks over the text once and says at each line's end whether the statement goes on.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  template <typename LineEnd, typename Comment>
  void run(LineEnd&& line_end, Comment&& comment) {
    for (at_ = 0; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '\n' || c == '\r') {
        const bool joined = at_ != 0 && text_[at_ - 1] == '\\' && escapes_newline_;
        at_ += c == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n' ? 2 : 1;
        newline(joined);
        line_end(at_, goes_on(joined));
        escapes_newline_ = false;
        continue;
      }
      escapes_newline_ = false;
      if (in_string()) {
        string_byte(c);
      } else {
        code_byte(c, comment);
      }
    }
  }

 private:
  bool in_string() const { return !modes_.empty() && modes_.back().kind != Mode::kField; }
  bool goes_on(bool joined) const { return joined || depth_ != 0 || !modes_.empty(); }

  // A string in single quotes ends with its line unless a backslash joins the next.
  void newline(bool joined) {
    if (joined) return;
    while (in_string() && !modes_.back().triple) modes_.pop_back();
  }

  bool closes(const Mode& mode) const {
    if (text_[at_] != mode.quote) return false;
    return !mode.triple || text_.substr(at_, 3) == std::string(3, mode.quote);
  }

  void string_byte(char c) {
    Mode& mode = modes_.back();
    if (mode.kind == Mode::kFormat) {
      if (c == '}') {
        modes_.pop_back();
        ++at_;
      } else if (c == '{') {
        open_field();
      } else if (closes(mode)) {
        modes_.pop_back();  // not closed properly: the string's own quote ends both
      } else {
        ++at_;
      }
      return;
    }
    if (c == '\\') {
      escape();
    } else if (closes(mode)) {
      at_ += mode.triple ? 3 : 1;
      modes_.pop_back();
    } else if (mode.formatted && c == '{') {
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '{') {
        at_ += 2;
      } else {
        open_field();
      }
    } else {
      ++at_;
    }
  }

  // A backslash in a string, raw or not, keeps the next byte from closing it.
  void escape() {
    ++at_;
    if (at_ >= text_.size()) return;
    if (text_[at_] == '\n' || text_[at_] == '\r') {
      escapes_newline_ = true;
    } else {
      ++at_;
    }
  }

  void open_field() {
    ++at_;
    if (modes_.size() >= kMaxNesting) return;
    Mode mode = modes_.back();
    mode.kind = Mode::kField;
    mode.depth = 0;
    modes_.push_back(mode);
  }

  void open_string(char quote) {
    Mode mode{Mode::kString, quote};
    // The prefix: up to two letters right before the quote, not part of a longer name.
    size_t from = at_;
    while (from > 0 && at_ - from < 3 && is_word(text_[from - 1])) --from;
    if (at_ - from <= 2) {
      for (const char p : text_.substr(from, at_ - from)) {
        mode.formatted = mode.formatted || p == 'f' || p == 'F' || p == 't' || p == 'T';
        mode.raw = mode.raw || p == 'r' || p == 'R';
      }
    }
    mode.triple = text_.substr(at_, 3) == std::string(3, quote);
    at_ += mode.triple ? 3 : 1;
    if (modes_.size() < kMaxNesting) modes_.push_back(mode);
  }

  template <typename Comment>
  void code_byte(char c, Comment&& comment) {
    Mode* field = modes_.empty() ? nullptr : &modes_.back();
    uint32_t& depth = field != nullptr ? field->depth : depth_;
    switch (c) {
      case '#':
        comment(at_);
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
        return;
      case '\'':
      case '"':
        // Before Python 3.12 the string's own quote inside a field ended the string; since then it
        // opens another one. Code that was right before has no such quote, unless the field was
        // not meant as one.
        open_string(c);
        return;
      case '\\':
        escape();
        return;
      case '(':
      case '[':
      case '{':
        ++depth;
        break;
      case ')':
      case ']':
        if (depth != 0) --depth;
        break;
      case '}':
        if (field != nullptr && depth == 0) {
          modes_.pop_back();
        } else if (depth != 0) {
          --depth;
        }
        break;
      case ':':
        if (field != nullptr && depth == 0) {
          Mode format = *field;
          format.kind = Mode::kFormat;
          modes_.back() = format;
        }
        break;
      default:
        break;
    }
    ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  bool escapes_newline_ = false;
  std::vector<Mode> modes_;
};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\n' || c == '\r';
}

}  // namespace

Statements::Statements(std::string_view source) {
  source = source.substr(0, UINT32_MAX);
  if (source.empty()) return;
  starts_.push_back(0);
  uint32_t first = 1;  // line the current statement began in
  // A line that holds nothing yet (blank or comment) begins no statement.
  Scanner(source).run(
      [&](size_t next, bool goes_on) {
        const uint32_t line = static_cast<uint32_t>(starts_.size());
        if (!goes_on) {
          if (line > first) extents_.push_back({first, line});
          first = line + 1;
        }
        if (next < source.size()) starts_.push_back(static_cast<uint32_t>(next));
      },
      [&](size_t at) { comments_.push_back(static_cast<uint32_t>(at)); });
  const uint32_t last = line_count();
  if (first < last) extents_.push_back({first, last});
}

StatementExtent Statements::at(uint32_t line) const {
  auto after = std::upper_bound(extents_.begin(), extents_.end(), line,
                                [](uint32_t l, const StatementExtent& e) { return l < e.line; });
  if (after != extents_.begin() && (after - 1)->end_line >= line) return *(after - 1);
  return {line, line};
}

std::string_view Statements::line_text(std::string_view source, uint32_t line) const {
  const uint32_t from = starts_[line - 1];
  const size_t to = line < starts_.size() ? starts_[line] : source.size();
  std::string_view text = source.substr(from, to - from);
  const auto comment = std::lower_bound(comments_.begin(), comments_.end(), from);
  if (comment != comments_.end() && *comment < to) text = text.substr(0, *comment - from);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

std::string Statements::text(std::string_view source, StatementExtent extent) const {
  std::string result;
  const uint32_t last = std::min(extent.end_line, line_count());
  for (uint32_t line = std::max(1u, extent.line); line <= last; ++line) {
    std::string_view piece = line_text(source, line);
    if (line < last && !piece.empty() && piece.back() == '\\') {
      piece.remove_suffix(1);
      while (!piece.empty() && is_space(piece.back())) piece.remove_suffix(1);
    }
    if (piece.empty()) continue;
    const bool glued = result.empty() || result.back() == '(' || result.back() == '[' ||
                       piece.front() == ')' || piece.front() == ']';
    if (!glued) result += ' ';
    result += piece;
    if (result.size() > kMaxTextBytes) break;
  }
  if (result.size() > kMaxTextBytes) {
    result.resize(whole_characters(result, kMaxTextBytes - 3).size());
    result += "...";
  }
  return result;
}

std::vector<SourceLine> source_lines(const Statements& statements, std::string_view source) {
  std::vector<SourceLine> lines;
  for (uint32_t number = 1; number <= statements.line_count(); ++number) {
    const StatementExtent extent = statements.at(number);
    if (extent.line != number) continue;
    std::string text = statements.text(source, extent);
    if (text.empty()) continue;
    const size_t start = statements.start_of(number);
    lines.push_back({number, source.find_first_not_of(" \t", start) - start, std::move(text)});
  }
  return lines;
}

}  // namespace memscope
