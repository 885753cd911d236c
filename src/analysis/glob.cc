#include "analysis/glob.h"

#include <cstddef>

namespace memscope {
namespace {

// Matches the class that starts at pattern[at] == '['; moves `at` behind it. A class without an end
// is a plain '['.
bool matches_class(std::string_view pattern, size_t& at, char c) {
  size_t i = at + 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (inverted) ++i;
  bool found = false;
  const size_t first = i;
  for (; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) {
    ++at;
    return c == '[';
  }
  at = i + 1;
  return found != inverted;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    size_t next = p + 1;
    bool one = false;
    if (p < pattern.size()) {
      if (pattern[p] == '*') {
        star = ++p;
        star_text = t;
        continue;
      }
      if (pattern[p] == '[') {
        next = p;
        one = matches_class(pattern, next, text[t]);
      } else {
        one = pattern[p] == '?' || pattern[p] == text[t];
      }
    }
    if (one) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace memscope
