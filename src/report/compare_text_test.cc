#include "report/compare_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/compare_sample.h"
#include "report/text.h"

namespace memscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = 1 << 20;

TerminalStyle style() {
  return {.working_directory = "/work/app"};
}

TEST(CompareText, TheSentenceComesFirstAndTheTablesAddUp) {
  // 290 of 305 MiB are 95.08 %. The tables' last line is the sum of those above it:
  // 290 + 16 + 0 - 1 = 305 MiB; 290 + 8 + 1 - 1 = 298 blocks.
  EXPECT_EQ(comparison_text(sample_comparison(), style()),
            "BASE  memscopeDumpResults · end of step 10 of 300\n"
            "NEW   memscopeDumpResults · end of step 300 of 300\n"
            "\n"
            "NEW holds 305 MiB more at the end of step 300 than BASE at the end of step 10;\n"
            "95 % of it is allocated at train.py:41.\n"
            "\n"
            "by line                                     BASE        NEW      change   blocks\n"
            "  train.py:41  leak = torch.randn(2…           -    290 MiB    +290 MiB     +290\n"
            "  train.py:60  cache[key] = value       1.00 MiB   17.0 MiB   +16.0 MiB       +8\n"
            "  train.py:12  model = Net()            18.0 MiB   18.0 MiB         0 B       +1\n"
            "  (no Python stack)                     1.00 MiB          -   -1.00 MiB       -1\n"
            "  total                                 20.0 MiB    325 MiB    +305 MiB     +298\n"
            "\n"
            "memory                                      BASE        NEW      change   blocks\n"
            "  cpu tensor                            20.0 MiB    325 MiB    +305 MiB     +298\n"
            "    peak                                40.0 MiB    345 MiB    +305 MiB\n");
}

TEST(CompareText, NoLineIsWiderThanTheTerminal) {
  Comparison c = sample_comparison();
  c.base.name = std::string(200, 'p');
  c.sites.rows[0].site->file = "/work/app/" + std::string(100, 'd') + "/train.py";
  c.sites.rows[1].site->text = "漢字" + std::string(100, 'x');
  c.owners.rows = {c.sites.rows[0]};
  c.owners.rows[0].site.reset();
  c.owners.rows[0].name = std::string(120, 'o');
  c.layers.push_back({.device = "npu:0", .layer = "pool", .change = c.total, .base_reserved = 1});
  for (const size_t width : {60u, 80u, 110u}) {
    TerminalStyle wide = style();
    wide.width = width;
    const std::string text = comparison_text(c, wide);
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      EXPECT_LE(display_width(text.substr(at, end - at)), width) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(CompareText, ColoursOnlyWhereTheStyleHasThem) {
  EXPECT_THAT(comparison_text(sample_comparison(), style()), Not(HasSubstr("\x1b")));
  TerminalStyle colour = style();
  colour.colour = true;
  EXPECT_THAT(comparison_text(sample_comparison(), colour), HasSubstr("\x1b[1;33m"));
}

TEST(CompareText, TextOfTheProgramCannotDriveTheTerminal) {
  Comparison c = sample_comparison();
  c.base.name = "a\x1b[2Jb";
  c.sites.rows[0].site->text = "x\x1b[31m\ny";
  c.sites.rows[0].site->file = "/work/app/\x1b]0;t\x07.py";
  EXPECT_THAT(comparison_text(c, style()), Not(HasSubstr("\x1b")));
}

TEST(CompareText, RowsLeftOutAreSummedUp) {
  Comparison c = sample_comparison();
  limit_rows(c, 1, true);
  EXPECT_THAT(comparison_text(c, style()),
              HasSubstr("  and 3 more                            20.0 MiB   35.0 MiB   +15.0 MiB"
                        "       +8\n"));
}

TEST(CompareText, ATableWithoutANameOrAChangeIsLeftOut) {
  Comparison c = sample_comparison();
  ComparedRow nobody{.device = "cpu", .layer = "tensor"};
  nobody.change = c.total;
  c.owners.rows = {nobody};
  EXPECT_THAT(comparison_text(c, style()), Not(HasSubstr("by owner")));
  c.sites.rows.resize(3);
  c.sites.rows.erase(c.sites.rows.begin(), c.sites.rows.begin() + 2);
  c.sites.rows[0].change.now = c.sites.rows[0].change.base;
  limit_rows(c, 10, true);
  EXPECT_THAT(comparison_text(c, style()), Not(HasSubstr("by line")));
}

TEST(CompareText, WhatIsMissingInAnInputIsSaid) {
  Comparison c = sample_comparison();
  c.now.inputs[0].complete = false;
  c.now.inputs[0].dropped = 12;
  EXPECT_THAT(comparison_text(c, style()), HasSubstr("NEW is incomplete: 12 events missing"));
}

std::string sentence(const Comparison& c) {
  return comparison_sentence(c, style());
}

TEST(CompareSentence, AtTheEnds) {
  Comparison c = sample_comparison();
  c.base.at_step = c.now.at_step = std::nullopt;
  EXPECT_EQ(sentence(c),
            "NEW holds 305 MiB more than BASE at its end; 95 % of it is allocated at "
            "train.py:41.");
}

TEST(CompareSentence, TheSameStepOfTwoRuns) {
  Comparison c = sample_comparison();
  c.base.at_step = 300;
  EXPECT_THAT(sentence(c), HasSubstr("NEW holds 305 MiB more than BASE at the end of step 300;"));
}

TEST(CompareSentence, BlocksBornInSomeSteps) {
  Comparison c = sample_comparison();
  c.base.at_step = c.now.at_step = std::nullopt;
  for (ComparedSide* side : {&c.base, &c.now}) {
    side->first_step = 2;
    side->last_step = 5;
  }
  EXPECT_THAT(sentence(c), HasSubstr("Of what was born in steps 2 to 5, NEW holds 305 MiB more"));
}

TEST(CompareSentence, MoreThanTheWholeIsSaidInBytes) {
  // +290 MiB here, -200 MiB there: 90 MiB more in all.
  Comparison c = sample_comparison();
  c.sites.rows.back().change = {Held{217 * kMiB, 1}, Held{kMiB, 1}};
  c.total = {Held{236 * kMiB, 12}, Held{326 * kMiB, 310}};
  EXPECT_THAT(sentence(c), HasSubstr("NEW holds 90.0 MiB more"));
  EXPECT_THAT(sentence(c), HasSubstr("; 290 MiB more is allocated at train.py:41, and others hold "
                                     "less."));
}

TEST(CompareSentence, Less) {
  Comparison c = sample_comparison();
  std::swap(c.total.base, c.total.now);
  std::reverse(c.sites.rows.begin(), c.sites.rows.end());
  for (ComparedRow& row : c.sites.rows) std::swap(row.change.base, row.change.now);
  EXPECT_THAT(sentence(c), HasSubstr("NEW holds 305 MiB less"));
  EXPECT_THAT(sentence(c), HasSubstr("95 % of it was allocated at train.py:41."));
}

TEST(CompareSentence, TheSame) {
  Comparison c = sample_comparison();
  c.base.at_step = c.now.at_step = std::nullopt;
  c.total.now = c.total.base;
  EXPECT_EQ(sentence(c),
            "NEW holds as much as BASE at its end, 20.0 MiB, but not in the same places.");
  c.sites.rows.clear();
  EXPECT_EQ(sentence(c), "NEW holds as much as BASE at its end, 20.0 MiB.");
}

TEST(CompareSentence, WithoutStacksTheOperatorThenTheOwner) {
  Comparison c = sample_comparison();
  ComparedRow row{.device = "npu:0", .layer = "pool"};
  row.change = {Held{}, Held{290 * kMiB, 290}};
  c.sites.rows = {row};
  row.name = "PTA@model@weight";
  c.owners.rows = {row};
  EXPECT_THAT(sentence(c), HasSubstr("95 % of it belongs to PTA@model@weight."));
  row.name = "torch._ops.aten._to_copy.default";
  c.operators.rows = {row};
  EXPECT_THAT(sentence(c), HasSubstr("95 % of it is allocated in torch._ops.aten._to_copy"));
}

}  // namespace
}  // namespace memscope
