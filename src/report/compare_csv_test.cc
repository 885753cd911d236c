#include "report/compare_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::HasSubstr;

class CompareCsv : public testing::Test {
 protected:
  OperatorPair pair(std::string_view name, std::optional<int64_t> base,
                    std::optional<int64_t> compare) {
    return {names.intern(name), base, compare};
  }
  StringTable names;
  DeviceOperators npu{.base = Device{Device::kNpu, 0}, .compare = Device{Device::kNpu, 0}};
};

TEST_F(CompareCsv, RowsAsMsMemScopeWritesThem) {
  npu.rows = {pair("mm", 512, 1024), pair("add", 8, std::nullopt), pair("randn", std::nullopt, 4)};
  const DeviceOperators cpu{.base = Device{}, .compare = Device{}, .rows = {pair("copy", 1, 1)}};
  EXPECT_EQ(compare_csv_rows(std::vector{npu, cpu}, OperatorLevel::kOperator, names),
            "OP_LAUNCH,mm,0,512,1024,512\n"
            "OP_LAUNCH,add,0,8,N/A,-8\n"
            "OP_LAUNCH,randn,0,N/A,4,4\n"
            "OP_LAUNCH,copy,cpu,1,1,0\n");
  EXPECT_EQ(kCompareCsvHeader,
            ",,,Base,Compare\n"
            "Event,Name,Device Id,Allocated Memory(byte),Allocated Memory(byte),"
            "Diff Memory(byte)\n");
}

TEST_F(CompareCsv, KernelsAreLaunches) {
  npu.rows = {pair("MatMul", 1, 2)};
  EXPECT_EQ(compare_csv_rows(std::vector{npu}, OperatorLevel::kKernel, names),
            "KERNEL_LAUNCH,MatMul,0,1,2,1\n");
}

TEST_F(CompareCsv, NamesAreQuotedWhereTheyMust) {
  npu.rows = {pair("a,b", 1, 1), pair("say \"hi\"", 1, 1), pair("two\nlines", 1, 1)};
  EXPECT_EQ(compare_csv_rows(std::vector{npu}, OperatorLevel::kOperator, names),
            "OP_LAUNCH,\"a,b\",0,1,1,0\n"
            "OP_LAUNCH,\"say \"\"hi\"\"\",0,1,1,0\n"
            "OP_LAUNCH,\"two\nlines\",0,1,1,0\n");
}

TEST_F(CompareCsv, ANameThatIsNotKnownIsNA) {
  npu.rows = {pair("", 1, 1)};
  EXPECT_EQ(compare_csv_rows(std::vector{npu}, OperatorLevel::kKernel, names),
            "KERNEL_LAUNCH,N/A,0,1,1,0\n");
}

TEST_F(CompareCsv, TheSummarySaysHowMuchIsInBoth) {
  npu.rows = {pair("mm", 512, 1024), pair("add", 8, std::nullopt), pair("relu", 0, 0)};
  npu.base_total = 520;
  npu.compare_total = 1024;
  npu.compare_outside = -1024;
  EXPECT_EQ(compare_csv_summary(std::vector{npu}, OperatorLevel::kOperator),
            "npu:0: 3 operators, 2 in both, 1 only in base, 0 only in compare; 2 differ\n"
            "  in operators +520 B against +1.00 KiB, outside them 0 B against -1.00 KiB\n");
}

TEST_F(CompareCsv, TheSummarySaysWhereTheLimitWasHit) {
  npu.rows = {pair("mm", 1, 1), pair("mm", 1, 1), pair("mm", 1, 1)};
  npu.shortest = false;
  npu.exact_rows = 1;
  EXPECT_THAT(compare_csv_summary(std::vector{npu}, OperatorLevel::kOperator),
              HasSubstr("exact for the first 1 rows, approximate for the other 2\n"));
}

TEST_F(CompareCsv, TheSummaryNamesBothDevicesWhereTheyDiffer) {
  npu.compare = Device{Device::kNpu, 3};
  npu.rows = {pair("mm", 1, 1)};
  EXPECT_THAT(compare_csv_summary(std::vector{npu}, OperatorLevel::kOperator),
              HasSubstr("npu:0 against npu:3: 1 operator,"));
}

}  // namespace
}  // namespace memscope
