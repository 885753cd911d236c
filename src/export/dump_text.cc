#include "export/dump_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace memscope {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c - 1) < 0x7F; });
}

}  // namespace

std::string clean_text(std::string_view text) {
  if (is_plain_ascii(text)) return std::string(text);
  // The library knows what UTF-8 is: bad bytes are replaced on the way out, the rest comes back.
  const nlohmann::json json = std::string(text);
  const std::string dumped = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto parsed = nlohmann::json::parse(dumped, nullptr, false);
  std::string clean = parsed.is_string() ? parsed.get<std::string>() : std::string();
  for (size_t at = clean.find('\0'); at != std::string::npos; at = clean.find('\0', at)) {
    clean.replace(at, 1, kReplacement);
  }
  return clean;
}

std::string clean_line(std::string_view text) {
  std::string line = clean_text(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool needs_json_escape(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == 0x7F;
  });
}

bool breaks_attr(std::string_view value) {
  if (value.empty()) return false;
  if (value.front() == ' ' || value.back() == ' ') return true;
  return std::any_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || std::strchr(",:{}\"\\", c) != nullptr;
  });
}

bool needs_csv_quotes(std::string_view field) {
  if (field.empty()) return false;
  // Blanks at the ends are not lost by RFC 4180, but by many readers.
  if (field.front() == ' ' || field.back() == ' ') return true;
  return std::any_of(field.begin(), field.end(),
                     [](char c) { return c == ',' || c == '"' || c == '\n' || c == '\r'; });
}

char* put_doubling_quotes(char* out, std::string_view text) {
  while (!text.empty()) {
    const void* quote = std::memchr(text.data(), '"', text.size());
    const size_t plain =
        quote == nullptr ? text.size()
                         : static_cast<size_t>(static_cast<const char*>(quote) - text.data()) + 1;
    std::memcpy(out, text.data(), plain);
    out += plain;
    if (quote != nullptr) *out++ = '"';
    text.remove_prefix(plain);
  }
  return out;
}

char* put_address(char* out, uint64_t address) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out[0] = '0';
  out[1] = 'x';
  for (size_t i = kAddressDigits; i-- > 2; address >>= 4) out[i] = kDigits[address & 15u];
  return out + kAddressDigits;
}

char* put_number(char* out, uint64_t number) {
  return std::to_chars(out, out + 20, number).ptr;
}

}  // namespace memscope
