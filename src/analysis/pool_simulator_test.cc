#include "analysis/pool_simulator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memscope {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;
constexpr uint64_t kFrom = 0x1000'0000'0000;

// A pool whose segments come one after another from kFrom on; addresses are told relative to it.
class Pool {
 public:
  explicit Pool(PoolSettings settings = {}) : driver_(kFrom), pool_(settings, driver_) {}

  // Where the block lies; -1: out of memory.
  int64_t alloc(uint64_t request, uint64_t stream = 0, uint16_t id = 0) {
    const auto block = pool_.alloc({.stream = stream, .pool = id, .request = request});
    note();
    return block ? static_cast<int64_t>(pool_.addr_of(*block) - kFrom) : -1;
  }
  void free(int64_t at) {
    pool_.free(*pool_.at(kFrom + static_cast<uint64_t>(at)));
    note();
  }
  void empty_cache() {
    pool_.empty_cache();
    note();
  }
  uint64_t size(int64_t at) const {
    return pool_.size_of(*pool_.at(kFrom + static_cast<uint64_t>(at)));
  }
  // "alloc 2 at 0", "map 20 at 4", ...: in MiB; since the last call.
  std::vector<std::string> events() { return std::exchange(events_, {}); }
  const PoolSimulator& operator*() const { return pool_; }

 private:
  void note() {
    for (const SegmentEvent& event : pool_.events()) {
      const char* name = event.action == PoolAction::kSegmentAlloc  ? "alloc "
                         : event.action == PoolAction::kSegmentFree ? "free "
                         : event.action == PoolAction::kSegmentMap  ? "map "
                                                                    : "unmap ";
      events_.push_back(name + std::to_string(event.size / kMi) + " at " +
                        std::to_string((event.addr - kFrom) / kMi));
    }
  }
  AscendingDriver driver_;
  PoolSimulator pool_;
  std::vector<std::string> events_;
};

using Events = std::vector<std::string>;

PoolSettings expandable() {
  PoolSettings settings;
  settings.expandable = true;
  return settings;
}

// -- which pool, which segment --------------------------------------------------------------------

// Up to 1 MiB in segments of 2; more, but less than 10, in segments of 20; else 2 MiB steps.
TEST(PoolSimulator, SegmentsAreTakenBySize) {
  Pool pool;
  EXPECT_EQ(pool.alloc(kMi), 0);
  EXPECT_EQ(pool.events(), Events{"alloc 2 at 0"});
  EXPECT_EQ(pool.alloc(kMi + 1), 2 * int64_t{kMi});  // 512 more are the large pool's
  EXPECT_EQ(pool.events(), Events{"alloc 20 at 2"});
  pool.alloc(10 * kMi - 512);  // fits behind it
  EXPECT_TRUE(pool.events().empty());
  pool.alloc(10 * kMi - 512);  // 20 - 1 - 10 are left: no
  EXPECT_EQ(pool.events(), Events{"alloc 20 at 22"});
  Pool large;
  large.alloc(10 * kMi);
  large.alloc(10 * kMi + 1);
  EXPECT_EQ(large.events(), (Events{"alloc 10 at 0", "alloc 12 at 10"}));
  EXPECT_EQ((*large).reserved(), 22 * kMi);
}

// torch_npu's 32 bytes more: exactly 1 MiB is too much for the small pool.
TEST(PoolSimulator, AnNpusMebibyteIsLarge) {
  PoolSettings npu;
  npu.rounding.pad = kPoolNpuPad;
  Pool pool(npu);
  pool.alloc(kMi);
  EXPECT_EQ(pool.events(), Events{"alloc 20 at 0"});
}

// -- splitting ------------------------------------------------------------------------------------

// In the large pool a rest of 1 MiB stays with the block; one of 512 bytes more is split off. In
// the small pool 512 bytes are split off.
TEST(PoolSimulator, WhatIsSplitOff) {
  Pool rest_1;
  EXPECT_EQ(rest_1.alloc(11 * kMi), 0);  // a segment of 12
  EXPECT_EQ(rest_1.size(0), 12 * kMi);
  Pool rest_more;
  EXPECT_EQ(rest_more.alloc(11 * kMi - 512), 0);
  EXPECT_EQ(rest_more.size(0), 11 * kMi - 512);
  Pool small;
  small.alloc(kMi);
  EXPECT_EQ(small.alloc(kMi - 512), int64_t{kMi});
  EXPECT_EQ(small.size(int64_t{kMi}), kMi - 512);
  EXPECT_EQ(small.alloc(1), 2 * int64_t{kMi} - 512);
}

TEST(PoolSimulator, TheSmallestThatFitsTheLowestOfEquals) {
  Pool pool;
  const int64_t a = pool.alloc(1024), gap_1 = pool.alloc(512), b = pool.alloc(2048),
                gap_2 = pool.alloc(512), c = pool.alloc(1024), gap_3 = pool.alloc(512);
  EXPECT_EQ(gap_1 + gap_2 + gap_3, 1024 + 3584 + 5120);
  for (const int64_t block : {c, b, a}) pool.free(block);
  EXPECT_EQ(pool.alloc(700), a);  // 1,024: a and c
  EXPECT_EQ(pool.alloc(1000), c);
  EXPECT_EQ(pool.alloc(1000), b);  // the low half of 2,048
  EXPECT_EQ(pool.alloc(1000), b + 1024);
}

TEST(PoolSimulator, FreeNeighboursAreOne) {
  Pool pool;
  const int64_t a = pool.alloc(512), b = pool.alloc(512), c = pool.alloc(512), d = pool.alloc(512);
  pool.free(a);
  pool.free(c);
  pool.free(b);  // a, b and c
  EXPECT_EQ(pool.alloc(1536), a);
  pool.free(d);
  EXPECT_EQ((*pool).allocated(), 1536u);
}

TEST(PoolSimulator, StreamsAndPoolsShareNothing) {
  Pool pool;
  pool.free(pool.alloc(512, 1));
  pool.alloc(512, 2);
  pool.alloc(512, 1, 7);
  EXPECT_EQ(pool.events(), (Events{"alloc 2 at 0", "alloc 2 at 2", "alloc 2 at 4"}));
}

// -- giving up ------------------------------------------------------------------------------------

// The large pool first, then the small one; private pools never.
TEST(PoolSimulator, EmptyCacheGivesUpWhatIsWhollyFree) {
  Pool pool;
  const int64_t small = pool.alloc(512), large = pool.alloc(3 * kMi), kept = pool.alloc(30 * kMi);
  const int64_t graph = pool.alloc(512, 0, 7);
  pool.events();
  pool.free(small);
  pool.free(large);
  pool.free(graph);
  pool.empty_cache();
  EXPECT_EQ(pool.events(), (Events{"free 20 at 2", "free 2 at 0"}));
  pool.free(kept);
  pool.empty_cache();
  EXPECT_EQ(pool.events(), Events{"free 30 at 22"});
  EXPECT_EQ((*pool).reserved(), 2 * kMi);
}

// 40 MiB are there. 20 are cached where 30 do not fit; they are given up for it, once.
TEST(PoolSimulator, AFullDeviceCostsTheCache) {
  PoolSettings settings;
  settings.capacity = 40 * kMi;
  Pool pool(settings);
  pool.free(pool.alloc(5 * kMi));
  pool.events();
  EXPECT_NE(pool.alloc(30 * kMi), -1);
  EXPECT_EQ(pool.events(), (Events{"free 20 at 0", "alloc 30 at 20"}));
  EXPECT_EQ((*pool).retries(), 1u);
  EXPECT_EQ(pool.alloc(12 * kMi), -1);
  EXPECT_EQ((*pool).retries(), 2u);
  EXPECT_EQ((*pool).reserved(), 30 * kMi);
}

// max_split 32 MiB: a free block of 40 does not serve 10, as it must not be split; it serves 33,
// whole. One of 60 does not serve 40: 20 MiB more would be wasted.
TEST(PoolSimulator, OversizeBlocksAreForOversizeRequests) {
  PoolSettings settings;
  settings.max_split = 32 * kMi;
  Pool pool(settings);
  const int64_t oversize = pool.alloc(40 * kMi);
  pool.free(oversize);
  pool.events();
  pool.alloc(10 * kMi);
  EXPECT_EQ(pool.events(), Events{"alloc 10 at 40"});
  EXPECT_EQ(pool.alloc(33 * kMi), oversize);
  EXPECT_EQ(pool.size(oversize), 40 * kMi);
  Pool wide(settings);
  wide.free(wide.alloc(60 * kMi));
  wide.events();
  wide.alloc(40 * kMi);
  EXPECT_EQ(wide.events(), Events{"alloc 40 at 60"});
}

// No room for 50 more: of the oversize blocks the smallest that would do is given up, 64, not all.
TEST(PoolSimulator, OneOversizeBlockIsGivenUpFirst) {
  PoolSettings settings;
  settings.max_split = 32 * kMi;
  settings.capacity = 200 * kMi;
  Pool pool(settings);
  const int64_t a = pool.alloc(64 * kMi), b = pool.alloc(100 * kMi);
  pool.free(a);
  pool.free(b);
  pool.events();
  EXPECT_NE(pool.alloc(42 * kMi), -1);  // 64 is more than 20 too many
  EXPECT_EQ(pool.events(), (Events{"free 64 at 0", "alloc 42 at 164"}));
  EXPECT_EQ((*pool).retries(), 0u);
}

// 60 of 200 MiB are allowed, 100 are taken: 40 are wanted. Of three free segments of 20 one was not
// asked for in the last 2 searches, two in the last one. The mean is 4/3, so that the first one
// goes; that is not enough, and of the others' mean of 1 both are as old.
TEST(PoolSimulator, GarbageIsWhatIsOlderThanTheMean) {
  PoolSettings settings;
  settings.limit = 200 * kMi;
  settings.gc_threshold = 0.3;
  Pool pool(settings);
  const int64_t a = pool.alloc(20 * kMi), b = pool.alloc(20 * kMi), c = pool.alloc(20 * kMi);
  pool.free(a);
  pool.alloc(40 * kMi, 9);  // another stream's: a search of the same pool
  pool.events();
  pool.free(b);
  pool.free(c);
  pool.alloc(22 * kMi);
  EXPECT_EQ(pool.events(),
            (Events{"free 20 at 0", "free 20 at 20", "free 20 at 40", "alloc 22 at 100"}));
}

// As before, but 10 are wanted only: the older one is enough.
TEST(PoolSimulator, GarbageIsCollectedUntilThereIsEnough) {
  PoolSettings settings;
  settings.limit = 300 * kMi;
  settings.gc_threshold = 0.3;
  Pool pool(settings);
  const int64_t a = pool.alloc(20 * kMi), b = pool.alloc(20 * kMi), c = pool.alloc(20 * kMi);
  pool.free(a);
  pool.alloc(40 * kMi, 9);
  pool.events();
  pool.free(b);
  pool.free(c);
  pool.alloc(22 * kMi);
  EXPECT_EQ(pool.events(), (Events{"free 20 at 0", "alloc 22 at 100"}));
}

TEST(PoolSimulator, GarbageIsNotCollectedWithoutALimit) {
  PoolSettings settings;
  settings.gc_threshold = 0.1;
  Pool pool(settings);
  pool.free(pool.alloc(20 * kMi));
  pool.events();
  pool.alloc(22 * kMi);
  EXPECT_EQ(pool.events(), Events{"alloc 22 at 20"});
}

// -- expandable segments --------------------------------------------------------------------------

// Pages of 20 MiB in the large pool, of 2 in the small one.
TEST(PoolSimulator, ARangeGrowsPageByPage) {
  Pool pool(expandable());
  EXPECT_EQ(pool.alloc(15 * kMi), 0);
  EXPECT_EQ(pool.alloc(15 * kMi), 15 * int64_t{kMi});  // 5 are free, 10 more are wanted: a page
  EXPECT_EQ(pool.alloc(10 * kMi), 30 * int64_t{kMi});
  EXPECT_EQ(pool.events(), (Events{"map 20 at 0", "map 20 at 20"}));
  EXPECT_EQ((*pool).reserved(), 40 * kMi);
  // Cut to measure: in the large pool as well.
  EXPECT_EQ(pool.size(0), 15 * kMi);
}

// | used 20 | hole 20 | used 22 | free 18 | then unmapped: 15 MiB would fit more closely into the
// last one, but that one can grow; the hole it is.
TEST(PoolSimulator, WhatCanGrowComesLast) {
  Pool pool(expandable());
  pool.alloc(20 * kMi);
  const int64_t hole = pool.alloc(20 * kMi);
  pool.alloc(22 * kMi);
  pool.free(hole);
  EXPECT_EQ(pool.alloc(15 * kMi), hole);
}

// A hole of 40 was unmapped. 50 MiB do not fit into it and go to the end, in whole pages; 30 do.
TEST(PoolSimulator, UnmappedPagesAreMappedAgain) {
  Pool pool(expandable());
  pool.alloc(20 * kMi);
  const int64_t hole = pool.alloc(40 * kMi);
  pool.alloc(20 * kMi);
  pool.events();
  pool.free(hole);
  pool.empty_cache();
  EXPECT_EQ(pool.events(), Events{"unmap 40 at 20"});
  EXPECT_EQ((*pool).reserved(), 40 * kMi);
  EXPECT_EQ(pool.alloc(50 * kMi), 80 * int64_t{kMi});
  EXPECT_EQ(pool.events(), Events{"map 60 at 80"});
  EXPECT_EQ(pool.alloc(30 * kMi), 20 * int64_t{kMi});
  EXPECT_EQ(pool.events(), Events{"map 40 at 20"});
}

// | used | unmapped 20 | free 20 | unmapped 20 | used |: 60 MiB take all three, in two maps.
TEST(PoolSimulator, OneRequestMayMapSeveralTimes) {
  Pool pool(expandable());
  pool.alloc(20 * kMi);
  const int64_t a = pool.alloc(20 * kMi), b = pool.alloc(20 * kMi), c = pool.alloc(20 * kMi);
  pool.alloc(20 * kMi);
  pool.free(a);
  pool.free(c);
  pool.empty_cache();
  pool.free(b);
  pool.events();
  EXPECT_EQ(pool.alloc(60 * kMi), a);
  EXPECT_EQ(pool.events(), (Events{"map 20 at 20", "map 20 at 60"}));
}

// Whole pages only: of the free 15 to 55 the page 20 to 40 goes, 15 to 20 and 40 to 55 stay. 5 MiB
// go into the latter, which cannot grow; 15 into the former, which does.
TEST(PoolSimulator, PartsOfPagesStay) {
  Pool pool(expandable());
  pool.alloc(15 * kMi);
  const int64_t middle = pool.alloc(40 * kMi);
  pool.alloc(5 * kMi);
  pool.events();
  pool.free(middle);
  pool.empty_cache();
  EXPECT_EQ(pool.events(), Events{"unmap 20 at 20"});
  EXPECT_EQ(pool.alloc(5 * kMi), 40 * int64_t{kMi});
  EXPECT_EQ(pool.alloc(15 * kMi), 15 * int64_t{kMi});
  EXPECT_EQ(pool.events(), Events{"map 20 at 20"});
}

// torch_npu: 2 MiB and more begin at a multiple of 16 KiB; what is left out is a free block.
TEST(PoolSimulator, AnNpusLargeBlocksAreAligned) {
  PoolSettings npu = expandable();
  npu.rounding.pad = kPoolNpuPad;
  npu.align = 16 << 10;
  Pool pool(npu);
  EXPECT_EQ(pool.alloc(3 * kMi), 0);  // and 512 bytes
  EXPECT_EQ(pool.alloc(3 * kMi), int64_t{3 * kMi + (16 << 10)});
  // Smaller ones are not, and find room in between only if they fit: 1.5 MiB do not.
  EXPECT_EQ(pool.alloc(kMi + kMi / 2), int64_t{6 * kMi + (16 << 10) + 512});
}

TEST(PoolSimulator, NothingIsLeftOfAnEmptyPool) {
  for (const bool grows : {false, true}) {
    PoolSettings settings;
    settings.expandable = grows;
    Pool pool(settings);
    std::vector<int64_t> blocks;
    for (uint64_t i = 1; i < 200; ++i) blocks.push_back(pool.alloc(i * i * 977));
    for (size_t i = 0; i < blocks.size(); i += 2) pool.free(blocks[i]);
    for (size_t i = 1; i < blocks.size(); i += 2) pool.free(blocks[i]);
    EXPECT_EQ((*pool).allocated(), 0u);
    pool.empty_cache();
    EXPECT_EQ((*pool).reserved(), 0u);
    EXPECT_EQ((*pool).segments(), 0u);
  }
}

TEST(PoolSimulator, ARequestBeyondAllMemoryIsOutOfMemory) {
  PoolSettings settings;
  settings.capacity = kMi;
  EXPECT_EQ(Pool(settings).alloc(~uint64_t{0}), -1);
  EXPECT_EQ(Pool(settings).alloc(uint64_t{1} << 59), -1);
}

// -- a beginning ----------------------------------------------------------------------------------

// | used 512 | free | in a small segment: the next 512 come behind the first.
TEST(PoolSimulator, ItBeginsWithWhatIsThere) {
  PoolStart start;
  start.segments = {{.addr = kFrom, .size = 2 * kMi}};
  start.blocks = {{.addr = kFrom, .size = 512, .requested = 100}};
  AscendingDriver driver(kFrom + 64 * kMi);
  PoolSimulator pool({}, driver);
  ASSERT_TRUE(pool.load(start, {}, {}));
  EXPECT_EQ(pool.reserved(), 2 * kMi);
  EXPECT_EQ(pool.requested(), 100u);
  EXPECT_EQ(pool.addr_of(*pool.alloc({.request = 512})), kFrom + 512);
  pool.free(*pool.at(kFrom));
  EXPECT_EQ(pool.addr_of(*pool.alloc({.request = 512})), kFrom);
}

// The range begins 20 MiB below what is mapped of it, and its pages are counted from there.
TEST(PoolSimulator, ARangeMayBeMappedFromItsMiddleOn) {
  PoolStart start;
  start.segments = {
      {.addr = kFrom + 20 * kMi, .size = 20 * kMi, .large = true, .expandable = true}};
  start.blocks = {{.addr = kFrom + 20 * kMi, .size = 20 * kMi, .requested = 20 * kMi}};
  const std::vector<PoolSimulator::Base> bases = {
      {.addr = kFrom, .size = 100 * kMi, .stream = 0, .large = true}};
  AscendingDriver driver(kFrom + 1024 * kMi);
  PoolSimulator pool(expandable(), driver);
  ASSERT_TRUE(pool.load(start, {}, bases));
  EXPECT_EQ(pool.addr_of(*pool.alloc({.request = 12 * kMi})), kFrom);
  EXPECT_EQ(pool.events()[0], (SegmentEvent{PoolAction::kSegmentMap, kFrom, 20 * kMi}));
  EXPECT_EQ(pool.addr_of(*pool.alloc({.request = 12 * kMi})), kFrom + 40 * kMi);
}

TEST(PoolSimulator, ABeginningThatCannotBeIsRefused) {
  PoolStart start;
  start.segments = {{.addr = kFrom, .size = 2 * kMi}};
  start.blocks = {{.addr = kFrom, .size = 1024, .requested = 1024},
                  {.addr = kFrom + 512, .size = 512, .requested = 512}};
  AscendingDriver driver(kFrom);
  PoolSimulator overlap({}, driver);
  EXPECT_FALSE(overlap.load(start, {}, {}));
  start.blocks = {{.addr = kFrom, .size = 4 * kMi, .requested = 1}};
  PoolSimulator beyond({}, driver);
  EXPECT_FALSE(beyond.load(start, {}, {}));
  start = {};
  start.segments = {{.addr = kFrom, .size = 2 * kMi, .expandable = true}};
  PoolSimulator no_base({}, driver);
  EXPECT_FALSE(no_base.load(start, {}, {}));
}

}  // namespace
}  // namespace memscope
