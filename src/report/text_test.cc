#include "report/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace memscope {
namespace {

TEST(Printable, NothingDrivesTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mred"), "a\xEF\xBF\xBD[31mred");
  EXPECT_EQ(printable("one\n  two\t three "), "one two three");
  EXPECT_EQ(printable("\xC2\x9B"), "\xEF\xBF\xBD");  // the one-byte CSI
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "x"),
            "\xEF\xBF\xBDx");  // right-to-left override
}

TEST(Printable, BadBytesAreReplacedGoodOnesKept) {
  EXPECT_EQ(printable("\xFF"
                      "ok"),
            "\xEF\xBF\xBDok");
  EXPECT_EQ(printable("\xE4\xB8"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // a character cut short
  EXPECT_EQ(printable("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // an overlong '/'
  EXPECT_EQ(printable("漏れ"), "漏れ");
}

TEST(DisplayWidth, WideAndCombiningCharacters) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("漏れ"), 4u);
  EXPECT_EQ(display_width("e\xCC\x81"), 1u);  // e and a combining acute
  EXPECT_EQ(display_width("▁█·…"), 4u);
}

TEST(Cut, FitsTheWidth) {
  EXPECT_EQ(cut_end("short", 5, "…"), "short");
  EXPECT_EQ(cut_end("longer", 5, "…"), "long…");
  EXPECT_EQ(cut_end("漏れ漏れ", 6, "…"), "漏れ…");  // 4 + 1: a third would be 7
  EXPECT_EQ(cut_start("/a/long/path.py", 8, "…"), "…path.py");
  EXPECT_EQ(cut_end("longer", 0, "..."), "");
}

TEST(Wrap, BreaksAtBlanksAndNeverInfinitely) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("", 7), (std::vector<std::string>{""}));
  EXPECT_EQ(wrap("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
  EXPECT_EQ(wrap("漏れ", 1), (std::vector<std::string>{"漏", "れ"}));
}

TEST(RelativePath, OnlyBelowTheDirectory) {
  EXPECT_EQ(relative_path("/work/app/a.py", "/work/app"), "a.py");
  EXPECT_EQ(relative_path("/work/app/a.py", "/work/app/"), "a.py");
  EXPECT_EQ(relative_path("/work/apple/a.py", "/work/app"), "/work/apple/a.py");
  EXPECT_EQ(relative_path("/work/app/a.py", "/"), "/work/app/a.py");
}

TEST(ProgramName, IsWhatThePersonCallsIt) {
  EXPECT_EQ(program_name("python3", "python3 -u /app/train.py --lr 1"), "train.py");
  EXPECT_EQ(program_name("/usr/bin/python3", "/usr/bin/python3 -X dev -m trainer x"), "trainer");
  EXPECT_EQ(program_name("python3", "python3 -c import x"), "python3");
  EXPECT_EQ(program_name("python3", "python3"), "python3");
  EXPECT_EQ(program_name("/app/train.py", "/app/train.py"), "train.py");
  EXPECT_EQ(program_name("", ""), "");
}

TEST(Sparkline, RunsFromItsMinimumToItsMaximum) {
  const std::vector<double> rising = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(sparkline(rising, 8, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(rising, 4, true), "▂▄▆█");  // values 1, 3, 5, 7
  const std::vector<double> two = {5, 1};
  EXPECT_EQ(sparkline(two, 8, false), "#_");
}

TEST(Sparkline, SaysNothingAboutAFlatOrBrokenCurve) {
  const std::vector<double> flat = {3, 3, 3};
  EXPECT_EQ(sparkline(flat, 8, true), "");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> broken = {nan, 1, nan};
  EXPECT_EQ(sparkline(broken, 8, true), "");
}

}  // namespace
}  // namespace memscope
