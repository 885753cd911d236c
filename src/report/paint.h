// Colours and marks of terminal output, in one place: names say what a thing is, not how it looks.
#pragma once

#include <string>
#include <string_view>

#include "report/terminal.h"

namespace memscope {

class Paint {
 public:
  explicit Paint(const TerminalStyle& style) : style_(style) {}

  std::string bad(std::string_view text) const { return wrapped("1;31", text); }
  std::string good(std::string_view text) const { return wrapped("1;32", text); }
  std::string warning(std::string_view text) const { return wrapped("1;33", text); }
  std::string strong(std::string_view text) const { return wrapped("1", text); }
  std::string label(std::string_view text) const { return wrapped("2", text); }
  std::string place(std::string_view text) const { return wrapped("36", text); }

  std::string_view dot() const { return style_.unicode ? " · " : " - "; }
  std::string_view ellipsis() const { return style_.unicode ? "…" : "..."; }
  std::string_view from() const { return style_.unicode ? " ← " : " <- "; }

 private:
  std::string wrapped(std::string_view code, std::string_view text) const {
    if (!style_.colour || text.empty()) return std::string(text);
    return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
  }
  const TerminalStyle& style_;
};

}  // namespace memscope
