#include "analysis/pool_verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>

#include "import/snapshot_file.h"

namespace memscope {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;
constexpr uint64_t kBase = 0x7f0000000000;

// One device's history, with stacks of one frame each.
struct Recorded {
  PoolHistory history;
  PoolTables tables;
  StackTable stacks;
  StringTable strings;

  StackId stack(std::string_view function) {
    Frame frame;
    frame.function = strings.intern(function);
    return stacks.intern(StackId(), stacks.intern_frame(frame));
  }
  void add(PoolAction action, uint64_t addr, uint64_t size, std::string_view function = "step") {
    history.entries.push_back(
        {.addr = addr, .size = size, .stack = stack(function), .action = action});
  }
  void freed(uint64_t addr, uint64_t size) {
    add(PoolAction::kFreeRequested, addr, size);
    add(PoolAction::kFreeCompleted, addr, size);
  }
  PoolInput input() const { return {history, tables, stacks, strings}; }
};

// 1,000 bytes in a new segment, 3 MiB in another, both freed.
Recorded two_segments() {
  Recorded recorded;
  recorded.add(PoolAction::kSegmentAlloc, kBase, 2 * kMi);
  recorded.add(PoolAction::kAlloc, kBase, 1000);
  recorded.add(PoolAction::kSegmentAlloc, kBase + 64 * kMi, 20 * kMi);
  recorded.add(PoolAction::kAlloc, kBase + 64 * kMi, 3 * kMi);
  recorded.freed(kBase, 1000);
  recorded.freed(kBase + 64 * kMi, 3 * kMi);
  return recorded;
}

TEST(PoolVerify, WhatWasRecordedIsMadeAgain) {
  Recorded recorded = two_segments();
  recorded.history.segments = {{.addr = kBase, .size = 2 * kMi},
                               {.addr = kBase + 64 * kMi, .size = 20 * kMi, .large = true}};
  const PoolCheck check = verify_pool(recorded.input(), {});
  EXPECT_EQ(check.first_difference, "");
  EXPECT_TRUE(check.exact());
  EXPECT_EQ(check.segment_events, 2u);
  EXPECT_EQ(check.allocs, 2u);
  EXPECT_EQ(check.operations, 4u);
}

// Freed by the program: a frame says so. The large pool goes first.
TEST(PoolVerify, EmptyCacheIsToldByItsFrames) {
  Recorded recorded = two_segments();
  recorded.add(PoolAction::kSegmentFree, kBase + 64 * kMi, 20 * kMi, "empty_cache");
  recorded.add(PoolAction::kSegmentFree, kBase, 2 * kMi, "empty_cache");
  recorded.add(PoolAction::kSegmentAlloc, kBase, 2 * kMi);
  recorded.add(PoolAction::kAlloc, kBase, 1);
  recorded.history.segments = {{.addr = kBase, .size = 2 * kMi}};
  recorded.history.blocks = {{.addr = kBase, .size = 512, .requested = 1}};
  const PoolCheck check = verify_pool(recorded.input(), {});
  EXPECT_EQ(check.first_difference, "");
  EXPECT_TRUE(check.exact());
  EXPECT_EQ(check.user_calls, 1u);
  EXPECT_EQ(check.retries, 0u);
}

// The request's own stack: the device was full.
TEST(PoolVerify, ARetryIsToldByTheRequestsStack) {
  Recorded recorded = two_segments();
  recorded.add(PoolAction::kSegmentFree, kBase + 64 * kMi, 20 * kMi);
  recorded.add(PoolAction::kSegmentFree, kBase, 2 * kMi);
  recorded.add(PoolAction::kSegmentAlloc, kBase, 30 * kMi);
  recorded.add(PoolAction::kAlloc, kBase, 30 * kMi);
  recorded.history.segments = {{.addr = kBase, .size = 30 * kMi, .large = true}};
  recorded.history.blocks = {{.addr = kBase, .size = 30 * kMi, .requested = 30 * kMi}};
  const PoolCheck check = verify_pool(recorded.input(), {});
  EXPECT_EQ(check.first_difference, "");
  EXPECT_TRUE(check.exact());
  EXPECT_EQ(check.user_calls, 0u);
  EXPECT_EQ(check.retries, 1u);
}

// 4 MiB were taken where the rules take 20: entry 3 is the request that did it.
TEST(PoolVerify, TheFirstDifferenceIsSaid) {
  Recorded recorded;
  recorded.add(PoolAction::kSegmentAlloc, kBase, 2 * kMi);
  recorded.add(PoolAction::kAlloc, kBase, 1000);
  recorded.add(PoolAction::kSegmentAlloc, kBase + 64 * kMi, 4 * kMi);
  recorded.add(PoolAction::kAlloc, kBase + 64 * kMi, 3 * kMi);
  recorded.history.segments = {{.addr = kBase, .size = 2 * kMi},
                               {.addr = kBase + 64 * kMi, .size = 4 * kMi, .large = true}};
  recorded.history.blocks = {{.addr = kBase, .size = 1024, .requested = 1000},
                             {.addr = kBase + 64 * kMi, .size = 3 * kMi, .requested = 3 * kMi}};
  const PoolCheck check = verify_pool(recorded.input(), {});
  EXPECT_FALSE(check.exact());
  EXPECT_EQ(check.same_events, 1u);
  EXPECT_EQ(check.most_reserved_off, 16 * kMi);
  EXPECT_EQ(check.first_difference,
            "entry 3: expected segment_alloc of 4194304 B at 0x7f0004000000, got segment_alloc of "
            "20971520 B at 0x7f0004400000");
}

// 512 bytes take 1,024 on an NPU: the second block tells.
TEST(PoolVerify, CalibrationFindsThePadding) {
  Recorded recorded;
  recorded.history.device.type = Device::kNpu;
  recorded.add(PoolAction::kSegmentAlloc, kBase, 2 * kMi);
  recorded.add(PoolAction::kAlloc, kBase, 512);
  recorded.add(PoolAction::kAlloc, kBase + 1024, 512);
  recorded.freed(kBase, 512);
  recorded.freed(kBase + 1024, 512);
  recorded.history.segments = {{.addr = kBase, .size = 2 * kMi}};
  EXPECT_FALSE(verify_pool(recorded.input(), {}).exact());
  const PoolCheck check = calibrate_pool(recorded.input(), {});
  EXPECT_TRUE(check.exact());
  EXPECT_EQ(check.settings.rounding.pad, kPoolNpuPad);
}

TEST(PoolVerify, WithoutAHistoryThereIsNoModel) {
  const Recorded recorded;
  const PoolCheck check = verify_pool(recorded.input(), {});
  EXPECT_EQ(check.refused, "no history was recorded");
  EXPECT_FALSE(check.exact());
}

// Base of a range: the lowest address at which any of it was mapped, not where it is mapped now;
// the small pool's range is one of its own.
TEST(PoolVerify, ARangeBeginsWhereItWasEverMapped) {
  Recorded recorded;
  recorded.add(PoolAction::kSegmentMap, kBase + 128 * kMi, 20 * kMi);
  recorded.history.segments = {
      {.addr = kBase, .size = 2 * kMi, .expandable = true},
      {.addr = kBase + 128 * kMi, .size = 60 * kMi, .large = true, .expandable = true}};
  const PoolStart start = work_back(recorded.history, {});
  const auto bases = range_bases(recorded.history, start, recorded.tables);
  ASSERT_EQ(bases.size(), 2u);
  EXPECT_EQ(bases[0].addr, kBase);
  EXPECT_EQ(bases[0].size, 128 * kMi);
  EXPECT_EQ(bases[1].addr, kBase + 128 * kMi);
  EXPECT_TRUE(bases[1].large);
}

// -- real files -----------------------------------------------------------------------------------

// This file lies in src/analysis of the checkout; what is shared lies beside the checkout. (Its
// name may be relative to the build directory, where tests are run.)
std::shared_ptr<const SnapshotFile> real_file(const char* name) {
  const auto here = std::filesystem::absolute(__FILE__).lexically_normal();
  const auto checkout = here.parent_path().parent_path().parent_path();
  const auto path = checkout.parent_path() / "shared" / "data" / "snapshot" / name;
  const auto file = import_snapshot(path);
  return file ? file.value() : nullptr;
}

PoolInput input_of(const SnapshotFile& file) {
  return {file.devices[0], file.tables, file.stacks, file.strings};
}

TEST(PoolVerify, RealFilesAreReproducedInFull) {
  const struct {
    const char* name;
    uint64_t segment_events, allocs, user_calls;
  } files[] = {{"npu_empty_cache.pickle", 133, 2899, 3},
               {"npu_expandable_segments.pickle", 45, 2899, 0}};
  for (const auto& expected : files) {
    const auto file = real_file(expected.name);
    if (!file) GTEST_SKIP() << "no file";
    const PoolCheck check =
        verify_pool(input_of(*file), settings_of(file->devices[0], file->rounding, file->settings));
    EXPECT_TRUE(check.exact()) << check.first_difference;
    EXPECT_EQ(check.segment_events, expected.segment_events);
    EXPECT_EQ(check.same_events, expected.segment_events);
    EXPECT_EQ(check.allocs, expected.allocs);
    EXPECT_EQ(check.same_addrs, expected.allocs);
    EXPECT_EQ(check.user_calls, expected.user_calls);
  }
}

// The check has teeth: one rule broken at a time.
TEST(PoolVerify, ABrokenRuleShows) {
  const auto plain = real_file("npu_empty_cache.pickle");
  const auto grown = real_file("npu_expandable_segments.pickle");
  if (!plain || !grown) GTEST_SKIP() << "no file";
  const PoolSettings of_plain = settings_of(plain->devices[0], plain->rounding, plain->settings);
  const PoolSettings of_grown = settings_of(grown->devices[0], grown->rounding, grown->settings);
  PoolSettings broken = of_plain;
  broken.rounding.pad = 0;
  EXPECT_LT(verify_pool(input_of(*plain), broken).same_addrs, 2899u / 10);
  broken = of_plain;
  broken.large_segment = 10 * kMi;
  EXPECT_FALSE(verify_pool(input_of(*plain), broken).exact());
  broken = of_plain;
  broken.expandable = true;
  EXPECT_FALSE(verify_pool(input_of(*plain), broken).exact());
  broken = of_grown;
  broken.align = 0;
  EXPECT_FALSE(verify_pool(input_of(*grown), broken).exact());
  broken = of_grown;
  broken.large_page = 2 * kMi;
  EXPECT_FALSE(verify_pool(input_of(*grown), broken).exact());
}

// Of pads, alignments and pages the true ones are found, whatever is assumed at first.
TEST(PoolVerify, RealFilesCalibrateToTheirSettings) {
  const auto file = real_file("npu_expandable_segments.pickle");
  if (!file) GTEST_SKIP() << "no file";
  PoolSettings assumed;
  assumed.expandable = true;
  assumed.large_page = 2 * kMi;
  const PoolCheck check = calibrate_pool(input_of(*file), assumed);
  EXPECT_TRUE(check.exact());
  EXPECT_EQ(check.settings.rounding.pad, 32u);
  EXPECT_EQ(check.settings.align, 16u << 10);
  EXPECT_EQ(check.settings.large_page, 20 * kMi);
}

}  // namespace
}  // namespace memscope
