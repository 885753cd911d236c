#include "view/request.h"

#include <charconv>
#include <cmath>

namespace memscope::view {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) {
        return std::nullopt;
      }
      result += static_cast<char>(digit(text[i + 1]) << 4 | digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i] == '+' && plus_is_blank ? ' ' : text[i];
    }
  }
  return result;
}

Params Params::from_query(std::string_view query) {
  Params params;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(part.find('='), part.size());
    auto name = percent_decode(part.substr(0, equals), true);
    auto value = percent_decode(part.substr(std::min(equals + 1, part.size())), true);
    if (!name || !value) {
      params.refuse("", "the address is not percent-encoded as it should be");
      continue;
    }
    params.values_[*name] = std::move(*value);
  }
  return params;
}

Params Params::from_values(std::map<std::string, std::string> values) {
  Params params;
  params.values_ = std::move(values);
  return params;
}

void Params::refuse(const std::string& name, const std::string& message) {
  if (!bad_) bad_ = BadParameter{message, name};
}

std::string Params::text(const std::string& name, std::string_view otherwise) {
  const auto at = values_.find(name);
  return at == values_.end() ? std::string(otherwise) : at->second;
}

int64_t Params::integer(const std::string& name, int64_t least, int64_t most,
                        std::optional<int64_t> otherwise) {
  const auto at = values_.find(name);
  if (at == values_.end()) {
    if (otherwise) return *otherwise;
    refuse(name, name + " is missing");
    return least;
  }
  const std::string& text = at->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    refuse(name, name + " is a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most));
    return least;
  }
  return value;
}

int64_t Params::time(const std::string& name, std::optional<int64_t> otherwise) {
  const auto at = values_.find(name);
  if (at == values_.end()) {
    if (otherwise) return *otherwise;
    refuse(name, name + " is missing");
    return 0;
  }
  const std::string& text = at->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) < 9e15)) {
    refuse(name, name + " is a time in ns since the session's origin");
    return 0;
  }
  return static_cast<int64_t>(std::floor(value));
}

}  // namespace memscope::view
