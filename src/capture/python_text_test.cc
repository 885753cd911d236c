#include "capture/python_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace memscope::capture {
namespace {

const PythonLayout& k311 = *python_layout(3, 11);
const PythonLayout& k312 = *python_layout(3, 12);

// A str as CPython lays it out: header of 16, length at 16, hash, state at 32; then
//   compact ASCII: characters behind PyASCIIObject; other compact: behind PyCompactUnicodeObject;
//   else a pointer to them there.
class FakeText {
 public:
  template <class Unit>
  FakeText(const PythonLayout& layout, const std::vector<Unit>& units, bool ascii, bool compact)
      : data_(units.size() * sizeof(Unit)) {
    if (!units.empty()) std::memcpy(data_.data(), units.data(), data_.size());
    const size_t start = ascii && compact ? layout.text_ascii : layout.text_compact;
    bytes_.resize(start + data_.size() + sizeof(void*));
    const auto length = static_cast<int64_t>(units.size());
    const uint32_t state = 1u | sizeof(Unit) << 2 | (compact ? 1u << 5 : 0) | (ascii ? 1u << 6 : 0);
    std::memcpy(&bytes_[16], &length, sizeof length);
    std::memcpy(&bytes_[32], &state, sizeof state);
    if (compact) {
      std::copy(data_.begin(), data_.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(start));
    } else {
      const void* pointer = data_.data();
      std::memcpy(&bytes_[start], &pointer, sizeof pointer);
    }
  }
  const void* object() const { return bytes_.data(); }
  char* characters(size_t start) { return &bytes_[start]; }
  char* at(size_t offset) { return &bytes_[offset]; }

 private:
  std::vector<char> data_, bytes_;
};

template <class Unit>
std::vector<Unit> units(std::initializer_list<uint32_t> characters) {
  return {characters.begin(), characters.end()};
}

std::string read(const PythonLayout& layout, const FakeText& text, size_t scratch_size = 256) {
  std::vector<char> scratch(scratch_size);
  TextScratch left{scratch.data(), scratch.size()};
  return std::string(python_text(layout, text.object(), &left));
}

TEST(PythonText, AsciiIsSeenInPlace) {
  FakeText text(k312, units<uint8_t>({'a', '.', 'p', 'y'}), true, true);
  TextScratch none{nullptr, 0};
  const std::string_view seen = python_text(k312, text.object(), &none);
  EXPECT_EQ(seen, "a.py");
  EXPECT_EQ(seen.data(), text.characters(40)) << "3.12: behind 40 bytes of PyASCIIObject";
  FakeText old(k311, units<uint8_t>({'b'}), true, true);
  EXPECT_EQ(python_text(k311, old.object(), &none).data(), old.characters(48)) << "3.11: 48";
}

TEST(PythonText, EveryKindBecomesUtf8) {
  // U+00E9 is C3 A9; U+4E2D is E4 B8 AD; U+1F600 is F0 9F 98 80.
  for (const PythonLayout* layout : {&k311, &k312}) {
    EXPECT_EQ(read(*layout, FakeText(*layout, units<uint8_t>({'c', 0xe9}), false, true)),
              "c\xc3\xa9");
    EXPECT_EQ(read(*layout, FakeText(*layout, units<uint16_t>({0x4e2d, 'x'}), false, true)),
              "\xe4\xb8\xadx");
    EXPECT_EQ(read(*layout, FakeText(*layout, units<uint32_t>({0x1f600}), false, true)),
              "\xf0\x9f\x98\x80");
    EXPECT_EQ(read(*layout, FakeText(*layout, units<uint16_t>({0x4e2d}), false, false)),
              "\xe4\xb8\xad")
        << "not compact: through the pointer";
  }
}

TEST(PythonText, ALoneSurrogateIsReplaced) {
  // os.fsdecode(b'\xff') is U+DCFF; U+FFFD is EF BF BD.
  EXPECT_EQ(read(k312, FakeText(k312, units<uint16_t>({'a', 0xdcff}), false, true)),
            "a\xef\xbf\xbd");
}

TEST(PythonText, WhatDoesNotFitIsCutAtACharacter) {
  const FakeText text(k312, units<uint16_t>({0x4e2d, 0x4e2d}), false, true);
  EXPECT_EQ(read(k312, text, 6), "\xe4\xb8\xad\xe4\xb8\xad");
  EXPECT_EQ(read(k312, text, 5), "\xe4\xb8\xad");
  EXPECT_EQ(read(k312, text, 2), "");
}

TEST(PythonText, TheScratchIsSharedFromTheFront) {
  const FakeText text(k312, units<uint8_t>({0xe9}), false, true);
  char scratch[4];
  TextScratch left{scratch, sizeof scratch};
  EXPECT_EQ(python_text(k312, text.object(), &left), "\xc3\xa9");
  EXPECT_EQ(left.next, scratch + 2);
  EXPECT_EQ(left.left, 2u);
}

TEST(PythonText, AbsurdObjectsGiveLittleOrNothing) {
  EXPECT_EQ(read(k312, FakeText(k312, units<uint8_t>({}), true, true)), "");
  TextScratch none{nullptr, 0};
  EXPECT_EQ(python_text(k312, nullptr, &none), "");
  FakeText negative(k312, units<uint8_t>({'a'}), true, true);
  const int64_t length = -5;
  std::memcpy(negative.at(16), &length, sizeof length);
  EXPECT_EQ(read(k312, negative), "");
  // A legacy string of 3.9 to 3.11 that was never finished: kind 0, no characters.
  FakeText unfinished(k311, units<uint8_t>({'a'}), false, false);
  const uint32_t state = 0;
  std::memcpy(unfinished.at(32), &state, sizeof state);
  EXPECT_EQ(read(k311, unfinished), "");
  FakeText huge(k312, std::vector<uint8_t>(10000, 'h'), true, true);
  EXPECT_EQ(read(k312, huge).size(), kMaxText);
}

}  // namespace
}  // namespace memscope::capture
