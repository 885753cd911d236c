// Pickles written by hand for this room's tests: each call is an opcode of Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memscope {

// How a writer numbers what it may refer to again, and which opcodes it has.
enum class PickleStyle : uint8_t {
  kPython2,  // Python, protocol 2: BINPUT
  kPython4,  // protocol 4: FRAME, MEMOIZE, SHORT_BINUNICODE
  kPython5,
  kTorch,  // torch's C++ writer: protocol 2, a list's items all between one MARK and its APPENDS
};

class Pickle {
 public:
  explicit Pickle(PickleStyle style = PickleStyle::kPython4) : style_(style) {
    raw("\x80");
    byte(style == PickleStyle::kPython4 ? 4 : style == PickleStyle::kPython5 ? 5 : 2);
  }

  Pickle& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Pickle& byte(unsigned value) {
    bytes_ += static_cast<char>(value);
    return *this;
  }
  Pickle& u32(uint32_t value) { return number(value, 4); }
  Pickle& u64(uint64_t value) { return number(value, 8); }

  // A text; the second time a reference to the first.
  Pickle& text(std::string_view text) {
    for (const auto& [known, index] : texts_) {
      if (known == text) return get(index);
    }
    if (modern()) {
      raw("\x8c").byte(static_cast<unsigned>(text.size())).raw(text);
    } else {
      raw("X").u32(static_cast<uint32_t>(text.size())).raw(text);
    }
    texts_.emplace_back(text, memo_);
    return remember();
  }
  Pickle& integer(uint64_t value) {
    if (value < 256) return raw("K").byte(static_cast<unsigned>(value));
    if (value < 65536) {
      return raw("M")
          .byte(static_cast<unsigned>(value & 255))
          .byte(static_cast<unsigned>(value >> 8));
    }
    if (value < uint64_t{1} << 31) return raw("J").u32(static_cast<uint32_t>(value));
    // LONG1, with a byte more where the sign would be taken for a minus.
    const bool large = value >> 63 != 0;
    raw("\x8a").byte(large ? 9 : 8).u64(value);
    return large ? byte(0) : *this;
  }
  Pickle& list() { return raw("]").remember(); }
  Pickle& dict() { return raw("}").remember(); }
  Pickle& mark() { return raw("("); }
  Pickle& appends() { return raw("e"); }
  Pickle& set_items() { return raw("u"); }
  Pickle& pair(uint64_t first, uint64_t second) {
    return integer(first).integer(second).raw("\x86").remember();
  }
  Pickle& get(uint32_t index) { return index < 256 ? raw("h").byte(index) : raw("j").u32(index); }
  uint32_t next_memo() const { return memo_; }
  std::string end() { return bytes_ + "."; }
  const std::string& bytes() const { return bytes_; }
  PickleStyle style() const { return style_; }

 private:
  bool modern() const { return style_ == PickleStyle::kPython4 || style_ == PickleStyle::kPython5; }
  Pickle& number(uint64_t value, size_t bytes) {
    char raw_bytes[8];
    std::memcpy(raw_bytes, &value, sizeof(raw_bytes));
    bytes_.append(raw_bytes, bytes);
    return *this;
  }
  Pickle& remember() {
    const uint32_t index = memo_++;
    if (modern()) return raw("\x94");
    return index < 256 ? raw("q").byte(index) : raw("r").u32(index);
  }

  PickleStyle style_;
  std::string bytes_;
  uint32_t memo_ = 0;
  std::vector<std::pair<std::string, uint32_t>> texts_;
};

}  // namespace memscope
