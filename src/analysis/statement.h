// The statements of a Python source: which lines belong together, and their text on one line.
//
// Interpreters differ in which line of a long statement they report; a line is named here by the
// whole logical line it lies in (Python's language reference, "Line structure"): brackets and
// backslashes join lines, strings may be triple-quoted, prefixed, formatted and nested (PEP 701).
//
// Works on any bytes, with any line ends; never fails. What is not Python gives one line a
// statement at worst. Time and memory are linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memscope {

struct StatementExtent {
  uint32_t line = 0, end_line = 0;  // 1-based, both included
};

class Statements {
 public:
  static constexpr size_t kMaxTextBytes = 240;

  // Keeps no reference to `source`.
  explicit Statements(std::string_view source);

  // The statement `line` lies in; {line, line} for a blank or comment line or one outside the text.
  StatementExtent at(uint32_t line) const;
  // The statement's lines joined by single spaces, without comments and indentation, cut at
  // kMaxTextBytes with "...". `source` is the text the object was made of.
  std::string text(std::string_view source, StatementExtent extent) const;

  uint32_t line_count() const { return static_cast<uint32_t>(starts_.size()); }
  uint32_t start_of(uint32_t line) const { return starts_[line - 1]; }  // its first byte

 private:
  std::string_view line_text(std::string_view source, uint32_t line) const;

  std::vector<uint32_t> starts_;          // byte where each line starts
  std::vector<StatementExtent> extents_;  // of several lines only, ascending
  std::vector<uint32_t> comments_;        // byte where each comment starts, ascending
};

// A statement where it starts.
struct SourceLine {
  uint32_t number = 0;
  size_t indent = 0;
  std::string text;
};
// All of them but blank lines and comments.
std::vector<SourceLine> source_lines(const Statements& statements, std::string_view source);

}  // namespace memscope
