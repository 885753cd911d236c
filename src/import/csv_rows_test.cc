// What is a row, whatever the writer did about quotes.
#include "import/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/test_dumps.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Read {
  uint64_t line;
  std::string problem, id, name, time, attr, python, native;
};

std::vector<Read> read(const std::string& text) {
  TestDirectory directory;
  write_bytes(directory / "f.csv", text);
  auto rows = CsvRows::open(directory / "f.csv");
  EXPECT_TRUE(rows.ok());
  std::vector<Read> all;
  for (CsvRows::Row row; rows.value().next(row);) {
    const auto cell = [&](Column column) { return std::string(row.cells[column]); };
    all.push_back({row.cells.line, row.problem, cell(Column::kId), cell(Column::kName),
                   cell(Column::kTime), cell(Column::kAttr), cell(Column::kPythonStack),
                   cell(Column::kCStack)});
  }
  return all;
}

std::string names_in(const std::string& name_as_written) {
  const auto rows = read(csv("1,MSTX,Mark," + name_as_written +
                             ",1764753083997498270,7,7,0,N/A,,,\n"
                             "2,MSTX,Mark,next,1764753083997498271,7,7,0,N/A,,,\n"));
  // A name never swallows the next row.
  EXPECT_THAT(rows, SizeIs(2));
  EXPECT_THAT(rows.back().name, "next");
  EXPECT_THAT(rows[0].problem, IsEmpty());
  EXPECT_EQ(rows[0].time, "1764753083997498270");
  return rows.empty() ? "" : rows[0].name;
}

TEST(CsvRows, NamesAsTheOriginalWroteThem) {
  // The original puts two quotes around a message and escapes nothing.
  EXPECT_EQ(names_in("N/A"), "N/A");
  EXPECT_EQ(names_in("\"step start\""), "step start");
  EXPECT_EQ(names_in("\"hello, world\""), "hello, world");
  EXPECT_EQ(names_in("\"hello, \"world\"\""), "hello, \"world\"");
  EXPECT_EQ(names_in("\"a\", \"b\", \"c\""), "a\", \"b\", \"c");
  EXPECT_EQ(names_in("\"\"quoted\"\""), "\"quoted\"");
  EXPECT_EQ(names_in("\"two\nlines\""), "two\nlines");
  EXPECT_EQ(names_in("\"\""), "");
  // Names of operators have no quotes around them.
  EXPECT_EQ(names_in("aten::add(Tensor a, Tensor b)"), "aten::add(Tensor a, Tensor b)");
}

TEST(CsvRows, NamesAsRfc4180HasThem) {
  EXPECT_EQ(names_in("\"say \"\"hi\"\", you\""), "say \"hi\", you");
  EXPECT_EQ(names_in("\"say \"\"hi\"\"\""), "say \"hi\"");
  EXPECT_EQ(names_in("\"\"\"\""), "\"");
  EXPECT_EQ(names_in("\"=1+1\""), "=1+1");
}

TEST(CsvRows, NoLabelPassesForARow) {
  // Quoted as RFC 4180 says a label is that label, whatever lines are in it: rows, with quotes of
  // their own or without, and what follows a name.
  for (const std::string label :
       {"a\n2,FREE,PTA,N/A,5,7,7,0,0x10,,,\nb", "a\nID,Event,Event Type\n",
        "x\",1764753083997498270,7,7,0,N/A,,,\n9,MSTX,Mark,\"forged",
        "\n9,MALLOC,PTA,N/A,5,7,7,0,0x10,\"{size:4}\",,\n"}) {
    std::string doubled;
    for (const char c : label) doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
    EXPECT_EQ(names_in("\"" + doubled + "\""), label);
  }
  // In an Attr, too, as our csv has it, and in a stack.
  const auto rows = read(
      csv("1,MALLOC,PTA,N/A,5,7,7,0,0x10,\"{owner:\"\"a\n2,FREE,PTA,N/A,5,7,7,0,0x10,,,\n\"\"}\","
          "\"a.py(1): f\n2,FREE,PTA,N/A,5,7,7,0,0x10,,,\n\",\n"
          "3,FREE,PTA,N/A,5,7,7,0,0x10,,,\n"));
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].problem, "");
  EXPECT_EQ(rows[0].attr, "{owner:\"a\n2,FREE,PTA,N/A,5,7,7,0,0x10,,,\n\"}");
  EXPECT_EQ(rows[0].python, "a.py(1): f\n2,FREE,PTA,N/A,5,7,7,0,0x10,,,\n");
}

TEST(CsvRows, AttrAndStacks) {
  const auto rows =
      read(csv("1,MALLOC,PTA,N/A,5,7,7,0,0x10,\"{size:4,owner:a,b}\",\"a.py(3): f\nb.py(4): "
               "g\n\",\"NA\"\n"
               "2,MALLOC,PTA,N/A,6,7,7,0,0x20,{size:5,inefficient_type:x,y},NA,\n"
               "3,MALLOC,PTA,N/A,7,7,7,0,0x30,\"{owner:my \"big\", one,size:6}\",,\n"
               "4,MALLOC,PTA,N/A,8,7,7,0,0x40,{size:7},a.py(3): f\nb.py(4): g,c.so(x+0x1) "
               "[0x2]\nd.so(y+0x1) [0x2]\n"
               "5,FREE,PTA,N/A,9,7,7,0,0x40,\"{owner:\"\"a,b\"\",size:7}\",,\n"));
  ASSERT_THAT(rows, SizeIs(5));
  for (const Read& row : rows) EXPECT_EQ(row.problem, "");
  EXPECT_EQ(rows[0].attr, "{size:4,owner:a,b}");
  EXPECT_EQ(rows[0].python, "a.py(3): f\nb.py(4): g\n");
  EXPECT_EQ(rows[0].native, "NA");
  EXPECT_EQ(rows[1].attr, "{size:5,inefficient_type:x,y}");
  EXPECT_EQ(rows[1].line, 5u);  // the stack of the row before has lines of its own
  EXPECT_EQ(rows[2].attr, "{owner:my \"big\", one,size:6}");
  EXPECT_EQ(rows[3].python, "a.py(3): f\nb.py(4): g");
  EXPECT_EQ(rows[3].native, "c.so(x+0x1) [0x2]\nd.so(y+0x1) [0x2]");
  EXPECT_EQ(rows[4].attr, "{owner:\"a,b\",size:7}");
}

TEST(CsvRows, WhateverWroteTheLines) {
  // Windows' line ends, a byte order mark, blank lines, NULs, all fields quoted, no last line end.
  const auto rows =
      read("\xEF\xBB\xBF" + std::string(kHeader.substr(0, kHeader.size() - 1)) +
           "\r\n1,FREE,HAL,N/A,5,7,7,0,0x10,,,\r\n\r\n" + std::string(3, '\0') +
           "2,FREE,HAL,N/A,5,7,7,0,0x10,,,x\r\n"
           "\"3\",\"FREE\",\"HAL\",\"N/A\",\"5\",\"7\",\"7\",\"0\",\"0x10\",\"\",\"\",\"\"\n"
           "4,FREE,HAL,N/A,5,7,7,0,0x10,,,");
  ASSERT_THAT(rows, SizeIs(4));
  for (const Read& row : rows) EXPECT_EQ(row.problem, "") << row.id;
  EXPECT_EQ(rows[1].native, "x");  // without the line's "\r"
  EXPECT_EQ(rows[1].line, 4u);
  EXPECT_EQ(rows[2].id, "3");
  EXPECT_EQ(rows[3].line, 6u);
}

TEST(CsvRows, ColumnsByName) {
  const auto rows = read(
      "Event,Timestamp(ns),extra,Event Type,Attr,ID,Ptr,Name\n"
      "MALLOC,5,?,PTA,\"{size:4}\",1,0x10,x\n" +
      csv("2,FREE,PTA,y,6,7,7,0,0x10,,,\n"));
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].attr, "{size:4}");
  EXPECT_EQ(rows[0].time, "5");
  EXPECT_EQ(rows[0].name, "x");
  EXPECT_EQ(rows[1].id, "2");  // files joined: the second header counts from there on
  EXPECT_EQ(rows[1].time, "6");
}

TEST(CsvRows, WithoutAHeaderTheOriginalsOrderHolds) {
  const auto rows = read("1,FREE,HAL,N/A,5,7,7,0,0x10,,,\n");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].time, "5");
}

TEST(CsvRows, HalfARowSpoilsNoOther) {
  const std::string good = ",FREE,HAL,N/A,5,7,7,0,0x10,,,\n";
  const auto rows = read(csv("1" + good +                                               //
                             "2,MALLOC,HAL,N/A,5,7,7,0,0x10,\"{size:16\n" +             // line 3
                             "3" + good +                                               //
                             "4,MALLOC,HAL,N/A,5\n" +                                   // line 5
                             "garbage\n" +                                              // line 6
                             "5" + good +                                               //
                             "6,MALLOC,HAL,N/A,5,7,7,0,0x10,\"{size:16384}\",\"a.p"));  // line 8
  ASSERT_THAT(rows, SizeIs(7));
  std::vector<std::string> problems;
  for (const Read& row : rows) {
    problems.push_back(row.problem.empty() ? "" : std::to_string(row.line) + ": " + row.problem);
  }
  EXPECT_THAT(problems, ElementsAre("", "3: the row is cut off within a quoted field", "",
                                    "5: it has 5 of 12 columns", "6: it has 1 of 12 columns", "",
                                    "8: the file ends within the row"));
}

TEST(CsvRows, ARowThatNeverEnds) {
  const std::string good = "1,FREE,HAL,N/A,5,7,7,0,0x10,,,\n";
  const auto rows = read(csv(good + "2,MALLOC,HAL,\"" + std::string(9 << 20, 'x') + "\n" + good));
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[1].problem, "it is longer than 8 MiB");
  EXPECT_EQ(rows[2].problem, "");
  EXPECT_EQ(rows[2].line, 4u);
}

TEST(CsvRows, RowsAreTheSameWhereverTheWindowEnds) {
  // 3 MiB of rows: the window of 1 MiB ends within names, stacks and numbers.
  std::string text(kHeader);
  uint64_t line = 2;
  std::vector<uint64_t> lines;
  for (int i = 0; i < 20'000; ++i) {
    lines.push_back(line);
    text += std::to_string(i) +
            ",MALLOC,PTA,\"na,\"\"me\",1764753083997498270,7,7,0,0x10,\"{size:" +
            std::to_string(i + 1) +
            "}\",\"/home/me/train.py(103): step\n/home/me/train.py(9): main\n\",\n";
    line += 3;
  }
  const auto rows = read(text);
  ASSERT_THAT(rows, SizeIs(20'000));
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].problem, "");
    ASSERT_EQ(rows[i].line, lines[i]);
    ASSERT_EQ(rows[i].name, "na,\"me");
    ASSERT_EQ(rows[i].attr, "{size:" + std::to_string(i + 1) + "}");
  }
}

TEST(CsvRows, KnowsWhereItsBytesAre) {
  TestDirectory directory;
  const std::string row = "1,MALLOC,PTA,N/A,5,7,7,0,0x10,\"{size:4}\",,\n";
  write_bytes(directory / "f.csv", csv(row));
  auto rows = CsvRows::open(directory / "f.csv");
  CsvRows::Row got;
  ASSERT_TRUE(rows.value().next(got));
  EXPECT_EQ(got.cells.whole.offset, kHeader.size());
  EXPECT_EQ(got.cells.whole.size, row.size());
  EXPECT_EQ(got.cells.attr.offset, kHeader.size() + row.find('"'));
  EXPECT_EQ(got.cells.attr.size, std::string_view("\"{size:4}\"").size());
}

}  // namespace
}  // namespace memscope
