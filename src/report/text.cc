#include "report/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace memscope {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Decodes the character at `at` and moves past it; bad bytes give U+FFFD, one byte at a time.
char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 && first < 0xF5   ? 3
                   : first >= 0xE0 && first < 0xF0 ? 2
                   : first >= 0xC2 && first < 0xE0 ? 1
                                                   : 0;
  if (more == 0 || text.size() - at < static_cast<size_t>(more)) return kReplacement;
  char32_t code = first & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    const unsigned char next = byte(at + static_cast<size_t>(i));
    if ((next & 0xC0) != 0x80) return kReplacement;
    code = code << 6 | (next & 0x3F);
  }
  const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return kReplacement;
  at += static_cast<size_t>(more);
  return code;
}

void append(std::string& out, char32_t code) {
  const auto put = [&out](char32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

struct Range {
  char32_t first, last;
};

// Blocks that are wide throughout, after Unicode's EastAsianWidth.txt (W and F), and the blocks of
// combining marks; coarse on purpose: a wrong column only shifts an alignment.
constexpr std::array<Range, 12> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0x9FFF},
                                          {0xA000, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};
constexpr std::array<Range, 6> kZero = {{{0x0300, 0x036F},
                                         {0x200B, 0x200F},
                                         {0x1AB0, 0x1AFF},
                                         {0x20D0, 0x20FF},
                                         {0xFE00, 0xFE0F},
                                         {0xFE20, 0xFE2F}}};

template <size_t N>
bool within(const std::array<Range, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](Range r) { return code >= r.first && code <= r.last; });
}

size_t width_of(char32_t code) {
  if (code < 0x300) return 1;
  if (within(kZero, code)) return 0;
  return within(kWide, code) ? 2 : 1;
}

// Bidirectional overrides and the like can make a line read otherwise than it is.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x2028 || code == 0x2029 || code == 0xFEFF;
}

// Bytes at the start of `text` that fit into `width` columns.
size_t bytes_that_fit(std::string_view text, size_t width) {
  size_t used = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    used += width_of(next_character(text, next));
    if (used > width) break;
    at = next;
  }
  return at;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool blank = false;
  size_t at = 0;
  while (at < text.size()) {
    const char32_t code = next_character(text, at);
    if (code == ' ' || (code >= '\t' && code <= '\r')) {
      blank = !out.empty();
      continue;
    }
    if (blank) out += ' ';
    blank = false;
    append(out, is_control(code) ? kReplacement : code);
  }
  return out;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  size_t at = 0;
  while (at < text.size()) width += width_of(next_character(text, at));
  return width;
}

std::string cut_end(std::string_view text, size_t width, std::string_view mark) {
  if (display_width(text) <= width) return std::string(text);
  const size_t mark_width = display_width(mark);
  if (mark_width >= width) return std::string(mark.substr(0, bytes_that_fit(mark, width)));
  return std::string(text.substr(0, bytes_that_fit(text, width - mark_width))).append(mark);
}

std::string cut_start(std::string_view text, size_t width, std::string_view mark) {
  size_t have = display_width(text);
  if (have <= width) return std::string(text);
  const size_t mark_width = display_width(mark);
  if (mark_width >= width) return std::string(mark.substr(0, bytes_that_fit(mark, width)));
  size_t at = 0;
  while (have > width - mark_width) have -= width_of(next_character(text, at));
  return std::string(mark).append(text.substr(at));
}

std::vector<std::string> wrap(std::string_view text, size_t width) {
  width = std::max<size_t>(width, 1);
  std::vector<std::string> lines(1);
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const size_t needed = display_width(word) + (lines.back().empty() ? 0 : 1);
    if (display_width(lines.back()) + needed > width && !lines.back().empty()) {
      lines.emplace_back();
    }
    while (display_width(word) > width) {
      size_t bytes = bytes_that_fit(word, width);
      if (bytes == 0) next_character(word, bytes);  // wider than the line: let it stick out
      lines.back() = word.substr(0, bytes);
      word.remove_prefix(bytes);
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  if (lines.size() > 1 && lines.back().empty()) lines.pop_back();
  return lines;
}

std::string relative_path(std::string_view path, std::string_view directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  if (directory.size() > 1 && path.size() > directory.size() + 1 && path.starts_with(directory) &&
      path[directory.size()] == '/') {
    return std::string(path.substr(directory.size() + 1));
  }
  return std::string(path);
}

std::string program_name(std::string_view argv0, std::string_view command) {
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  const std::string_view program = base(argv0);
  if (!program.starts_with("python") && !program.starts_with("pypy")) return std::string(program);
  size_t at = std::min(command.find(' '), command.size());  // past the interpreter
  bool is_module = false;
  while (at < command.size()) {
    const size_t end = std::min(command.find(' ', at + 1), command.size());
    const std::string_view word = command.substr(at + 1, end - at - 1);
    at = end;
    if (word == "-c") break;
    if (is_module || (!word.empty() && word.front() != '-')) return std::string(base(word));
    is_module = word == "-m";
    if (word == "-X" || word == "-W") at = std::min(command.find(' ', at + 1), command.size());
  }
  return std::string(program);
}

std::string sparkline(std::span<const double> values, size_t width, bool unicode) {
  std::vector<double> points;
  for (const double value : values) {
    if (std::isfinite(value)) points.push_back(value);
  }
  if (points.size() < 2 || width == 0) return "";
  const auto [low, high] = std::minmax_element(points.begin(), points.end());
  const double bottom = *low;
  const double range = *high - *low;
  if (!(range > 0)) return "";
  constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 5> kAscii = {"_", ".", "-", "=", "#"};
  const std::span<const std::string_view> levels =
      unicode ? std::span<const std::string_view>(kBlocks) : kAscii;
  const size_t columns = std::min(width, points.size());
  std::string out;
  for (size_t column = 0; column < columns; ++column) {
    // Each column is the last value of its share, so that the line ends where the run ended.
    const double value = points[(column + 1) * points.size() / columns - 1];
    const double height = (value - bottom) / range * static_cast<double>(levels.size() - 1);
    out += levels[static_cast<size_t>(std::lround(height))];
  }
  return out;
}

}  // namespace memscope
