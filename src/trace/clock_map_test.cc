#include "trace/clock_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace memscope {
namespace {

constexpr uint64_t kReal = 1'700'000'000'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

TEST(ClockMap, MonotonicTicksAreShiftedToRealTime) {
  const ClockMap map(TickSource::kMonotonic, {{500, 500, kReal + 500}});
  EXPECT_EQ(map.real_ns(500), kReal + 500);
  EXPECT_EQ(map.real_ns(0), kReal);
  EXPECT_EQ(map.real_ns(7 * kSecond), kReal + 7 * kSecond);
}

// 3 GHz: 3 ticks are a ns. Anchors one and two seconds apart.
TEST(ClockMap, IsLinearBetweenAnchorsAndBeyond) {
  const ClockMap map(TickSource::kTsc, {{3 * kSecond, kSecond, kReal},
                                        {6 * kSecond, 2 * kSecond, kReal + kSecond},
                                        {12 * kSecond, 4 * kSecond, kReal + 3 * kSecond}});
  EXPECT_NEAR(static_cast<double>(map.real_ns(3 * kSecond) - kReal), 0, 1);
  EXPECT_NEAR(static_cast<double>(map.real_ns(4'500'000'000) - kReal), 5e8, 2);
  EXPECT_NEAR(static_cast<double>(map.real_ns(12 * kSecond) - kReal), 3e9, 2);
  EXPECT_NEAR(static_cast<double>(map.real_ns(15 * kSecond) - kReal), 4e9, 4);  // after the last
  EXPECT_NEAR(static_cast<double>(kReal - map.real_ns(0)), 1e9, 2);             // before the first
  EXPECT_FALSE(map.rate_unknown());
}

// NTP slews: the second interval has 1.001 ns of clock for each of the first's.
TEST(ClockMap, FollowsADriftingRate) {
  const ClockMap map(
      TickSource::kTsc,
      {{0, 0, kReal}, {kSecond, kSecond, kReal}, {2 * kSecond, 2'001'000'000, kReal}});
  EXPECT_NEAR(static_cast<double>(map.real_ns(500'000'000) - kReal), 5e8, 1);
  EXPECT_NEAR(static_cast<double>(map.real_ns(1'500'000'000) - kReal), 1'500'500'000, 2);
}

// Somebody sets the real-time clock back by an hour: the trace's time goes on.
TEST(ClockMap, DoesNotFollowASetClock) {
  const ClockMap map(TickSource::kTsc, {{0, 0, kReal}, {kSecond, kSecond, kReal - 3600 * kSecond}});
  EXPECT_NEAR(static_cast<double>(map.real_ns(2 * kSecond) - kReal), 2e9, 4);
}

TEST(ClockMap, OneAnchorLeavesTheRateUnknown) {
  const ClockMap map(TickSource::kTsc, {{1000, 5, kReal}});
  EXPECT_TRUE(map.rate_unknown());
  EXPECT_EQ(map.real_ns(1000), kReal);
  EXPECT_EQ(map.real_ns(1010), kReal + 10);
}

// Anchors 100 ns apart, taken with an error of as much, would make any rate.
TEST(ClockMap, IgnoresAnchorsThatAreTooNear) {
  const ClockMap map(TickSource::kTsc, {{0, 0, kReal},
                                        {kSecond, kSecond, kReal},
                                        {kSecond + 100, kSecond + 1, kReal},
                                        {2 * kSecond, 2 * kSecond, kReal}});
  EXPECT_NEAR(static_cast<double>(map.real_ns(kSecond + 1000) - kReal), 1e9 + 1000, 2);
}

TEST(ClockMap, IsMonotoneAndNeverZeroWhateverTheAnchors) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ClockAnchor> anchors(random() % 6);
    for (auto& anchor : anchors) {
      anchor = {random() >> random() % 64, random() >> random() % 64, random() >> random() % 64};
    }
    const ClockMap map(TickSource::kTsc, anchors);
    std::vector<uint64_t> ticks(200);
    for (auto& t : ticks) t = random() >> random() % 64;
    for (const auto& anchor : anchors) ticks.push_back(anchor.ticks);
    std::sort(ticks.begin(), ticks.end());
    size_t hint = 0;
    uint64_t before = 1;
    for (const uint64_t t : ticks) {
      const uint64_t now = map.real_ns(t, hint);
      ASSERT_GE(now, before);
      ASSERT_EQ(now, map.real_ns(t));  // the hint changes nothing
      before = now;
    }
  }
}

}  // namespace
}  // namespace memscope
