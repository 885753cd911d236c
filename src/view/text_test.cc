#include "view/text.h"

#include <gtest/gtest.h>

#include "view/request.h"

namespace memscope::view {
namespace {

TEST(Text, NumbersAsPeopleTypeThem) {
  EXPECT_EQ(number_from_text("4096"), 4096);
  EXPECT_EQ(number_from_text("-5"), -5);
  EXPECT_EQ(number_from_text(" 0x7f00 "), 0x7f00);
  EXPECT_EQ(number_from_text("0xffffffffffffffff"), -1);  // an address: its bits
  EXPECT_EQ(number_from_text("4k"), 4096);
  EXPECT_EQ(number_from_text("1.5 MiB"), 1572864);
  EXPECT_EQ(number_from_text("2GB"), int64_t{2} << 30);
  EXPECT_EQ(number_from_text("20ms"), 20'000'000);
  EXPECT_EQ(number_from_text("3 µs"), 3000);
  EXPECT_EQ(number_from_text("9007199254740993"), 9007199254740993);  // no double has it
  for (const char* text : {"", "k", "4x", "0x", "0xg", "1e30", "nan", "inf", "--4", "4 4"}) {
    EXPECT_EQ(number_from_text(text), std::nullopt) << text;
  }
}

TEST(Text, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(cut("short"), "short");
  EXPECT_EQ(cut("abcdef", 3), "abc…");
  EXPECT_EQ(cut("ab\xc3\xa4z", 3), "ab…");  // not within the ä
}

TEST(Text, SizesAndTimesForPeople) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(uint64_t{20} << 30), "20 GiB");
  EXPECT_EQ(duration_text(1'500'000'000), "1.5 s");
  EXPECT_EQ(address_text(0x7f0000000200), "0x7f0000000200");
}

TEST(Params, AreTakenOutOfTheAddress) {
  Params params = Params::from_query("a=1&b=x%20y%2B&c=%7B%7D&a=2&d");
  EXPECT_EQ(params.integer("a", 0, 9), 2);
  EXPECT_EQ(params.text("b"), "x y+");
  EXPECT_EQ(params.text("c"), "{}");
  EXPECT_EQ(params.text("d", "z"), "");
  EXPECT_EQ(params.time("e", 7), 7);
  EXPECT_FALSE(params.bad());
  EXPECT_EQ(params.integer("a", 3, 9), 3);
  ASSERT_TRUE(params.bad());
  EXPECT_EQ(params.bad()->parameter, "a");
  params.integer("none", 0, 1);
  EXPECT_EQ(params.bad()->parameter, "a");  // the first thing that is wrong
  EXPECT_TRUE(Params::from_query("a=%zz").bad());
  EXPECT_TRUE(Params::from_query("a=%4").bad());
  Params times = Params::from_query("t=12.75&u=-3.5");
  EXPECT_EQ(times.time("t"), 12);
  EXPECT_EQ(times.time("u"), -4);
}

}  // namespace
}  // namespace memscope::view
