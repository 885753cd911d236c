#include "analysis/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::ElementsAre;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
constexpr Where kPool{Layer::kPool, {Device::kNpu, 0}};
constexpr Where kDriver{Layer::kDriver, {Device::kNpu, 0}};

SiteFrame line(int64_t number, const char* text, const char* file = "/me/train.py") {
  return {.file = file,
          .line = number,
          .end_line = number,
          .function = "f",
          .user = true,
          .text = text};
}

// What a side holds, added up by hand.
class Side {
 public:
  Side& at(std::optional<SiteFrame> site, int64_t bytes, int64_t blocks, Where where = kCpu,
           std::optional<std::string> owner = std::nullopt,
           std::optional<std::string> op = std::nullopt) {
    const Held held{bytes, blocks};
    holdings.sites.push_back({std::move(site), where, held});
    holdings.owners.push_back({std::move(owner), where, held});
    holdings.operators.push_back({std::move(op), where, held});
    for (HeldInLayer& layer : holdings.layers) {
      if (layer.where != where) continue;
      layer.held += held;
      layer.peak += bytes;
      return *this;
    }
    holdings.layers.push_back({where, held, bytes, std::nullopt});
    return *this;
  }
  Holdings holdings;
};

std::string text(const std::optional<Held>& held) {
  return held ? std::to_string(held->bytes) + "/" + std::to_string(held->blocks) : "-";
}

// "x = f() 1/1 5/2 +4", in order.
std::vector<std::string> rows(const ComparedList& list) {
  std::vector<std::string> result;
  for (const ComparedRow& row : list.rows) {
    const std::string name = row.site   ? row.site->text.value_or("?")
                             : row.name ? *row.name
                                        : std::string("none");
    const int64_t change = row.change.difference().bytes;
    result.push_back(name + " " + text(row.change.base) + " " + text(row.change.now) +
                     (change >= 0 ? " +" : " ") + std::to_string(change));
  }
  return result;
}

Held sum(const ComparedList& list) {
  Held total = list.rest.difference();
  for (const ComparedRow& row : list.rows) total += row.change.difference();
  return total;
}

TEST(Compare, RowsByGrowthAndSumsThatAgree) {
  //                     base         new
  //   grows             100 in 1     500 in 5     +400
  //   only in new       -            50 in 1      +50
  //   the same          30 in 3      30 in 3      0
  //   only in base      20 in 1      -            -20
  //   shrinks           200 in 2     100 in 1     -100
  Side base, now;
  base.at(line(1, "grow"), 100, 1).at(line(3, "same"), 30, 3).at(line(4, "gone"), 20, 1);
  base.at(line(5, "shrink"), 200, 2);
  now.at(line(1, "grow"), 500, 5).at(line(2, "fresh"), 50, 1).at(line(3, "same"), 30, 3);
  now.at(line(5, "shrink"), 100, 1);
  const Comparison c = compare(base.holdings, now.holdings, {});
  EXPECT_THAT(rows(c.sites),
              ElementsAre("grow 100/1 500/5 +400", "fresh - 50/1 +50", "same 30/3 30/3 +0",
                          "gone 20/1 - -20", "shrink 200/2 100/1 -100"));
  EXPECT_EQ(c.total.difference(), (Held{330, 3}));
  EXPECT_EQ(sum(c.sites), (Held{330, 3}));
  EXPECT_EQ(sum(c.owners), (Held{330, 3}));
  EXPECT_EQ(sum(c.operators), (Held{330, 3}));
}

TEST(Compare, ByOwnerAndByOperator) {
  Side base, now;
  base.at({}, 10, 1, kPool, "PTA@model@weight", "aten.mm").at({}, 4, 1, kPool, {}, "aten.add");
  now.at({}, 10, 1, kPool, "PTA@model@weight", "aten.mm").at({}, 64, 2, kPool, "PTA@ops", {});
  const Comparison c = compare(base.holdings, now.holdings, {});
  EXPECT_THAT(rows(c.owners),
              ElementsAre("PTA@ops - 64/2 +64", "PTA@model@weight 10/1 10/1 +0", "none 4/1 - -4"));
  EXPECT_THAT(rows(c.operators),
              ElementsAre("none - 64/2 +64", "aten.mm 10/1 10/1 +0", "aten.add 4/1 - -4"));
  EXPECT_THAT(rows(c.sites), ElementsAre("none 14/2 74/3 +60"));
}

TEST(Compare, LayersThatContainOthersAreShownAndNotAddedUp) {
  // The pool took 2 MiB from the driver and handed out 512 bytes of them: 512 bytes are held.
  Side base, now;
  now.at({}, 2 << 20, 1, kDriver).at({}, 512, 1, kPool);
  const Comparison c = compare(base.holdings, now.holdings, {});
  EXPECT_EQ(c.total.difference(), (Held{512, 1}));
  ASSERT_EQ(c.layers.size(), 2u);
  EXPECT_EQ(c.layers[0].layer, "driver");
  EXPECT_FALSE(c.layers[0].counted);
  EXPECT_EQ(c.layers[1].layer, "pool");
  EXPECT_TRUE(c.layers[1].counted);
  EXPECT_THAT(rows(c.sites), ElementsAre("none - 512/1 +512"));
  // Asked for, the driver's are compared instead.
  const Comparison driver = compare(base.holdings, now.holdings, {.layer = Layer::kDriver});
  EXPECT_EQ(driver.total.difference(), (Held{2 << 20, 1}));
  EXPECT_THAT(rows(driver.sites), ElementsAre("none - 2097152/1 +2097152"));
}

TEST(Compare, TheDriverAloneIsCompared) {
  Side base, now;
  now.at({}, 4096, 1, kDriver);
  EXPECT_EQ(compare(base.holdings, now.holdings, {}).total.difference(), (Held{4096, 1}));
}

TEST(Compare, SeveralPoolsOfADeviceAreOne) {
  Side base, now;
  base.at({}, 10, 1, kPool).at({}, 5, 1, {Layer::kPoolAtb, kPool.device});
  now.at({}, 30, 2, kPool);
  const Comparison c = compare(base.holdings, now.holdings, {});
  ASSERT_EQ(c.layers.size(), 1u);
  EXPECT_THAT(rows(c.sites), ElementsAre("none 15/2 30/2 +15"));
}

TEST(Compare, TwoRanksAreComparedByTheKindOfTheirDevice) {
  Side base, now;
  base.at(line(1, "x"), 10, 1, kPool);
  now.at(line(1, "x"), 30, 1, {Layer::kPool, {Device::kNpu, 1}});
  const Comparison c = compare(base.holdings, now.holdings, {});
  EXPECT_THAT(rows(c.sites), ElementsAre("x 10/1 30/1 +20"));
  EXPECT_EQ(c.sites.rows[0].device, "npu");
  ASSERT_EQ(c.layers.size(), 1u);
  // With the same devices on both sides each is a row of its own.
  const Comparison same = compare(base.holdings, base.holdings, {});
  EXPECT_EQ(same.sites.rows[0].device, "npu:0");
}

TEST(Compare, WhatMovedFromDeviceToDeviceIsShown) {
  Side base, now;
  base.at(line(1, "x"), 50, 1, kPool);
  base.at(line(1, "x"), 10, 1, {Layer::kPool, {Device::kNpu, 1}});
  // 40 went from npu:0 to npu:1; that the cpu is new makes no difference.
  now.at(line(1, "x"), 10, 1, kPool);
  now.at(line(1, "x"), 50, 1, {Layer::kPool, {Device::kNpu, 1}});
  now.at(line(2, "y"), 5, 1, {Layer::kTensor, {}});
  const Comparison c = compare(base.holdings, now.holdings, {});
  EXPECT_THAT(rows(c.sites), ElementsAre("x 10/1 50/1 +40", "y - 5/1 +5", "x 50/1 10/1 -40"));
}

TEST(Compare, TheSameLineOfSeveralProcessesIsOneRow) {
  Side base, now;
  base.at(line(1, "x"), 10, 1).at(line(1, "x"), 10, 1);
  now.at(line(2, "x", "/elsewhere/train.py"), 30, 3);
  const Comparison c = compare(base.holdings, now.holdings, {});
  EXPECT_THAT(rows(c.sites), ElementsAre("x 20/2 30/3 +10"));
  EXPECT_EQ(c.sites.rows[0].site->file, "/elsewhere/train.py");  // as NEW has it
}

TEST(Compare, TheTopRowsAreThoseThatChangedMostAndTheRestAddsUp) {
  // Changes +400, +5, 0, -100: of two rows the -100 is one.
  Side base, now;
  base.at(line(1, "a"), 100, 1).at(line(2, "b"), 5, 1).at(line(3, "c"), 7, 1);
  base.at(line(4, "d"), 200, 2);
  now.at(line(1, "a"), 500, 5).at(line(2, "b"), 10, 1).at(line(3, "c"), 7, 1);
  now.at(line(4, "d"), 100, 1);
  Comparison c = compare(base.holdings, now.holdings, {});
  limit_rows(c, 2);
  EXPECT_THAT(rows(c.sites), ElementsAre("a 100/1 500/5 +400", "d 200/2 100/1 -100"));
  EXPECT_EQ(c.sites.rest_rows, 2u);
  EXPECT_EQ(c.sites.rest_changed, 1u);
  EXPECT_EQ(c.sites.rest.base, (Held{12, 2}));
  EXPECT_EQ(c.sites.rest.now, (Held{17, 2}));
  EXPECT_EQ(sum(c.sites), (Held{305, 3}));
}

TEST(Compare, RowsThatDidNotChangeCanBeLeftToTheRest) {
  Side base, now;
  base.at(line(1, "a"), 100, 1).at(line(2, "b"), 5, 1);
  now.at(line(1, "a"), 500, 5).at(line(2, "b"), 5, 1);
  Comparison c = compare(base.holdings, now.holdings, {});
  limit_rows(c, 10, true);
  EXPECT_THAT(rows(c.sites), ElementsAre("a 100/1 500/5 +400"));
  EXPECT_EQ(c.sites.rest_rows, 1u);
  EXPECT_EQ(c.sites.rest_changed, 0u);
}

TEST(Compare, NothingAgainstNothing) {
  const Comparison c = compare(Holdings{}, Holdings{}, {});
  EXPECT_EQ(c.total.difference(), Held{});
  EXPECT_TRUE(c.sites.rows.empty());
}

}  // namespace
}  // namespace memscope
