#include "report/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace memscope {
namespace {

TEST(FormatBytes, ThreeSignificantDigitsInBinaryUnits) {
  EXPECT_EQ(format_bytes(int64_t{0}), "0 B");
  EXPECT_EQ(format_bytes(int64_t{999}), "999 B");
  EXPECT_EQ(format_bytes(int64_t{1024}), "1.00 KiB");
  EXPECT_EQ(format_bytes(int64_t{1} << 20), "1.00 MiB");
  EXPECT_EQ(format_bytes(int64_t{290} << 20), "290 MiB");
  EXPECT_EQ(format_bytes(int64_t{12'900'000}), "12.3 MiB");  // 12,900,000 / 2^20 = 12.302
}

TEST(FormatBytes, NeverFourDigits) {
  EXPECT_EQ(format_bytes(int64_t{1000}), "0.98 KiB");
  EXPECT_EQ(format_bytes(int64_t{1023}), "1.00 KiB");
  EXPECT_EQ(format_bytes(int64_t{1000} << 10), "0.98 MiB");
  EXPECT_EQ(format_bytes(9.999 * 1024), "10.0 KiB");
  EXPECT_EQ(format_bytes(99.99 * 1024), "100 KiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::max()), "8.00 EiB");
}

TEST(FormatBytes, SlopesMayBeFractionsOrUnknown) {
  EXPECT_EQ(format_bytes(0.25), "0.25 B");
  EXPECT_EQ(format_bytes(-2048.0), "-2.00 KiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(format_bytes_change(1 << 20), "+1.00 MiB");
  EXPECT_EQ(format_bytes_change(-1024), "-1.00 KiB");
  EXPECT_EQ(format_bytes_change(0), "0 B");
  EXPECT_EQ(format_bytes_change(1e-9), "0 B");
  EXPECT_EQ(format_bytes_change(-1e-9), "0 B");
}

TEST(FormatCount, ThousandsApart) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(-100), "-100");
  EXPECT_EQ(format_plural(1, "block"), "1 block");
  EXPECT_EQ(format_plural(290, "block"), "290 blocks");
}

TEST(FormatRate, WholeWhereWhole) {
  EXPECT_EQ(format_rate(1), "1");
  EXPECT_EQ(format_rate(0.5), "0.5");
  EXPECT_EQ(format_rate(2.25), "2.25");
  EXPECT_EQ(format_rate(1024.4), "1,024");
}

TEST(FormatDuration, TwoLargestUnits) {
  EXPECT_EQ(format_duration(850), "850 ns");
  EXPECT_EQ(format_duration(12'300'000), "12.3 ms");
  EXPECT_EQ(format_duration(999'900'000), "1.00 s");
  EXPECT_EQ(format_duration(4'210'000'000), "4.21 s");
  EXPECT_EQ(format_duration(125'000'000'000), "2 min 5 s");
  EXPECT_EQ(format_duration(12'000'000'000'000), "3 h 20 min");
}

TEST(FormatPercent, NeverPromisesCertainty) {
  EXPECT_EQ(format_percent(0.98), "98 %");
  EXPECT_EQ(format_percent(0.9999), "99 %");
  EXPECT_EQ(format_percent(1), "100 %");
  EXPECT_EQ(format_percent(0), "0 %");
}

}  // namespace
}  // namespace memscope
