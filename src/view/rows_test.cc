#include "view/rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "view/test_index.h"

namespace memscope::view {
namespace {

RowTable table_of(const InputIndex& input, RowKind kind) {
  return {.kind = kind, .input = &input, .pool = input.pools[0].get()};
}

RowSet select(const RowTable& table, std::string_view where, std::string_view sort) {
  auto filters = filters_from_json(table, where, {});
  auto order = sort_from_text(table.kind, sort);
  EXPECT_TRUE(filters) << filters.error().message;
  EXPECT_TRUE(order) << order.error().message;
  return select_rows(table, {std::move(filters).value(), std::move(order).value()});
}

// Every row that `wanted` takes, in the order of `less`, ties by number.
template <typename Wanted, typename Less>
std::vector<uint32_t> by_hand(const RowTable& table, Wanted wanted, Less less) {
  std::vector<uint32_t> rows;
  for (uint32_t row = table.first(); row < table.first() + table.count(); ++row) {
    if (wanted(row)) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), less);
  return rows;
}

constexpr auto kAny = [](uint32_t) { return true; };
constexpr auto kAsIs = [](uint32_t, uint32_t) { return false; };

TEST(Rows, SortByOneColumnEitherWay) {
  const auto input = random_index(3, 3000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  const PoolIndex& pool = *table.pool;
  EXPECT_EQ(select(table, "", "size").rows, by_hand(table, kAny, [&](uint32_t a, uint32_t b) {
              return pool.size(a) < pool.size(b);
            }));
  EXPECT_EQ(select(table, "", "size:desc").rows, by_hand(table, kAny, [&](uint32_t a, uint32_t b) {
              return pool.size(a) > pool.size(b);
            }));
  EXPECT_EQ(select(table, "", "").rows, by_hand(table, kAny, kAsIs));
}

TEST(Rows, SortBySeveralColumns) {
  const auto input = random_index(4, 3000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  const auto key = [&](uint32_t row) {
    return std::tuple(table.text(row, Column::kFunction), -*table.number(row, Column::kStep),
                      *table.number(row, Column::kSize));
  };
  EXPECT_EQ(select(table, "", "function:asc,step:desc,size").rows,
            by_hand(table, kAny, [&](uint32_t a, uint32_t b) { return key(a) < key(b); }));
}

TEST(Rows, APageIsWhatTheWholeOrderHasThere) {
  const auto input = random_index(14, 60'000, 40, 2000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  const std::vector<uint32_t> all = select(table, "", "").rows;
  ASSERT_GT(all.size(), 20'000u);  // more than are sorted at once
  for (const char* sort : {"", "size", "size:desc", "lifetime", "lifetime:desc", "state,size:desc",
                           "function,site:desc,size", "thread:desc,begin:desc", "end_step:desc"}) {
    const std::vector<uint32_t> sorted = select(table, "", sort).rows;
    const auto order = sort_from_text(RowKind::kBlocks, sort).value();
    for (const size_t offset : {size_t{0}, size_t{1}, all.size() / 3, all.size() / 2,
                                all.size() - 50, all.size() - 1, all.size(), all.size() + 9}) {
      const auto page = page_of(table, all, order, offset, 100);
      const size_t from = std::min(offset, all.size()), to = std::min(offset + 100, all.size());
      EXPECT_EQ(page, std::vector<uint32_t>(sorted.begin() + static_cast<ptrdiff_t>(from),
                                            sorted.begin() + static_cast<ptrdiff_t>(to)))
          << sort << " at " << offset;
    }
  }
}

TEST(Rows, OfMostRowsASampleTellsWhichMayBeOnThePage) {
  const auto input = random_index(15, 400'000, 40, 50);
  const RowTable table = table_of(*input, RowKind::kEvents);
  const std::vector<uint32_t> all = select(table, "", "").rows;
  ASSERT_GT(all.size(), size_t{1} << 18);  // fewer are looked at as a whole
  // Keys of one row each, of many rows, of two kinds, all alike; rows with a period of their own.
  for (const char* sort : {"time:desc", "size", "size:desc", "kind", "kind:desc", "owner",
                           "owner,size:desc", "step:desc", "thread,time:desc"}) {
    const std::vector<uint32_t> sorted = select(table, "", sort).rows;
    const auto order = sort_from_text(RowKind::kEvents, sort).value();
    for (const size_t offset : {size_t{0}, size_t{99}, all.size() / 2, all.size() - 60}) {
      const auto page = page_of(table, all, order, offset, 100);
      const size_t to = std::min(offset + 100, all.size());
      EXPECT_EQ(page, std::vector<uint32_t>(sorted.begin() + static_cast<ptrdiff_t>(offset),
                                            sorted.begin() + static_cast<ptrdiff_t>(to)))
          << sort << " at " << offset;
    }
  }
}

TEST(Rows, WhatIsUnknownComesLastEitherWay) {
  const auto input = random_index(5, 2000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  for (const char* sort : {"lifetime", "lifetime:desc"}) {
    const RowSet set = select(table, "", sort);
    bool unknown = false;
    for (const uint32_t row : set.rows) {
      const bool none = !table.number(row, Column::kLifetime);
      EXPECT_FALSE(unknown && !none);
      unknown = none;
    }
    EXPECT_TRUE(unknown);  // there are blocks that were never freed
  }
}

TEST(Rows, NumbersAreFilteredAsTheyAreTyped) {
  const auto input = random_index(6, 3000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  const PoolIndex& pool = *table.pool;
  const auto expect = [&](const char* where, auto wanted) {
    EXPECT_EQ(select(table, where, "").rows, by_hand(table, wanted, kAsIs)) << where;
  };
  const auto size_at_least = [&](uint64_t size) {
    return [&pool, size](uint32_t row) { return pool.size(row) >= size; };
  };
  expect(R"([{"column":"size","op":">=","value":4096}])", size_at_least(4096));
  expect(R"([{"column":"size","op":">=","value":"4k"}])", size_at_least(4096));
  expect(R"([{"column":"size","op":">=","value":"0x1000"}])", size_at_least(4096));
  expect(R"([{"column":"size","op":">=","value":"0.5 MiB"}])", size_at_least(524288));
  expect(R"([{"column":"size","op":"in","value":["1k","2k"]}])",
         [&](uint32_t row) { return pool.size(row) >= 1024 && pool.size(row) <= 2048; });
  expect(R"([{"column":"end","op":"is","value":null}])",
         [&](uint32_t row) { return pool.free_event[row] == kAlive; });
  expect(R"([{"column":"lifetime","op":"<","value":"1us"},{"column":"size","op":">","value":99}])",
         [&](uint32_t row) {
           const auto end = pool.end_time(row);
           return end && *end - pool.begin_time(row) < 1000 && pool.size(row) > 99;
         });
  const std::string address = "0x1000";
  expect(R"([{"column":"address","op":"=","value":"0x1000"}])",
         [&](uint32_t row) { return pool.address[row] == 0x1000; });
}

TEST(Rows, TextsAreFilteredWithoutRegardToCase) {
  const auto input = random_index(7, 2000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  const auto forward = [&](uint32_t row) {
    return table.text(row, Column::kFunction) == "forward";
  };
  EXPECT_EQ(select(table, R"([{"column":"function","op":"contains","value":"FORW"}])", "").rows,
            by_hand(table, forward, kAsIs));
  EXPECT_EQ(select(table, R"([{"op":"stack_has","value":"Forward"}])", "").rows,
            by_hand(table, forward, kAsIs));
  EXPECT_EQ(select(table, R"([{"column":"function","op":"!=","value":"forward"}])", "").rows,
            by_hand(
                table, [&](uint32_t row) { return !forward(row); }, kAsIs));
}

TEST(Rows, BlocksOfAMoment) {
  const auto input = random_index(8, 2000);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  const PoolIndex& pool = *table.pool;
  EXPECT_EQ(select(table, R"([{"op":"alive_at","value":7000}])", "").rows,
            by_hand(
                table,
                [&](uint32_t row) {
                  const auto end = pool.end_time(row);
                  return pool.begin_time(row) <= 7000 && (!end || *end > 7000);
                },
                kAsIs));
  EXPECT_EQ(select(table, R"([{"op":"unfreed_in","value":[5000,9000]}])", "").rows,
            by_hand(
                table,
                [&](uint32_t row) {
                  const auto end = pool.end_time(row);
                  const uint64_t begin = pool.begin_time(row);
                  return begin >= 5000 && begin < 9000 && (!end || *end >= 9000);
                },
                kAsIs));
}

TEST(Rows, EventsAreBothEndsOfEveryBlock) {
  const auto input = random_index(9, 2000);
  const RowTable table = table_of(*input, RowKind::kEvents);
  const PoolIndex& pool = *table.pool;
  const RowSet frees = select(table, R"([{"column":"kind","op":"=","value":"free"}])", "");
  uint64_t bytes = 0;
  for (uint32_t block = 1; block <= pool.blocks(); ++block) {
    if (pool.free_event[block] != kAlive) bytes += pool.size(block);
  }
  EXPECT_EQ(frees.rows.size() + pool.blocks(), pool.events());
  EXPECT_EQ(frees.bytes, bytes);
  // What is allocated after an event is the sum of what came before.
  EXPECT_EQ(table.number(pool.peak.state - 1, Column::kAllocated),
            static_cast<int64_t>(pool.peak.bytes));
}

TEST(Rows, MomentsAreOnTheSessionsClock) {
  IndexScript script;
  script.alloc(0, 0xA0, 1);
  script.alloc(100, 0xB0, 1);
  const auto input = script.build();
  RowTable table = table_of(*input, RowKind::kBlocks);
  table.shift = 5000;
  EXPECT_EQ(table.number(2, Column::kBegin), 5100);
  EXPECT_EQ(select(table, R"([{"column":"begin","op":">","value":5050}])", "").rows,
            std::vector<uint32_t>{2});
  EXPECT_EQ(select(table, R"([{"op":"alive_at","value":5050}])", "").rows,
            std::vector<uint32_t>{1});
  EXPECT_TRUE(select(table, R"([{"op":"alive_at","value":4999}])", "").rows.empty());
}

TEST(Rows, WhatMakesNoSenseIsRefused) {
  const auto input = random_index(10, 100);
  const RowTable table = table_of(*input, RowKind::kBlocks);
  for (const char* where :
       {"{", "{}", "[1]", R"([{"column":"size"}])", R"([{"column":"no","op":"=","value":1}])",
        R"([{"column":"size","op":"=","value":"many"}])",
        R"([{"column":"size","op":"like","value":1}])",
        R"([{"column":"site","op":"contains","value":5}])", R"([{"op":"class","value":[1]}])",
        R"([{"op":"alive_at"}])", R"([{"op":"unfreed_in","value":[1]}])",
        R"([{"column":5,"op":"=","value":1}])", R"([{"column":"size","op":7,"value":1}])",
        R"([{"op":"class","colour":[],"value":[1]}])"}) {
    EXPECT_FALSE(filters_from_json(table, where, {})) << where;
  }
  EXPECT_FALSE(sort_from_text(RowKind::kBlocks, "none"));
  EXPECT_FALSE(sort_from_text(RowKind::kBlocks, "size:up"));
  EXPECT_FALSE(sort_from_text(RowKind::kBlocks, "size,size,size,size,size"));
  EXPECT_FALSE(sort_from_text(RowKind::kEvents, "allocated"));
}

}  // namespace
}  // namespace memscope::view
