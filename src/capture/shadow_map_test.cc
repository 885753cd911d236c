#include "capture/shadow_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "core/where.h"
#include "trace/record_table.h"

namespace memscope::capture {
namespace {

std::map<uint64_t, uint64_t> contents(const ShadowMap& map) {
  std::map<uint64_t, uint64_t> found;
  map.for_each([&](const ShadowMap::Block& block) { found[block.addr] = block.sized; });
  return found;
}

TEST(ShadowMap, HoldsWhatWasInsertedUntilItIsErased) {
  static ShadowMap map;
  map.insert(0x1000, 64, 7);
  map.insert(0x2000, 128, 8);
  EXPECT_TRUE(map.contains(0x1000));
  EXPECT_EQ(map.count(), 2u);
  EXPECT_TRUE(map.erase(0x1000));
  EXPECT_FALSE(map.erase(0x1000)) << "a second free of an address is unknown";
  EXPECT_EQ(contents(map), (std::map<uint64_t, uint64_t>{{0x2000, 128}}));
}

TEST(ShadowMap, EraseTellsWhatTheBlockWas) {
  static ShadowMap map;
  map.insert_fresh(0x1000, 64, 7);
  ShadowMap::Block gone{};
  ASSERT_TRUE(map.erase(0x1000, &gone));
  EXPECT_EQ(gone.addr, 0x1000u);
  EXPECT_EQ(gone.sized, 64u);
  EXPECT_EQ(gone.birth, 7u);
  EXPECT_FALSE(map.erase(0x1000, &gone));
}

TEST(ShadowMap, AnAddressWhoseFreeWasUnseenIsOverwritten) {
  static ShadowMap map;
  map.insert(0x1000, 64, 7);
  map.insert(0x1000, 256, 9);
  EXPECT_EQ(contents(map), (std::map<uint64_t, uint64_t>{{0x1000, 256}}));
}

TEST(ShadowMap, GrowsPastItsFirstSegmentAndFindsEverything) {
  static ShadowMap map;
  constexpr uint64_t kBlocks = 200'000;  // the first segment has 4096 * 7 places
  for (uint64_t i = 1; i <= kBlocks; ++i) map.insert(i * 64, i, i);
  EXPECT_EQ(map.lost(), 0u);
  EXPECT_EQ(map.count(), kBlocks);
  for (uint64_t i = 1; i <= kBlocks; i += 2) ASSERT_TRUE(map.erase(i * 64)) << i;
  EXPECT_EQ(map.count(), kBlocks / 2);
  map.clear();
  EXPECT_EQ(map.count(), 0u);
}

TEST(ShadowMap, ThreadsWithTheirOwnAddressesDoNotDisturbEachOther) {
  static ShadowMap map;
  constexpr uint64_t kThreads = 4, kRounds = 300, kLive = 500;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (uint64_t round = 0; round < kRounds; ++round) {
        for (uint64_t i = 1; i <= kLive; ++i) map.insert((i * kThreads + t) * 64, i, round);
        if (round + 1 == kRounds) break;  // the last round's blocks stay
        for (uint64_t i = 1; i <= kLive; ++i) {
          ASSERT_TRUE(map.erase((i * kThreads + t) * 64));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(map.count(), kThreads * kLive);
  EXPECT_EQ(map.lost(), 0u);
}

// A block is kept in 18 bytes, of which the size has 35 bits and the place of its `where` in a list
// five. All of it comes back.
TEST(ShadowMap, ABlockComesBackAsItWas) {
  static ShadowMap map;
  constexpr uint64_t kOrigin = uint64_t{1} << 60;
  map.set_origin(kOrigin);
  const uint64_t cpu = Where{Layer::kTensor, {Device::kCpu, Device::kNoIndex}}.packed();
  const uint64_t npu = Where{Layer::kPool, {Device::kNpu, 3}}.packed();
  const auto sized = [](uint64_t size, uint64_t where) {
    return pack_sized(size, static_cast<uint16_t>(where));
  };
  const std::vector<ShadowMap::Block> blocks = {
      {0x7f00'0000'1000, sized(1, cpu), kOrigin + 1},
      {0x7f00'0000'1008, sized(0xffff, npu), kOrigin + 3},
      {0x7fff'ffff'fff8, sized((uint64_t{1} << 35) - 1, cpu), kOrigin + (uint64_t{1} << 56) - 1},
      {0x7f00'0000'2000, sized(0x3'1234'5678, npu), 0},  // alive before the hooks
      // Wide ones: of 32 GiB, of an address with a tag, of a birth before the origin, and after
      // more ticks than fit.
      {0x7f00'0000'3000, sized(uint64_t{1} << 35, cpu), kOrigin + 7},
      {0x0100'7f00'0000'4000, sized(64, cpu), kOrigin + 8},
      {0x7f00'0000'5000, sized(64, cpu), kOrigin - 1},
      {0x7f00'0000'6000, sized(64, cpu), kOrigin + (uint64_t{1} << 56)},
  };
  for (const ShadowMap::Block& block : blocks) map.insert(block.addr, block.sized, block.birth);
  const auto as_tuple = [](const ShadowMap::Block& block) {
    return std::tuple(block.addr, block.sized, block.birth);
  };
  std::set<std::tuple<uint64_t, uint64_t, uint64_t>> seen;
  map.for_each([&](const ShadowMap::Block& block) { seen.insert(as_tuple(block)); });
  EXPECT_EQ(seen.size(), blocks.size());
  for (const ShadowMap::Block& block : blocks) {
    EXPECT_TRUE(seen.contains(as_tuple(block))) << std::hex << block.addr;
    EXPECT_TRUE(map.contains(block.addr));
    ShadowMap::Block gone{};
    ASSERT_TRUE(map.erase(block.addr, &gone)) << std::hex << block.addr;
    EXPECT_EQ(as_tuple(gone), as_tuple(block));
    EXPECT_FALSE(map.contains(block.addr));
  }
  EXPECT_EQ(map.count(), 0u);
  EXPECT_EQ(map.lost(), 0u);
}

// The list of wheres has 31 places and that of wide blocks 64: beyond both a block is lost, and
// counted. Of 128 wheres, 31 + 64 are kept.
TEST(ShadowMap, WhatHasNoPlaceIsCounted) {
  static ShadowMap map;
  for (uint64_t i = 0; i < 128; ++i) {
    map.insert_fresh(0x1000 + 64 * i, pack_sized(64, static_cast<uint16_t>(i)), 1);
  }
  EXPECT_EQ(map.count(), 95u);
  EXPECT_EQ(map.lost(), 33u);
  map.clear();
  EXPECT_EQ(map.count(), 0u);
}

// An address that was too wide and comes again as one that fits is there once.
TEST(ShadowMap, AnAddressIsInOnePlaceOnly) {
  static ShadowMap map;
  map.insert(0x1000, pack_sized(uint64_t{1} << 40, 5), 1);
  map.insert(0x1000, pack_sized(64, 5), 2);
  EXPECT_EQ(contents(map), (std::map<uint64_t, uint64_t>{{0x1000, pack_sized(64, 5)}}));
  map.insert(0x1000, pack_sized(uint64_t{1} << 40, 5), 3);
  EXPECT_EQ(contents(map),
            (std::map<uint64_t, uint64_t>{{0x1000, pack_sized(uint64_t{1} << 40, 5)}}));
}

// Addresses as an allocator gives them out, one after the other, of two sizes of block.
struct Program {
  uint64_t at = 0x7f00'0000'0000, random = 88172645463325252u;
  uint64_t least = 32, steps = 64;
  uint64_t next() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return at += least + random % steps * 16;
  }
};

// A segment is begun when nearly all places are taken, and is then a third of all: 18.3 B a place
// make at most 18.3 * 1.5 / 0.69 = 40 B a block beyond the first segment's 28,672 places.
TEST(ShadowMap, GrowsByAThird) {
  for (const auto& [least, steps] : {std::pair(32, 64), {32, 2}, {2048, 2}, {65536, 1}}) {
    const auto map = std::make_unique<ShadowMap>();
    Program program{.least = static_cast<uint64_t>(least), .steps = static_cast<uint64_t>(steps)};
    double worst = 0;
    for (uint64_t blocks = 1; blocks <= 1'000'000; ++blocks) {
      map->insert_fresh(program.next(), pack_sized(64, 5), blocks);
      const double each = static_cast<double>(map->bytes()) / static_cast<double>(blocks);
      if (blocks > 30'000) worst = std::max(worst, each);
    }
    EXPECT_LE(worst, 40) << least << " " << steps;
    EXPECT_EQ(map->lost(), 0u);
    EXPECT_EQ(map->count(), 1'000'000u);
  }
}

// 100,000 live blocks, of which a million are replaced in no order by others elsewhere.
TEST(ShadowMap, DoesNotGrowWhereBlocksComeAndGo) {
  const auto map = std::make_unique<ShadowMap>();
  Program program;
  std::vector<uint64_t> live;
  for (uint64_t i = 0; i < 100'000; ++i) live.push_back(program.next());
  for (const uint64_t addr : live) map->insert_fresh(addr, pack_sized(64, 5), 1);
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    uint64_t& addr = live[program.random % live.size()];
    ASSERT_TRUE(map->erase(addr));
    addr = program.next();
    map->insert_fresh(addr, pack_sized(64, 5), 1);
  }
  EXPECT_EQ(map->count(), live.size());
  EXPECT_LE(map->bytes(), 40u * live.size());
  for (const uint64_t addr : live) EXPECT_TRUE(map->contains(addr));
}

}  // namespace
}  // namespace memscope::capture
