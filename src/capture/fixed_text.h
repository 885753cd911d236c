// Text built in a buffer of fixed size, for JSON and paths: no allocation, always terminated; what
// does not fit is cut off and length() still counts it.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string_view>

namespace memscope::capture {

class FixedText {
 public:
  FixedText(char* buffer, size_t size) : buffer_(buffer), size_(size) {
    if (size_ != 0) buffer_[0] = '\0';
  }

  __attribute__((format(printf, 2, 3))) FixedText& add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = length_ < size_ ? size_ - length_ : 0;
    const int wrote =
        std::vsnprintf(room != 0 ? buffer_ + length_ : nullptr, room, format, arguments);
    va_end(arguments);
    if (wrote > 0) length_ += static_cast<size_t>(wrote);
    return *this;
  }

  // A JSON string with its quotes. Bytes that are not ASCII are passed on as they are.
  FixedText& add_json(std::string_view text) {
    add("\"");
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        add("\\%c", c);
      } else if (byte < 0x20) {
        add("\\u%04x", byte);
      } else {
        add("%c", c);
      }
    }
    return add("\"");
  }

  size_t length() const { return length_; }
  bool whole() const { return length_ < size_; }
  const char* c_str() const { return buffer_; }

 private:
  char* buffer_;
  size_t size_;
  size_t length_ = 0;
};

}  // namespace memscope::capture
