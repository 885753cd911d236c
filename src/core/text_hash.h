// A hash of several texts that is the same in every run and build, so that it may be kept: FNV-1a
// (Fowler, Noll, Vo), 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace memscope {

class TextHash {
 public:
  // "a", "b" is another sequence than "ab": a byte that no UTF-8 has ends each.
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xFF);
  }
  uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }
  uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace memscope
