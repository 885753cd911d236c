#include "import/attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<std::string, std::string>> pairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> all;
  Attributes attributes(text);
  for (std::string_view key, value; attributes.next(key, value);) all.emplace_back(key, value);
  return all;
}

TEST(Attributes, OfACsv) {
  EXPECT_THAT(
      pairs("{allocation_id:4,addr:0x10,size:-14336}"),
      ElementsAre(Pair("allocation_id", "4"), Pair("addr", "0x10"), Pair("size", "-14336")));
  EXPECT_THAT(pairs("{owner:,MID:7}"), ElementsAre(Pair("owner", ""), Pair("MID", "7")));
}

TEST(Attributes, OfADb) {
  EXPECT_THAT(pairs(R"({"allocation_id":"4","size":"16","owner":"a\"b\\c\u4e2d"})"),
              ElementsAre(Pair("allocation_id", "4"), Pair("size", "16"),
                          Pair("owner", "a\"b\\c\xE4\xB8\xAD")));
  EXPECT_THAT(pairs(R"({"size": 16, "pinned": true})"),
              ElementsAre(Pair("size", "16"), Pair("pinned", "true")));
}

TEST(Attributes, None) {
  for (const char* text : {"", "{}", "''", "  ", "{", "}", "{,}", "{a}"}) {
    EXPECT_THAT(pairs(text), IsEmpty()) << text;
  }
}

TEST(Attributes, CommasInValues) {
  EXPECT_THAT(
      pairs("{size:4,inefficient_type:early_allocation,late_deallocation,used:5}"),
      ElementsAre(Pair("size", "4"), Pair("inefficient_type", "early_allocation,late_deallocation"),
                  Pair("used", "5")));
  // A label may look like a key; only a known one ends it.
  EXPECT_THAT(pairs("{owner:PTA@a,b:c,size:4}"),
              ElementsAre(Pair("owner", "PTA@a,b:c"), Pair("size", "4")));
  EXPECT_THAT(pairs("{shape:[2, 3],dtype:float}"),
              ElementsAre(Pair("shape", "[2, 3]"), Pair("dtype", "float")));
  // As `msmemscope convert` writes them.
  EXPECT_THAT(pairs(R"({owner:"a,size:9",size:4})"),
              ElementsAre(Pair("owner", "a,size:9"), Pair("size", "4")));
}

TEST(Attributes, RawQuotesInALabel) {
  EXPECT_THAT(pairs(R"({"owner":"my "big" one","size":"4"})"),
              ElementsAre(Pair("owner", "my \"big\" one"), Pair("size", "4")));
}

TEST(FileNumber, DecimalHexAndNegative) {
  EXPECT_EQ(file_number("20615843020800")->value, 20615843020800u);
  EXPECT_EQ(file_number("0x000012c041400000")->value, 0x12c041400000u);
  EXPECT_EQ(file_number(" 5 ")->value, 5u);
  EXPECT_TRUE(file_number("-14336")->negative);
  EXPECT_EQ(file_number("-14336")->value, 14336u);
  EXPECT_FALSE(file_count("-1"));
  for (const char* text : {"", "x", "5x", "1.5", "0x", "99999999999999999999", "--1", "+1"}) {
    EXPECT_FALSE(file_number(text)) << text;
  }
}

}  // namespace
}  // namespace memscope
