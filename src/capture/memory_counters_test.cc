#include "capture/memory_counters.h"

#include <gtest/gtest.h>

namespace memscope::capture::memory_counters {
namespace {

TEST(MemoryCounters, StatusGivesRssAndItsPartsInBytes) {
  MemoryCounters found;
  parse_status(
      "Name:\tVmRSS: 7 kB\nVmHWM:\t    9000 kB\nVmRSS:\t    8000 kB\nRssAnon:\t    5000 kB\n"
      "RssFile:\t    2900 kB\nRssShmem:\t     100 kB\nVmSwap:\t       0 kB\n",
      &found);
  EXPECT_EQ(found.rss, 8000 * 1024);
  EXPECT_EQ(found.anonymous, 5000 * 1024);
  EXPECT_EQ(found.file, 2900 * 1024);
  EXPECT_EQ(found.shmem, 100 * 1024);
  EXPECT_EQ(found.swap, 0);
}

TEST(MemoryCounters, WhatIsNotThereIsUnknown) {
  for (const char* text : {"", "VmRSS", "VmRSS:", "VmRSS:\t kB\n", "VmRSS: 99999999999999999999 kB",
                           "VmRSS: 18446744073709551615 kB\n"}) {
    MemoryCounters found;
    parse_status(text, &found);
    EXPECT_EQ(found.rss, MemoryCounters::kUnknown) << text;
  }
}

TEST(MemoryCounters, TheRollupIsOneSumOfAllMappings) {
  SmapsRollup found;
  ASSERT_TRUE(parse_smaps_rollup(
      "55d0-7ffe ---p 00000000 00:00 0 [rollup]\nRss:    5000 kB\nPss:    3000 kB\n"
      "Pss_Anon:  1 kB\nAnonymous:  2000 kB\nSwap:  10 kB\nSwapPss: 5 kB\n",
      &found));
  EXPECT_EQ(found.rss, 5000u * 1024);
  EXPECT_EQ(found.pss, 3000u * 1024);
  EXPECT_EQ(found.anonymous, 2000u * 1024);
  EXPECT_EQ(found.swap, 10u * 1024);
  EXPECT_FALSE(parse_smaps_rollup("Rss: 5000 kB\n", &found));
}

TEST(MemoryCounters, TheMemoryControllerOfVersionOneComesBeforeVersionTwo) {
  CgroupPlace place = parse_cgroup("0::/user.slice/a:b\n");
  EXPECT_TRUE(place.found);
  EXPECT_FALSE(place.version1);
  EXPECT_EQ(place.path, "/user.slice/a:b");
  place = parse_cgroup("12:cpu,memory:/docker/7\n1:name=systemd:/x\n0::/y\n");
  EXPECT_TRUE(place.version1);
  EXPECT_EQ(place.path, "/docker/7");
  EXPECT_FALSE(parse_cgroup("").found);
  EXPECT_FALSE(parse_cgroup("3:cpu:/x\nnonsense\n").found);
}

TEST(MemoryCounters, NoLimitIsUnknown) {
  EXPECT_EQ(parse_limit("1073741824\n"), 1 << 30);
  EXPECT_EQ(parse_limit("max\n"), MemoryCounters::kUnknown);
  EXPECT_EQ(parse_limit("9223372036854771712\n"), MemoryCounters::kUnknown) << "version 1's";
  EXPECT_EQ(parse_limit(""), MemoryCounters::kUnknown);
}

TEST(CostlyReading, TakesATwoThousandthOfTheTimeAtMost) {
  CostlyReading reading;
  EXPECT_TRUE(reading.due(5));
  reading.took(1'000, 50'000);  // 2,000 * 50 us = 0.1 s: every ten seconds is rare enough
  EXPECT_FALSE(reading.due(10'000'000'999));
  EXPECT_TRUE(reading.due(10'000'001'000));
  reading.took(0, 20'000'000);  // 2,000 * 20 ms = 40 s
  EXPECT_FALSE(reading.due(39'999'999'999));
  EXPECT_TRUE(reading.due(40'000'000'000));
  reading.took(0, 100'000'001);
  EXPECT_TRUE(reading.given_up());
  EXPECT_FALSE(reading.due(UINT64_MAX));
}

}  // namespace
}  // namespace memscope::capture::memory_counters
