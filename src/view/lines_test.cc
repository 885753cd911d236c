#include "view/lines.h"

#include <gtest/gtest.h>

#include <cmath>

#include "view/test_index.h"

namespace memscope::view {
namespace {

// Least, most and last of the totals that hold at some instant of [from, to).
void expect_pixel(const PoolIndex& pool, uint64_t from, uint64_t to, const Line& line, uint32_t i) {
  const uint32_t first = pool.state_before(from), last = pool.state_before(to);
  uint64_t least = ~uint64_t{0}, most = 0;
  for (uint32_t state = first; state <= last; ++state) {
    least = std::min(least, pool.bytes_in(state));
    most = std::max(most, pool.bytes_in(state));
  }
  EXPECT_EQ(line.least[i], static_cast<double>(least));
  EXPECT_EQ(line.most[i], static_cast<double>(most));
  EXPECT_EQ(line.last[i], static_cast<double>(pool.bytes_in(last)));
}

TEST(Lines, EveryPixelHasTheExtremesOfItsInstants) {
  const auto input = random_index(2, 3000);
  const PoolIndex& pool = *input->pools[0];
  for (const TimeWindow window :
       {TimeWindow{0, 20'000, 100}, TimeWindow{5000, 5100, 37}, TimeWindow{-3000, 30'000, 60}}) {
    const Line line = allocated_line(pool, window);
    for (uint32_t i = 0; i < window.width; ++i) {
      expect_pixel(pool, window.pixel(i), window.pixel(i + 1), line, i);
    }
  }
}

TEST(Lines, ACounterHoldsItsValueUntilTheNext) {
  CounterSeen counter;
  counter.times = {100, 200, 210};
  counter.values = {5, 9, 3};
  // Pixels of 50 ns: [0,50) [50,100) [100,150) [150,200) [200,250) [250,300)
  const Line line = counter_line(counter, {0, 300, 6});
  EXPECT_TRUE(std::isnan(line.last[0]));
  EXPECT_TRUE(std::isnan(line.most[1]));
  EXPECT_EQ(line.last[2], 5);
  EXPECT_EQ(line.most[3], 5);
  EXPECT_EQ(line.most[4], 9);
  EXPECT_EQ(line.least[4], 3);
  EXPECT_EQ(line.last[4], 3);
  EXPECT_EQ(line.least[5], 3);
  // From the middle of it: what held before holds on.
  EXPECT_EQ(counter_line(counter, {120, 180, 2}).last[0], 5);
}

TEST(Lines, ReportedIsWhatIsTrackedAndWhatIsNot) {
  IndexScript script;
  Event event{.kind = EventKind::kAlloc, .has_totals = true, .where = kTestWhere};
  event.addr = 0xA0;
  event.size = 500;
  event.allocated = 1500;
  event.reserved = 4096;
  event.time = 100;
  script.event(event);
  const auto input = script.build();
  const PoolIndex& pool = *input->pools[0];
  // The run begins with its first event: 0 on its own clock.
  EXPECT_EQ(reported_line(pool, {0, 100, 1}).last[0], 1500);
  EXPECT_EQ(reserved_line(pool, {0, 100, 1}).last[0], 4096);
  EXPECT_EQ(allocated_line(pool, {0, 100, 1}).last[0], 500);
}

}  // namespace
}  // namespace memscope::view
