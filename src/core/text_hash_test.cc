#include "core/text_hash.h"

#include <initializer_list>

#include "gtest/gtest.h"

namespace memscope {
namespace {

uint64_t hash_of(std::initializer_list<std::string_view> texts) {
  TextHash hash;
  for (const std::string_view text : texts) hash.add(text);
  return hash.value();
}

// One round of FNV-1a by hand: (0xCBF29CE484222325 ^ 0xFF) * 0x100000001B3 mod 2^64.
TEST(TextHash, OfAnEmptyTextIsOneRound) {
  EXPECT_EQ(hash_of({}), 0xCBF29CE484222325u);
  EXPECT_EQ(hash_of({""}), 0xAF64724C8602EB6Eu);
}

TEST(TextHash, KnowsWhereOneTextEndsAndTheNextBegins) {
  EXPECT_NE(hash_of({"a", "b"}), hash_of({"ab"}));
  EXPECT_NE(hash_of({"a", ""}), hash_of({"a"}));
  EXPECT_EQ(hash_of({"a", "b"}), hash_of({"a", "b"}));
}

}  // namespace
}  // namespace memscope
