#include "analysis/statement.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace memscope {
namespace {

struct Found {
  uint32_t line, end_line;
  std::string text;
  friend bool operator==(const Found&, const Found&) = default;
};
std::ostream& operator<<(std::ostream& out, const Found& f) {
  return out << f.line << ".." << f.end_line << " " << f.text;
}

Found find(std::string_view source, uint32_t line) {
  const Statements statements(source);
  const StatementExtent extent = statements.at(line);
  return {extent.line, extent.end_line, statements.text(source, extent)};
}

TEST(Statements, OneLine) {
  EXPECT_EQ(find("a = 1\n    b = 2  # two\nc", 2), (Found{2, 2, "b = 2"}));
  EXPECT_EQ(find("a = 1\n    b = 2  # two\nc", 3), (Found{3, 3, "c"}));
}

TEST(Statements, BracketsJoinLines) {
  const std::string source =
      "x = f(\n"
      "    1,  # one (\n"
      "    [2,\n"
      "     3],\n"
      ")\n"
      "y = 2\n";
  for (uint32_t line = 1; line <= 5; ++line) {
    EXPECT_EQ(find(source, line), (Found{1, 5, "x = f(1, [2, 3],)"}));
  }
  EXPECT_EQ(find(source, 6), (Found{6, 6, "y = 2"}));
}

TEST(Statements, BackslashesJoinLines) {
  EXPECT_EQ(find("a = 1 + \\\n    2\nb = 3", 2), (Found{1, 2, "a = 1 + 2"}));
  EXPECT_EQ(find("a = 1 + \\\r\n    2\r\nb = 3", 1), (Found{1, 2, "a = 1 + 2"}));
}

TEST(Statements, StringsHideBracketsAndComments) {
  EXPECT_EQ(find("a = '(#'\nb = 2", 1), (Found{1, 1, "a = '(#'"}));
  EXPECT_EQ(find("a = 'it\\'s ('\nb = 2", 2), (Found{2, 2, "b = 2"}));
  EXPECT_EQ(find("a = r'\\\\'  + '('\nb = 2", 2), (Found{2, 2, "b = 2"}));
}

TEST(Statements, TripleQuotedStringsSpanLines) {
  EXPECT_EQ(find("s = \"\"\"one ' \"two\" (\n# no comment\n\"\"\"\nb = 2", 2),
            (Found{1, 3, "s = \"\"\"one ' \"two\" (# no comment \"\"\""}));
  EXPECT_EQ(find("s = rb'''\\\n'''\nb = 2", 3), (Found{3, 3, "b = 2"}));
}

TEST(Statements, FormattedStrings) {
  EXPECT_EQ(find("s = f'{d[\"k\"]} {{ {x:>{w}}'\nb = 2", 2).line, 2u);
  EXPECT_EQ(find("s = f\"{d[\"k\"]}\"\nb = 2", 2).line, 2u) << "the same quote, since 3.12";
  EXPECT_EQ(find("s = f'{t:%H:%M}' + f\"{x:'>10}\"\nb = 2", 2).line, 2u);
  EXPECT_EQ(find("s = f'''{\n  x\n}'''\nb = 2", 2), (Found{1, 3, "s = f'''{ x }'''"}));
  EXPECT_EQ(find("s = f'{{'\nb = 2", 2).line, 2u);
}

TEST(Statements, BlankLinesAndCommentsStandAlone) {
  const std::string source = "a = 1\n\n# f(\nb = 2\n";
  EXPECT_EQ(find(source, 2), (Found{2, 2, ""}));
  EXPECT_EQ(find(source, 3), (Found{3, 3, ""}));
  EXPECT_EQ(find(source, 4), (Found{4, 4, "b = 2"}));
}

TEST(Statements, DecoratorsAndHeadersAreStatements) {
  EXPECT_EQ(find("@torch.no_grad()\ndef f(a,\n      b):\n    return a\n", 3),
            (Found{2, 3, "def f(a, b):"}));
}

TEST(Statements, AnUnterminatedStringEndsWithItsLine) {
  EXPECT_EQ(find("a = 'oops\nb = 2", 2), (Found{2, 2, "b = 2"}));
}

TEST(Statements, OutsideTheText) {
  EXPECT_EQ(find("a = 1\n", 0), (Found{0, 0, ""}));
  EXPECT_EQ(find("a = 1\n", 99), (Found{99, 99, ""}));
  EXPECT_EQ(find("", 1), (Found{1, 1, ""}));
}

TEST(Statements, LongTextIsCutAtACharacter) {
  std::string source = "s = '";
  for (int i = 0; i < 200; ++i) source += "\xC3\xA4";
  source += "'";
  const std::string text = find(source, 1).text;
  EXPECT_LE(text.size(), Statements::kMaxTextBytes);
  EXPECT_EQ(text.substr(text.size() - 5), "\xC3\xA4...");
}

TEST(Statements, AnyBytesAreFine) {
  std::mt19937_64 random(7);
  std::string alphabet = "'\"\\\n\r#(){}[]:frb x\xC3";
  alphabet.push_back('\0');
  for (int round = 0; round < 20'000; ++round) {
    std::string source(random() % 60, ' ');
    for (char& c : source) c = alphabet[random() % alphabet.size()];
    const Statements statements(source);
    uint32_t before = 0;
    for (uint32_t line = 0; line <= statements.line_count() + 1; ++line) {
      const StatementExtent extent = statements.at(line);
      ASSERT_LE(extent.line, line);
      ASSERT_GE(extent.end_line, line);
      ASSERT_GE(extent.line, before) << "statements do not overlap";
      before = extent.line;
      statements.text(source, extent);
    }
  }
}

}  // namespace
}  // namespace memscope
