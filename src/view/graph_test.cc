#include "view/graph.h"

#include <gtest/gtest.h>

#include <map>

#include "view/test_index.h"

namespace memscope::view {
namespace {

struct Picture {
  std::shared_ptr<InputIndex> input;
  const PoolIndex* pool = nullptr;
  BlockOrder order;
  Colouring colouring;
};

Picture picture(uint32_t seed, OrderBy by, ColourBy colour = ColourBy::kSite,
                size_t events = 20'000) {
  Picture made{.input = random_index(seed, events)};
  made.pool = made.input->pools[0].get();
  made.order = BlockOrder(*made.input, *made.pool, by);
  made.colouring = Colouring(*made.input, *made.pool, colour, {});
  return made;
}

GraphQuery whole(const Picture& p, uint32_t width = 200, uint32_t height = 300) {
  return {.t0 = 0,
          .t1 = p.input->end + 1,
          .m0 = 0,
          .m1 = p.pool->peak.bytes + 1,
          .width = width,
          .height = height};
}

// Every live block of a state with its lower edge, bottom to top, by trying them all.
struct Band {
  uint32_t block = 0;
  uint64_t from = 0, to = 0;
};
std::vector<Band> bands(const Picture& p, uint32_t state, uint32_t classes = ~0u) {
  std::vector<std::pair<uint32_t, uint32_t>> by_rank;
  for (uint32_t block = 1; block <= p.pool->blocks(); ++block) {
    if (!p.pool->alive(block, state)) continue;
    if ((classes >> p.colouring.of_block[block] & 1) == 0) continue;
    by_rank.emplace_back(p.order.rank(block), block);
  }
  std::sort(by_rank.begin(), by_rank.end());
  std::vector<Band> result;
  uint64_t y = 0;
  for (const auto& [rank, block] : by_rank) {
    result.push_back({block, y, y + p.pool->size(block)});
    y = result.back().to;
  }
  return result;
}

uint64_t sum_of(const Graph& graph, size_t slice) {
  uint64_t sum = 0;
  for (size_t i = graph.slices[slice].first; i < graph.items_end(slice); ++i) {
    sum += graph.items[i].bytes;
  }
  return sum;
}

// Items of their own where the block is, as high as it is; and none left out that is a pixel high.
void check_slice(const Picture& p, const GraphQuery& query, const Graph& graph, size_t number) {
  const GraphSlice& slice = graph.slices[number];
  const std::vector<Band> expected = bands(p, slice.state, query.classes);
  const uint64_t total = expected.empty() ? 0 : expected.back().to;
  ASSERT_EQ(slice.total, total);
  std::map<uint32_t, Band> shown;
  uint64_t y = slice.base;
  for (size_t i = slice.first; i < graph.items_end(number); ++i) {
    const GraphItem& item = graph.items[i];
    ASSERT_GT(item.bytes, 0u);
    if (item.block != kMerged) shown[item.block] = {item.block, y, y + item.bytes};
    y += item.bytes;
  }
  ASSERT_LE(slice.base, std::max(query.m0, total));
  ASSERT_GE(y, std::min(query.m1, total));
  const double pixel = static_cast<double>(query.m1 - query.m0) / query.height;
  for (const Band& band : expected) {
    const auto found = shown.find(band.block);
    const bool visible = band.to > query.m0 && band.from < query.m1;
    if (found == shown.end()) {
      const bool high = static_cast<double>(band.to - band.from) >= pixel;
      ASSERT_FALSE(visible && high && !query.tidy)
          << "block " << band.block << " of " << band.to - band.from << " bytes, pixel " << pixel;
      continue;
    }
    ASSERT_EQ(found->second.from, band.from);
    ASSERT_EQ(found->second.to, band.to);
    shown.erase(found);
  }
  ASSERT_TRUE(shown.empty());  // nothing that is not there
}

TEST(Graph, BandHeightsAddUpToTheAllocatedBytes) {
  for (const OrderBy by : {OrderBy::kAlloc, OrderBy::kSite, OrderBy::kLifetime}) {
    for (const bool tidy : {false, true}) {
      const Picture p = picture(7, by);
      GraphQuery query = whole(p);
      query.tidy = tidy;
      const Graph graph = draw_graph(*p.pool, p.order, p.colouring, query);
      ASSERT_TRUE(graph.columns);
      ASSERT_GE(graph.slices.size(), 100u);
      for (size_t i = 0; i < graph.slices.size(); ++i) {
        ASSERT_EQ(graph.slices[i].base, 0u);
        ASSERT_EQ(sum_of(graph, i), graph.slices[i].total);
        ASSERT_EQ(graph.slices[i].total, p.pool->bytes_in(graph.slices[i].state));
      }
    }
  }
}

TEST(Graph, NoBlockOfAPixelIsLostAndNoneIsOutOfPlace) {
  for (const OrderBy by : {OrderBy::kAlloc, OrderBy::kSite, OrderBy::kLifetime}) {
    const Picture p = picture(11, by);
    GraphQuery query = whole(p);
    query.tidy = false;
    const Graph graph = draw_graph(*p.pool, p.order, p.colouring, query);
    for (size_t i = 0; i < graph.slices.size(); i += 7) check_slice(p, query, graph, i);
  }
}

TEST(Graph, WindowsShowWhatTheWholeShowsThere) {
  std::mt19937 random(5);
  const Picture p = picture(13, OrderBy::kLifetime);
  const uint64_t end = p.input->end, top = p.pool->peak.bytes;
  for (int turn = 0; turn < 60; ++turn) {
    GraphQuery query;
    query.t0 = random() % end;
    query.t1 = query.t0 + 1 + random() % (turn % 2 == 0 ? end : 200);
    query.m0 = random() % top;
    query.m1 = query.m0 + 1 + random() % top;
    query.width = 1 + random() % 300;
    query.height = 1 + random() % 300;
    query.tidy = turn % 3 == 0;
    query.floor = turn % 5 == 0;
    const Graph graph = draw_graph(*p.pool, p.order, p.colouring, query);
    ASSERT_LE(graph.t0, query.t0);
    ASSERT_GE(graph.t1, query.t1);
    ASSERT_FALSE(graph.slices.empty());
    for (size_t i = 0; i < graph.slices.size(); i += 1 + graph.slices.size() / 9) {
      check_slice(p, query, graph, i);
    }
  }
}

TEST(Graph, AColumnStandsAtItsPeakOrItsFloorAndTellsBoth) {
  const Picture p = picture(17, OrderBy::kAlloc);
  GraphQuery query = whole(p, 100);
  const Graph peak = draw_graph(*p.pool, p.order, p.colouring, query);
  query.floor = true;
  const Graph floor = draw_graph(*p.pool, p.order, p.colouring, query);
  ASSERT_EQ(peak.slices.size(), floor.slices.size());
  uint64_t most = 0;
  for (size_t i = 0; i < peak.slices.size(); ++i) {
    EXPECT_EQ(peak.slices[i].total, peak.slices[i].high);
    EXPECT_EQ(floor.slices[i].total, floor.slices[i].low);
    EXPECT_EQ(peak.slices[i].low, floor.slices[i].low);
    most = std::max(most, peak.slices[i].high);
  }
  EXPECT_EQ(most, p.pool->peak.bytes);  // the highest column is the run's peak
}

TEST(Graph, ABusyColumnsPeakEndsWithTheColumn) {
  // In the first of ten columns 30 blocks of 1,000 B come and go over one of 10 B; then nothing
  // until 950.
  IndexScript script;
  const StackId line = script.line(1);
  script.alloc(0, 0xB0, 10, line);
  for (uint64_t i = 0; i < 30; ++i) {
    script.alloc(1 + 2 * i, 0xA0, 1000, line);
    script.free(2 + 2 * i, 0xA0);
  }
  script.alloc(950, 0xC0, 5, line);
  Picture p{.input = script.build()};
  p.pool = p.input->pools[0].get();
  p.order = BlockOrder(*p.input, *p.pool, OrderBy::kAlloc);
  p.colouring = Colouring(*p.input, *p.pool, ColourBy::kSite, {});
  const Graph graph = draw_graph(*p.pool, p.order, p.colouring,
                                 {.t0 = 0, .t1 = 1000, .m1 = 1100, .width = 10, .height = 100});
  EXPECT_TRUE(graph.columns);
  ASSERT_EQ(graph.slices.size(), 3u);
  EXPECT_EQ(graph.slices[0].begin, 0u);
  EXPECT_EQ(graph.slices[0].total, 1010u);
  // What the column left behind goes on, not its peak; in one slice over all that is idle.
  EXPECT_EQ(graph.slices[1].begin, 100u);
  EXPECT_EQ(graph.slices[1].total, 10u);
  EXPECT_EQ(graph.slices[1].high, 10u);
  EXPECT_EQ(graph.slices[2].begin, 900u);
  EXPECT_EQ(graph.slices[2].total, 15u);
}

TEST(Graph, FewEventsAreDrawnAsTheInstantsTheyAre) {
  IndexScript script;
  script.alloc(0, 0xA0, 100, script.line(1));
  script.alloc(100, 0xB0, 50, script.line(2));
  script.free(200, 0xA0);
  script.alloc(200, 0xC0, 30, script.line(3));
  Picture p{.input = script.build()};
  p.pool = p.input->pools[0].get();
  p.order = BlockOrder(*p.input, *p.pool, OrderBy::kAlloc);
  p.colouring = Colouring(*p.input, *p.pool, ColourBy::kSite, {});
  const Graph graph = draw_graph(*p.pool, p.order, p.colouring,
                                 {.t0 = 0, .t1 = 400, .m1 = 200, .width = 100, .height = 200});
  EXPECT_FALSE(graph.columns);
  // At 0 block 1; from 100 on 1 and 2; from 200 on, where two things happen, 2 and 3.
  ASSERT_EQ(graph.slices.size(), 3u);
  EXPECT_EQ(graph.slices[0].begin, 0u);
  EXPECT_EQ(graph.slices[1].begin, 100u);
  EXPECT_EQ(graph.slices[2].begin, 200u);
  EXPECT_EQ(graph.slices[1].total, 150u);
  EXPECT_EQ(graph.slices[2].total, 80u);
  EXPECT_EQ(graph.items[graph.slices[2].first].block, 2u);
  EXPECT_EQ(graph.items[graph.slices[2].first + 1].block, 3u);
  EXPECT_EQ(graph.blocks, 3u);
}

TEST(Graph, ClassesThatAreNotChosenAreNotStacked) {
  const Picture p = picture(19, OrderBy::kSite);
  GraphQuery query = whole(p);
  query.classes = 1u << 2 | 1u << 5;
  query.tidy = false;
  const Graph graph = draw_graph(*p.pool, p.order, p.colouring, query);
  for (const GraphItem& item : graph.items) EXPECT_TRUE(item.in == 2 || item.in == 5);
  for (size_t i = 0; i < graph.slices.size(); i += 11) check_slice(p, query, graph, i);
}

TEST(Graph, PanningDoesNotChangeTheColumns) {
  const Picture p = picture(23, OrderBy::kAlloc);
  GraphQuery query = whole(p, 50);
  query.t0 = 3000;
  query.t1 = 9000;
  const Graph here = draw_graph(*p.pool, p.order, p.colouring, query);
  query.t0 += 17;
  query.t1 += 17;
  const Graph there = draw_graph(*p.pool, p.order, p.colouring, query);
  std::map<uint64_t, uint32_t> states;
  for (const GraphSlice& slice : here.slices) states[slice.begin] = slice.state;
  size_t common = 0;
  for (const GraphSlice& slice : there.slices) {
    const auto known = states.find(slice.begin);
    if (known == states.end()) continue;
    ++common;
    EXPECT_EQ(known->second, slice.state);
  }
  EXPECT_GE(common, 45u);
}

TEST(Graph, TooManyItemsAreMergedAndItSaysSo) {
  // 400 blocks of 3 pixels each alive in every column of 4,000: 1.6 million bands.
  IndexScript script;
  for (uint64_t i = 0; i < 400; ++i) script.alloc(i, 0x10000 * (i + 1), 3000, script.line(1));
  for (uint64_t i = 0; i < 10'000; ++i) {
    script.alloc(1000 + 10 * i, 0x10, 8, script.line(2));
    script.free(1005 + 10 * i, 0x10);
  }
  Picture p{.input = script.build()};
  p.pool = p.input->pools[0].get();
  p.colouring = Colouring(*p.input, *p.pool, ColourBy::kSite, {});
  GraphQuery query = whole(p, 4000, 1200);
  query.tidy = false;
  const Graph graph = draw_graph(*p.pool, p.order, p.colouring, query);
  EXPECT_TRUE(graph.cut);
  EXPECT_LE(graph.items.size(), Graph::kMaxItems);
  for (size_t i = 0; i < graph.slices.size(); i += 100) {
    EXPECT_EQ(sum_of(graph, i), graph.slices[i].total);
  }
}

TEST(Locate, FindsTheBlockAtEveryHeight) {
  for (const OrderBy by : {OrderBy::kAlloc, OrderBy::kLifetime}) {
    const Picture p = picture(29, by, ColourBy::kSize, 4000);
    const uint32_t state = p.pool->peak.state;
    for (const Band& band : bands(p, state)) {
      for (const uint64_t y : {band.from, band.to - 1}) {
        const Located found = locate(*p.pool, p.order, nullptr, ~0u, state, y);
        ASSERT_EQ(found.block, band.block);
        ASSERT_EQ(found.from, band.from);
        ASSERT_EQ(found.to, band.to);
      }
      const Located place = place_of_block(*p.pool, p.order, state, band.block);
      ASSERT_EQ(place.from, band.from);
      ASSERT_EQ(place.to, band.to);
    }
    EXPECT_EQ(locate(*p.pool, p.order, nullptr, ~0u, state, p.pool->peak.bytes).block, 0u);
  }
}

TEST(GraphBytes, ArraysBeginAtMultiplesOfEight) {
  const Picture p = picture(31, OrderBy::kAlloc);
  const GraphQuery query = whole(p);
  const Graph graph = draw_graph(*p.pool, p.order, p.colouring, query);
  const std::string bytes = graph_bytes(graph, query);
  const auto number = [&](size_t at, auto kind) {
    std::memcpy(&kind, bytes.data() + at, sizeof(kind));
    return kind;
  };
  EXPECT_EQ(bytes.substr(0, 4), "MSG1");
  const size_t slices = number(40, uint32_t{}), items = number(44, uint32_t{});
  ASSERT_EQ(slices, graph.slices.size());
  ASSERT_EQ(items, graph.items.size());
  const auto pad8 = [](size_t n) { return (n + 7) / 8 * 8; };
  size_t at = 64 + 6 * 8 * slices + pad8(4 * slices);
  EXPECT_EQ(number(at + 4 * slices, uint32_t{}), items);  // first[S]
  at += pad8(4 * (slices + 1));
  EXPECT_EQ(number(at, double{}), static_cast<double>(graph.items[0].bytes));
  at += 8 * items;
  EXPECT_EQ(number(at, uint32_t{}), graph.items[0].block);
  at += pad8(4 * items);
  EXPECT_EQ(number(at + items - 1, uint8_t{}), graph.items[items - 1].in);
  EXPECT_EQ(bytes.size(), at + pad8(items));
}

TEST(BlockOrder, WhatIsNeverFreedLiesAtTheBottomInTheOrderOfItsAllocation) {
  const Picture p = picture(37, OrderBy::kLifetime);
  const Lifetimes lifetimes(*p.input, *p.pool);
  for (uint32_t rank = 2; rank <= p.pool->blocks(); ++rank) {
    const uint32_t below = p.order.block(rank - 1), above = p.order.block(rank);
    ASSERT_EQ(p.order.rank(above), rank);
    const auto key = [&](uint32_t block) { return std::pair(lifetimes.of(block), block); };
    ASSERT_LT(key(below), key(above));
  }
  EXPECT_EQ(p.pool->free_event[p.order.block(1)], kAlive);
}

TEST(Lifetimes, ClassesAreFourTimesAsLongEach) {
  // Shorter than 2^15 ns is the last class; 2^15 the one below it, to 2^17.
  EXPECT_EQ(Lifetimes::shortest(kLifetimeClasses - 1), 0u);
  EXPECT_EQ(Lifetimes::shortest(kLifetimeClasses - 2), uint64_t{1} << 15);
  EXPECT_EQ(Lifetimes::shortest(kLifetimeClasses - 3), uint64_t{1} << 17);
  IndexScript script;
  const std::vector<uint64_t> lives = {10, (1u << 15) - 1, 1u << 15, (1u << 17) - 1, 1u << 17};
  for (size_t i = 0; i < lives.size(); ++i) script.alloc(i, 0x1000 * (i + 1), 8);
  for (size_t i = 0; i < lives.size(); ++i) script.free(i + lives[i], 0x1000 * (i + 1));
  const auto input = script.build();
  const Lifetimes lifetimes(*input, *input->pools[0]);
  EXPECT_EQ(lifetimes.of(1), kLifetimeClasses - 1);
  EXPECT_EQ(lifetimes.of(2), kLifetimeClasses - 1);
  EXPECT_EQ(lifetimes.of(3), kLifetimeClasses - 2);
  EXPECT_EQ(lifetimes.of(4), kLifetimeClasses - 2);
  EXPECT_EQ(lifetimes.of(5), kLifetimeClasses - 3);
}

TEST(Colouring, ClassesHoldWhatTheirBlocksHold) {
  const auto input = random_index(41, 5000);
  const PoolIndex& pool = *input->pools[0];
  for (const ColourBy by : {ColourBy::kSite, ColourBy::kOwner, ColourBy::kSize, ColourBy::kAge,
                            ColourBy::kStep, ColourBy::kThread, ColourBy::kVerdict}) {
    const Colouring colouring(*input, pool, by, {});
    ASSERT_LE(colouring.classes.size(), kMaxClasses);
    uint64_t bytes = 0, blocks = 0;
    for (const ColourClass& entry : colouring.classes) {
      bytes += entry.bytes;
      blocks += entry.blocks;
      EXPECT_GE(entry.peak, entry.bytes);
    }
    EXPECT_EQ(bytes, pool.live_bytes);
    EXPECT_EQ(blocks, pool.blocks());
    for (uint32_t block = 1; block <= pool.blocks(); ++block) {
      ASSERT_LT(colouring.of_block[block], colouring.classes.size());
    }
  }
}

TEST(Colouring, SizesFallIntoTheRangesOfTheirNames) {
  IndexScript script;
  // 512 bytes are the first class, 513 the second; 2^33 + 1 the last.
  for (const uint64_t size : {1ul, 512ul, 513ul, 2048ul, 2049ul, 1ul << 33 | 1}) {
    script.alloc(size, size << 8, size);
  }
  const auto input = script.build();
  const Colouring colouring(*input, *input->pools[0], ColourBy::kSize, {});
  for (uint32_t block = 1; block <= 6; ++block) {
    const ColourClass& entry = colouring.classes[colouring.of_block[block]];
    const auto size = static_cast<int64_t>(input->pools[0]->size(block));
    EXPECT_GE(size, entry.from);
    if (entry.to >= 0) {
      EXPECT_LE(size, entry.to);
    }
  }
  EXPECT_EQ(colouring.of_block[1], colouring.of_block[2]);
  EXPECT_NE(colouring.of_block[2], colouring.of_block[3]);
  EXPECT_EQ(colouring.classes[1].name, "≤ 512 B");
}

}  // namespace
}  // namespace memscope::view
