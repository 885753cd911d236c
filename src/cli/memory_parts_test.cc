#include "cli/memory_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope::cli {
namespace {

constexpr int64_t kMiB = 1 << 20;

MemoryParts sample() {
  return {.last = {{"rss", 310 * kMiB},
                   {"rss.anonymous", 200 * kMiB},
                   {"rss.file", 40 * kMiB},
                   {"rss.shmem", 70 * kMiB},
                   {"swap", 0},
                   {"agent.slab", 64 * kMiB},
                   {"cgroup.current", 1200 * kMiB},
                   {"cgroup.limit", 4096 * kMiB}},
          .peak_rss = 350 * kMiB};
}

std::string text_of(const std::vector<MemoryPartsRow>& rows) {
  std::string text;
  for (const MemoryPartsRow& row : rows) text += row.label + ": " + row.text + "\n";
  return text;
}

// 200 anonymous = 150 by our count + 50 of something else.
TEST(MemoryParts, TheAnonymousPartIsWhatWasCountedAndARest) {
  EXPECT_EQ(text_of(memory_parts_rows(sample(), 150 * kMiB, 100 * kMiB)),
            "resident: 310 MiB at the end, peak 350 MiB: anonymous 200 MiB, files 40.0 MiB, shared "
            "70.0 MiB\n"
            "anonymous: malloc and mmap 150 MiB (tensors 100 MiB of it); 50.0 MiB else: free "
            "lists, stacks, the agent's tables, what was there before the recording\n"
            "files, shared: 64.0 MiB of it are the agent's own slab\n"
            "control group: 1.17 GiB of 4.00 GiB\n");
}

// 230 were asked for, 200 are there.
TEST(MemoryParts, WhatWasNeverTouchedIsNoNegativeRest) {
  const std::string text = text_of(memory_parts_rows(sample(), 230 * kMiB, 0));
  EXPECT_THAT(text, testing::HasSubstr("malloc and mmap 230 MiB; 30.0 MiB of it never touched"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("tensors")));
}

TEST(MemoryParts, WhatWasSampledIsAnEstimate) {
  EXPECT_THAT(text_of(memory_parts_rows(sample(), 150 * kMiB, 0, 9 * kMiB)),
              testing::HasSubstr("malloc and mmap 150 MiB +- 9.00 MiB, sampled; 50.0 MiB else"));
}

TEST(MemoryParts, OneLineSaysItShortly) {
  MemoryParts parts = sample();
  EXPECT_EQ(memory_parts_line(parts),
            "310 MiB resident at the end (peak 350 MiB): anonymous 200 MiB, files 40.0 MiB, shared "
            "70.0 MiB; control group 1.17 GiB of 4.00 GiB");
  parts.last = {{"rss", kMiB}, {"swap", kMiB}, {"cgroup.current", 2 * kMiB}};
  EXPECT_EQ(memory_parts_line(parts),
            "1.00 MiB resident at the end (peak 350 MiB); swapped out 1.00 MiB; control group 2.00 "
            "MiB, without a limit");
}

TEST(MemoryParts, AnInputWithoutCountersHasNone) {
  EXPECT_FALSE(read_memory_parts("/nonexistent"));
  Diagnosis diagnosis;
  diagnosis.inputs.push_back({.path = "/nonexistent"});
  EXPECT_EQ(memory_parts_text(diagnosis, {}), "");
}

}  // namespace
}  // namespace memscope::cli
