#include "capture/python_lines.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memscope::capture {
namespace {

using Bytes = std::vector<uint8_t>;

SourceLines at(uint32_t line) {
  return {line, line};
}
constexpr SourceLines kNone{};

// A function at line 10 whose code is 6 bytes of line 11, 4 of line 13, then line 12:
//   (0, +1) at once to 11; (6, +2) after 6 bytes to 13; (4, -1) after 4 more to 12.
TEST(Lnotab, EachPairMovesTheLineBeforeTheInstructionItReaches) {
  const Bytes table = {0, 1, 6, 2, 4, 0xff};
  EXPECT_EQ(lines_from_lnotab(table, 10, 0), at(11));
  EXPECT_EQ(lines_from_lnotab(table, 10, 4), at(11));
  EXPECT_EQ(lines_from_lnotab(table, 10, 6), at(13));
  EXPECT_EQ(lines_from_lnotab(table, 10, 8), at(13));
  EXPECT_EQ(lines_from_lnotab(table, 10, 10), at(12));
  EXPECT_EQ(lines_from_lnotab(table, 10, 1000), at(12)) << "the last line goes on to the end";
}

TEST(Lnotab, AFrameThatHasNotBegunIsAtTheFirstLine) {
  EXPECT_EQ(lines_from_lnotab(Bytes{0, 1}, 10, -1), at(10));
}

TEST(Lnotab, LongDistancesTakeSeveralPairs) {
  // 300 bytes = 255 + 45; 200 lines = 127 + 73.
  const Bytes table = {255, 0, 45, 127, 0, 73};
  EXPECT_EQ(lines_from_lnotab(table, 1, 298), at(1));
  EXPECT_EQ(lines_from_lnotab(table, 1, 300), at(201));
}

TEST(Lnotab, HalfAPairAtTheEndIsIgnored) {
  EXPECT_EQ(lines_from_lnotab(Bytes{2, 1, 4}, 1, 8), at(2));
  EXPECT_EQ(lines_from_lnotab(Bytes{}, 7, 0), at(7));
}

// Line 5 + 1 for 4 bytes, no line for 2, line 6 + 3 for 6.
TEST(LineDeltas, EachPairIsARangeOfOneLine) {
  const Bytes table = {4, 1, 2, 0x80, 6, 3};
  EXPECT_EQ(lines_from_deltas(table, 5, 0), at(6));
  EXPECT_EQ(lines_from_deltas(table, 5, 2), at(6));
  EXPECT_EQ(lines_from_deltas(table, 5, 4), kNone) << "-128: generated code";
  EXPECT_EQ(lines_from_deltas(table, 5, 6), at(9)) << "-128 does not move the line";
  EXPECT_EQ(lines_from_deltas(table, 5, 10), at(9));
  EXPECT_EQ(lines_from_deltas(table, 5, 12), kNone) << "beyond the code";
  EXPECT_EQ(lines_from_deltas(table, 5, -2), at(5));
}

TEST(LineDeltas, AnEmptyRangeOnlyMovesTheLine) {
  // +127, then +73 over 2 bytes: 200 lines in all.
  EXPECT_EQ(lines_from_deltas(Bytes{0, 127, 2, 73}, 1, 0), at(201));
}

uint8_t head(int code, int units) {
  return static_cast<uint8_t>(0x80 | code << 3 | (units - 1));
}

TEST(Locations, ShortFormsKeepTheLine) {
  // Code 3 with one byte of columns, two units; code 0, one unit.
  const Bytes table = {head(3, 2), 0x41, head(0, 1), 0x22};
  EXPECT_EQ(lines_from_locations(table, 20, 0), at(20));
  EXPECT_EQ(lines_from_locations(table, 20, 2), at(20));
  EXPECT_EQ(lines_from_locations(table, 20, 4), at(20));
  EXPECT_EQ(lines_from_locations(table, 20, 6), kNone) << "beyond the code";
  EXPECT_EQ(lines_from_locations(table, 20, -2), at(20)) << "not begun";
}

TEST(Locations, OneLineFormsMoveZeroToTwoLines) {
  const Bytes table = {head(10, 1), 4, 9, head(11, 1), 4, 9, head(12, 8), 4, 9};
  EXPECT_EQ(lines_from_locations(table, 1, 0), at(1));
  EXPECT_EQ(lines_from_locations(table, 1, 2), at(2));
  EXPECT_EQ(lines_from_locations(table, 1, 4), at(4));
  EXPECT_EQ(lines_from_locations(table, 1, 18), at(4)) << "8 units are bytes 4 to 19";
  EXPECT_EQ(lines_from_locations(table, 1, 20), kNone);
}

TEST(Locations, WithoutColumnsTheLineMovesBySignedVarint) {
  // Zig-zag with the sign in the lowest bit: 6 is +3; 5 is -2; 200 is 400 = 16 + 6 * 64:
  // 0x40 | 16, then 6.
  const Bytes table = {head(13, 1), 6, head(13, 1), 5, head(13, 1), 0x50, 6};
  EXPECT_EQ(lines_from_locations(table, 10, 0), at(13));
  EXPECT_EQ(lines_from_locations(table, 10, 2), at(11));
  EXPECT_EQ(lines_from_locations(table, 10, 4), at(211));
}

TEST(Locations, TheLongFormHasAnEndLine) {
  // +1 (2), four lines to the end (4), columns 5 and 70 (as 6, and 71 = 7 + 64: 0x47, 1).
  const Bytes table = {head(14, 3), 2, 4, 6, 0x47, 1, head(0, 1), 0};
  EXPECT_EQ(lines_from_locations(table, 30, 0), (SourceLines{31, 35}));
  EXPECT_EQ(lines_from_locations(table, 30, 4), (SourceLines{31, 35}));
  EXPECT_EQ(lines_from_locations(table, 30, 6), at(31)) << "the next entry starts at its columns";
}

TEST(Locations, GeneratedCodeHasNoLine) {
  const Bytes table = {head(15, 1), head(11, 1), 0, 0};
  EXPECT_EQ(lines_from_locations(table, 3, 0), kNone);
  EXPECT_EQ(lines_from_locations(table, 3, 2), at(4));
}

TEST(Locations, CutTablesEnd) {
  EXPECT_EQ(lines_from_locations(Bytes{}, 3, 0), kNone);
  EXPECT_EQ(lines_from_locations(Bytes{head(13, 1), 0x7f, 0x7f}, 3, 2), kNone);
  EXPECT_EQ(lines_from_locations(Bytes{head(14, 1)}, 3, 0), at(3)) << "missing bytes count as 0";
}

TEST(Lines, LinesOutsideAnIntAreNone) {
  EXPECT_EQ(lines_from_deltas(Bytes{2, 0xf0}, 1, 0), kNone) << "line -15";
  EXPECT_EQ(lines_from_lnotab(Bytes{0, 127}, 0x7fffffff, 0), kNone);
}

TEST(Lines, AnyBytesAreSafe) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    Bytes table(random() % 24);
    for (uint8_t& byte : table) byte = static_cast<uint8_t>(random());
    const auto first = static_cast<int32_t>(random());
    const auto instruction = static_cast<int64_t>(random() % 64) - 2;
    for (LineTable kind : {LineTable::kLnotab, LineTable::kDeltas, LineTable::kLocations}) {
      const SourceLines lines = source_lines(kind, table, first, instruction);
      EXPECT_LE(lines.line, lines.end_line);
    }
  }
}

}  // namespace
}  // namespace memscope::capture
