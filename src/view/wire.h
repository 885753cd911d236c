// Binary answers: little-endian numbers and arrays, each array at a multiple of 8 bytes, so that
// the page can lay a typed array over it.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace memscope::view {

static_assert(std::endian::native == std::endian::little);

class WireWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    append(&value, sizeof(value));
  }
  // `value_of(i)` for i < count, then zeros up to a multiple of 8.
  template <typename T, typename ValueOf>
  void array(size_t count, ValueOf value_of) {
    const size_t at = text_.size();
    text_.resize((at + count * sizeof(T) + 7) / 8 * 8);
    for (size_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(value_of(i));
      std::memcpy(text_.data() + at + i * sizeof(T), &value, sizeof(T));
    }
  }
  std::string take() { return std::move(text_); }

 private:
  void append(const void* from, size_t bytes) {
    text_.append(static_cast<const char*>(from), bytes);
  }
  std::string text_;
};

}  // namespace memscope::view
