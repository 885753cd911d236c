#include "import/attributes.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace memscope {
namespace {

constexpr size_t kNone = std::string_view::npos;

constexpr std::array<std::string_view, 36> kKnown = {"allocation_id", "addr",
                                                     "size",          "used",
                                                     "total",         "process_used",
                                                     "device_used",   "owner",
                                                     "page_type",     "alloc_type",
                                                     "pinned",        "shadow",
                                                     "inefficient",   "inefficient_type",
                                                     "type",          "dtype",
                                                     "shape",         "format",
                                                     "streamId",      "taskId",
                                                     "free",          "reserved",
                                                     "max_reserved",  "allocated",
                                                     "max_allocated", "device_rate",
                                                     "reserved_rate", "func",
                                                     "req_size",      "flag",
                                                     "pool",          "ptr",
                                                     "timestamp",     "MID",
                                                     "source",        "backend"};

bool is_known(std::string_view key) {
  return std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
}

// Values that a user or a program words: anything may be in them.
bool is_free_text(std::string_view key) {
  return key == "owner" || key == "func" || key == "shape" || key == "dtype" || key == "format";
}

constexpr bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' ||
                           text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

// The key that text starts with, before a colon; "" for none.
std::string_view leading_key(std::string_view text) {
  size_t end = 0;
  constexpr size_t kLongest = 32;
  while (end < std::min(text.size(), kLongest) && (is_key_char(text[end]) || text[end] == ' ')) {
    ++end;
  }
  if (end == 0 || end >= text.size() || text[end] != ':') return {};
  return trimmed(text.substr(0, end));
}

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::optional<uint32_t> hex4(std::string_view text) {
  uint32_t code = 0;
  if (text.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
  if (error != std::errc{} || end != text.data() + 4) return std::nullopt;
  return code;
}

// Without JSON's escapes; what is none stays as it is.
void unescape(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const size_t simple = kFrom.find(c); simple != kNone) {
      out += kTo[simple];
      continue;
    }
    auto code = c == 'u' ? hex4(text.substr(i + 1)) : std::nullopt;
    if (!code) {
      out += '\\';
      out += c;
      continue;
    }
    i += 4;
    const bool high = *code >= 0xD800 && *code < 0xDC00;
    if (high && text.substr(i + 1, 2) == "\\u") {
      const auto low = hex4(text.substr(i + 3));
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
        i += 6;
      }
    }
    append_utf8(*code >= 0xD800 && *code < 0xE000 ? 0xFFFD : *code, out);
  }
}

}  // namespace

Attributes::Attributes(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('{')) text.remove_prefix(1);
  if (text.ends_with('}')) text.remove_suffix(1);
  text_ = text == "''" ? std::string_view() : trimmed(text);
}

// From the quote at at_ to the one that ends it.
std::string_view Attributes::json_string() {
  const size_t begin = ++at_;
  bool escaped = false;
  size_t end = begin;
  for (; end < text_.size(); ++end) {
    if (text_[end] == '\\') {
      escaped = true;
      ++end;
      continue;
    }
    if (text_[end] != '"') continue;
    const std::string_view rest = trimmed(text_.substr(end + 1));
    if (rest.empty() || rest.front() == ':') break;
    if (rest.front() != ',') continue;
    const std::string_view key = trimmed(rest.substr(1));
    if (key.empty() || key.front() == '"' || !leading_key(key).empty()) break;
  }
  end = std::min(end, text_.size());
  at_ = std::min(end + 1, text_.size());
  const std::string_view raw = text_.substr(begin, end - begin);
  if (!escaped) return raw;
  unescape(raw, scratch_);
  return scratch_;
}

std::string_view Attributes::bare_value(std::string_view key) {
  const size_t begin = at_;
  for (size_t comma = begin;; ++comma) {
    comma = std::min(text_.find(',', comma), text_.size());
    const std::string_view rest =
        comma == text_.size() ? std::string_view() : text_.substr(comma + 1);
    const bool quoted_key = trimmed(rest.substr(0, 40)).starts_with('"');
    const std::string_view next = leading_key(rest);
    if (comma == text_.size() || quoted_key ||
        (!next.empty() && (!is_free_text(key) || is_known(next)))) {
      at_ = comma;
      return trimmed(text_.substr(begin, comma - begin));
    }
  }
}

bool Attributes::next(std::string_view& key, std::string_view& value) {
  for (;;) {
    while (at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ' ')) ++at_;
    if (at_ >= text_.size()) return false;
    const size_t colon = text_.find(':', at_);
    if (colon == kNone) {
      at_ = text_.size();
      return false;
    }
    key = trimmed(text_.substr(at_, colon - at_));
    if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
      key = key.substr(1, key.size() - 2);
    at_ = colon + 1;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    value = at_ < text_.size() && text_[at_] == '"' ? json_string() : bare_value(key);
    return true;
  }
}

std::optional<FileNumber> file_number(std::string_view text) {
  text = trimmed(text);
  FileNumber number;
  if (text.starts_with('-')) {
    number.negative = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number.value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> file_count(std::string_view text) {
  const auto number = file_number(text);
  if (!number || number->negative) return std::nullopt;
  return number->value;
}

std::optional<uint64_t> file_time(std::string_view text) {
  const auto time = file_count(text);
  if (!time || *time == 0 || *time > INT64_MAX) return std::nullopt;
  const bool micro = *time >= 1'000'000'000'000'000 && *time < 10'000'000'000'000'000;
  return micro ? *time * 1000 : *time;
}

}  // namespace memscope
