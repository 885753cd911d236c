#include "analysis/python_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace memscope {
namespace {

constexpr std::array<std::string_view, 5> kGrow = {"append", "appendleft", "extend", "extendleft",
                                                   "insert"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Strings become runs of '~': their length stays, what is in them means nothing.
std::string without_strings(std::string_view text) {
  std::string plain(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const char quote = text[i];
    if (quote != '"' && quote != '\'') continue;
    const bool triple = text.substr(i, 3) == std::string(3, quote);
    const std::string end(triple ? 3 : 1, quote);
    size_t at = i + end.size();
    while (at < text.size() && text.substr(at, end.size()) != end) at += text[at] == '\\' ? 2 : 1;
    const size_t stop = std::min(text.size(), at + end.size());
    std::fill(plain.begin() + static_cast<std::ptrdiff_t>(i),
              plain.begin() + static_cast<std::ptrdiff_t>(stop), '~');
    i = stop - 1;
  }
  return plain;
}

bool opens(char c) {
  return c == '(' || c == '[' || c == '{';
}
bool closes(char c) {
  return c == ')' || c == ']' || c == '}';
}

// Where the bracket that `text` ends with was opened; npos where it does not end with one.
size_t opening_of_last(std::string_view text) {
  if (text.empty() || !closes(text.back())) return std::string_view::npos;
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (closes(text[i])) ++depth;
    if (opens(text[i]) && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Places of `wanted` outside all brackets.
std::vector<size_t> at_top(std::string_view text, char wanted) {
  std::vector<size_t> places;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (opens(text[i])) ++depth;
    if (closes(text[i])) --depth;
    if (depth == 0 && text[i] == wanted) places.push_back(i);
  }
  return places;
}

// The "=" of plain assignments: no comparison, no augmented one, no ":=".
std::vector<size_t> assignments(std::string_view text) {
  std::vector<size_t> places;
  for (const size_t at : at_top(text, '=')) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + 1 < text.size() ? text[at + 1] : ' ';
    if (after == '=' || before == '=') return {};
    if (std::string_view("!<>:+-*/%&|^@").find(before) != std::string_view::npos) return {};
    places.push_back(at);
  }
  return places;
}

// "store", "self.store", "a.b[k]": a thing one can name again.
bool is_place(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_word(c) || c == '.' || c == '[' || c == ']' || c == '~';
  });
}

PythonStatement assignment_of(std::string_view text, std::string_view plain, size_t equals) {
  PythonStatement statement;
  std::string_view left = trimmed(plain.substr(0, equals));
  statement.value = trimmed(text.substr(equals + 1));
  if (const auto colons = at_top(left, ':'); !colons.empty()) {
    left = trimmed(left.substr(0, colons.front()));  // an annotation
  }
  if (is_identifier(left)) {
    statement.kind = PythonStatement::Kind::kAssign;
    statement.target = left;
    return statement;
  }
  const size_t open = opening_of_last(left);
  if (open == std::string_view::npos || left[open] != '[') return statement;
  const std::string_view target = trimmed(left.substr(0, open));
  if (!is_place(target)) return statement;
  statement.kind = PythonStatement::Kind::kSetItem;
  statement.target = target;
  return statement;
}

PythonStatement call_of(std::string_view text, std::string_view plain) {
  PythonStatement statement;
  const size_t open = opening_of_last(plain);
  if (open == std::string_view::npos || plain[open] != '(') return statement;
  const std::string_view callee = plain.substr(0, open);
  const size_t dot = callee.rfind('.');
  if (dot == std::string_view::npos || !is_place(callee.substr(0, dot))) return statement;
  const std::string_view method = callee.substr(dot + 1);
  if (std::find(kGrow.begin(), kGrow.end(), method) == kGrow.end()) return statement;
  statement.kind = PythonStatement::Kind::kStore;
  statement.target = callee.substr(0, dot);
  statement.value = trimmed(text.substr(open + 1, text.size() - open - 2));
  return statement;
}

std::string without_detach(std::string_view text) {
  constexpr std::string_view kDetach = ".detach()";
  while (text.ends_with(kDetach)) text.remove_suffix(kDetach.size());
  return std::string(text);
}

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), is_word);
}

PythonStatement parse_statement(std::string_view text) {
  text = trimmed(text);
  if (text.ends_with("...")) return {};  // cut
  const std::string plain = without_strings(text);
  constexpr std::string_view kReturn = "return ";
  if (text.starts_with(kReturn)) {
    return {PythonStatement::Kind::kReturn, "", std::string(trimmed(text.substr(kReturn.size())))};
  }
  const std::vector<size_t> equals = assignments(plain);
  if (equals.size() == 1) return assignment_of(text, plain, equals.front());
  return equals.empty() ? call_of(text, plain) : PythonStatement{};
}

std::vector<std::string> stored_elements(std::string_view value) {
  value = trimmed(value);
  const std::string plain = without_strings(value);
  std::vector<std::string> elements;
  if (value.starts_with("lambda") && plain.find(':') != std::string::npos) {
    return stored_elements(value.substr(plain.find(':') + 1));  // it keeps what it names
  }
  // The arguments of insert(0, x), or a tuple without brackets.
  if (const auto commas = at_top(plain, ','); !commas.empty()) {
    size_t from = 0;
    for (size_t i = 0; i <= commas.size(); ++i) {
      const size_t to = i < commas.size() ? commas[i] : value.size();
      for (std::string& element : stored_elements(value.substr(from, to - from))) {
        elements.push_back(std::move(element));
      }
      from = to + 1;
    }
    return elements;
  }
  if (value.empty()) return elements;
  if (opens(plain.front()) && opening_of_last(plain) == 0) {
    return stored_elements(value.substr(1, value.size() - 2));
  }
  if (const auto colons = at_top(plain, ':'); colons.size() == 1) {
    return stored_elements(value.substr(colons.front() + 1));  // of a dict
  }
  elements.push_back(without_detach(value));
  return elements;
}

std::string called(std::string_view expression) {
  expression = trimmed(expression);
  const std::string plain = without_strings(expression);
  const size_t open = opening_of_last(plain);
  if (open == std::string::npos || plain[open] != '(') return {};
  const std::string_view callee = expression.substr(0, open);
  return is_place(callee) ? std::string(callee) : std::string();
}

}  // namespace memscope
