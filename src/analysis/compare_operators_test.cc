#include "analysis/compare_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr Device kNpu0{Device::kNpu, 0}, kNpu1{Device::kNpu, 1};

class CompareOperators : public testing::Test {
 protected:
  std::vector<OperatorValue> run(std::vector<std::pair<const char*, int64_t>> values) {
    std::vector<OperatorValue> list;
    for (const auto& [name, bytes] : values) list.push_back({names_.intern(name), bytes});
    return list;
  }
  // "mm 512 1024", "randn - 8".
  std::vector<std::string> rows(const DeviceOperators& device) {
    std::vector<std::string> list;
    const auto text = [](const std::optional<int64_t>& bytes) {
      return bytes ? std::to_string(*bytes) : std::string("-");
    };
    for (const OperatorPair& row : device.rows) {
      list.push_back(std::string(names_.text(row.name)) + " " + text(row.base) + " " +
                     text(row.compare));
    }
    return list;
  }
  StringTable names_;
};

TEST_F(CompareOperators, AlignsByNameAndShowsWhatIsInOneOnly) {
  OperatorRun base{.devices = {{kNpu0, run({{"mm", 512}, {"add", 8}, {"relu", 0}})}}};
  OperatorRun compare{.devices = {{kNpu0, run({{"mm", 1024}, {"randn", 4}, {"relu", -8}})}},
                      .outside = {{kNpu0, -3}}};
  const auto devices = compare_operators(base, compare);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_THAT(rows(devices[0]), ElementsAre("mm 512 1024", "add 8 -", "randn - 4", "relu 0 -8"));
  EXPECT_EQ(devices[0].rows[0].difference(), 512);
  EXPECT_EQ(devices[0].rows[1].difference(), -8);  // a missing side counts as 0
  EXPECT_EQ(devices[0].base_total, 520);
  EXPECT_EQ(devices[0].compare_total, 1020);
  EXPECT_EQ(devices[0].compare_outside, -3);
  EXPECT_TRUE(devices[0].shortest);
  EXPECT_EQ(devices[0].exact_rows, 4u);
}

TEST_F(CompareOperators, ComparesTwoRanksWhateverTheirDevices) {
  OperatorRun base{.devices = {{kNpu0, run({{"mm", 1}})}}};
  OperatorRun compare{.devices = {{kNpu1, run({{"mm", 2}})}}};
  const auto devices = compare_operators(base, compare);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].base, kNpu0);
  EXPECT_EQ(devices[0].compare, kNpu1);
  EXPECT_THAT(rows(devices[0]), ElementsAre("mm 1 2"));
}

TEST_F(CompareOperators, ADeviceOfOneRunHasNothingBesideIt) {
  OperatorRun base{.devices = {{kNpu0, run({{"mm", 1}})}, {kNpu1, run({{"add", 5}})}}};
  OperatorRun compare{.devices = {{kNpu0, run({{"mm", 2}})}}};
  const auto devices = compare_operators(base, compare);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_THAT(rows(devices[0]), ElementsAre("mm 1 2"));
  EXPECT_THAT(rows(devices[1]), ElementsAre("add 5 -"));
  EXPECT_FALSE(devices[1].compare);
}

TEST_F(CompareOperators, SaysWhereTheAlignmentStoppedBeingTheBest) {
  // Two long runs in different orders, with no work allowed: every row is still there, once.
  std::vector<OperatorValue> a, b;
  for (uint32_t i = 0; i < 3000; ++i) {
    a.push_back({names_.intern(i * i % 7 < 3 ? "mm" : "add"), 1});
    b.push_back({names_.intern(i * i % 11 < 5 ? "mm" : "add"), 1});
  }
  const auto devices =
      compare_operators({.devices = {{kNpu0, a}}}, {.devices = {{kNpu0, b}}}, {.work = 0});
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_FALSE(devices[0].shortest);
  EXPECT_LT(devices[0].exact_rows, devices[0].rows.size());
  EXPECT_EQ(devices[0].base_total, 3000);
  EXPECT_EQ(devices[0].compare_total, 3000);
}

}  // namespace
}  // namespace memscope
