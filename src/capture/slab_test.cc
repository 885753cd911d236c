#include "capture/slab.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

namespace memscope::capture {
namespace {

class SlabTest : public testing::Test {
 protected:
  SlabTest() : path_(testing::TempDir() + "slab_test_" + std::to_string(getpid())) {
    std::filesystem::remove(path_);
  }
  ~SlabTest() override { slab().destroy(); }
  // One static slab: it has no destructor to free what a test leaves.
  static Slab& slab() {
    static Slab the_slab;
    return the_slab;
  }
  std::string path_;
};

TEST_F(SlabTest, HandsOutEachSlotOnceAndThenNone) {
  ASSERT_EQ(slab().create(path_.c_str(), kSlabHeaderBytes + 8 * kSlotBytes), 0);
  ASSERT_EQ(slab().slot_count(), 8u);
  std::set<uint32_t> taken;
  for (uint64_t i = 0; i < 8; ++i) {
    const Slot slot = slab().acquire(1, i);
    ASSERT_NE(slot.records, nullptr);
    EXPECT_EQ(slot.records[0], 0u) << "an acquired slot shows no record";
    EXPECT_EQ(slot.header->lane_seq, i);
    taken.insert(slot.index);
  }
  EXPECT_EQ(taken.size(), 8u);
  EXPECT_EQ(slab().acquire(1, 8).records, nullptr);
}

TEST_F(SlabTest, AFullSlotIsFoundAndFreeAgainAfterRelease) {
  ASSERT_EQ(slab().create(path_.c_str(), kSlabHeaderBytes + 2 * kSlotBytes), 0);
  const Slot first = slab().acquire(1, 0);
  const Slot second = slab().acquire(2, 0);
  EXPECT_FALSE(slab().any_full());
  slab().finish(second.index);
  EXPECT_EQ(slab().next_full(0), second.index);
  slab().release(second.index);
  EXPECT_FALSE(slab().any_full());
  EXPECT_EQ(slab().acquire(3, 0).index, second.index);
  (void)first;
}

TEST_F(SlabTest, ExistingFilesAndMissingDirectoriesAreErrorsThatLeaveNothing) {
  EXPECT_EQ(slab().create("/nowhere/hot.slab", 1 << 20), ENOENT);
  ASSERT_EQ(slab().create(path_.c_str(), 1 << 20), 0);
  static Slab another;
  EXPECT_EQ(another.create(path_.c_str(), 1 << 20), EEXIST);
  EXPECT_FALSE(another.mapped());
}

TEST_F(SlabTest, IsPrivateToTheUserAndGoneWhenDestroyed) {
  ASSERT_EQ(slab().create(path_.c_str(), 1 << 20), 0);
  const auto mode = std::filesystem::status(path_).permissions();
  EXPECT_EQ(mode & std::filesystem::perms::mask,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  slab().populate();
  slab().destroy();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace memscope::capture
