#include "capture/shadow_map.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

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
  constexpr uint64_t kBlocks = 200'000;  // the first segment has 2048 * 7 places
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

}  // namespace
}  // namespace memscope::capture
