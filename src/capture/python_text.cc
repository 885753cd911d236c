#include "capture/python_text.h"

#include <algorithm>
#include <cstring>

namespace memscope::capture {
namespace {

// PyASCIIObject.state, little-endian: interned:2, kind:3, compact:1, ascii:1. The same bits from
// 3.9 to 3.14 (GIL builds).
constexpr uint32_t kKindShift = 2, kKindMask = 7;
constexpr uint32_t kCompactBit = 1u << 5;
constexpr uint32_t kAsciiBit = 1u << 6;

template <class T>
T load(const void* object, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

// Writes one character; false where it does not fit.
bool put_utf8(uint32_t c, TextScratch* scratch) {
  if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff) c = 0xfffd;
  char bytes[4];
  size_t size;
  if (c < 0x80) {
    bytes[0] = static_cast<char>(c);
    size = 1;
  } else if (c < 0x800) {
    bytes[0] = static_cast<char>(0xc0 | c >> 6);
    bytes[1] = static_cast<char>(0x80 | (c & 0x3f));
    size = 2;
  } else if (c < 0x10000) {
    bytes[0] = static_cast<char>(0xe0 | c >> 12);
    bytes[1] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
    bytes[2] = static_cast<char>(0x80 | (c & 0x3f));
    size = 3;
  } else {
    bytes[0] = static_cast<char>(0xf0 | c >> 18);
    bytes[1] = static_cast<char>(0x80 | (c >> 12 & 0x3f));
    bytes[2] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
    bytes[3] = static_cast<char>(0x80 | (c & 0x3f));
    size = 4;
  }
  if (size > scratch->left) return false;
  std::memcpy(scratch->next, bytes, size);
  scratch->next += size;
  scratch->left -= size;
  return true;
}

template <class Unit>
std::string_view convert(const void* characters, size_t length, TextScratch* scratch) {
  TextScratch out{scratch->next, std::min(scratch->left, kMaxText)};
  for (size_t i = 0; i < length; ++i) {
    if (!put_utf8(load<Unit>(characters, i * sizeof(Unit)), &out)) break;
  }
  auto size = static_cast<size_t>(out.next - scratch->next);
  std::string_view text(scratch->next, size);
  scratch->next += size;
  scratch->left -= size;
  return text;
}

}  // namespace

std::string_view python_text(const PythonLayout& layout, const void* object, TextScratch* scratch) {
  if (object == nullptr) return {};
  const auto length = load<int64_t>(object, kTextLength);
  const auto state = load<uint32_t>(object, kTextState);
  if (length <= 0) return {};
  const uint32_t kind = (state >> kKindShift) & kKindMask;
  const bool ascii = (state & kAsciiBit) != 0;
  const void* characters;
  if ((state & kCompactBit) != 0) {
    characters =
        static_cast<const char*>(object) + (ascii ? layout.text_ascii : layout.text_compact);
  } else {
    characters = load<const void*>(object, layout.text_compact);
    if (characters == nullptr) return {};  // a legacy string that was never finished
  }
  const auto count = static_cast<size_t>(length);
  if (ascii && kind == 1) {
    return {static_cast<const char*>(characters), std::min(count, kMaxText)};
  }
  switch (kind) {
    case 1:
      return convert<uint8_t>(characters, count, scratch);
    case 2:
      return convert<uint16_t>(characters, count, scratch);
    case 4:
      return convert<uint32_t>(characters, count, scratch);
    default:
      return {};
  }
}

}  // namespace memscope::capture
