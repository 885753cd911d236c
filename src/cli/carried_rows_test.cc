// What a dump says beside blocks comes through when it is converted: rows and attributes that no
// analysis of ours reads are still its owner's data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/diagnose_inputs.h"
#include "cli/convert.h"
#include "export/dump_story.h"
#include "import/csv_rows.h"
#include "import/find_inputs.h"
#include "import/test_dumps.h"
#include "trace/synth.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Event, Event Type, Name, Timestamp, Device Id, Ptr and Attr of each row, joined by blanks.
std::string told(const fs::path& csv) {
  auto rows = CsvRows::open(csv);
  std::string all;
  for (CsvRows::Row row; rows.value().next(row);) {
    EXPECT_EQ(row.problem, "");
    for (const Column column : {Column::kEvent, Column::kEventType, Column::kName, Column::kTime,
                                Column::kDevice, Column::kPtr, Column::kAttr}) {
      all += std::string(row.cells[column]) + (column == Column::kAttr ? "\n" : " ");
    }
  }
  return all;
}

// All rows of the tree that the input is converted to.
std::string told_in_tree(const fs::path& input, const fs::path& tree) {
  ConvertRequest request;
  request.inputs = {input.string()};
  request.target = tree.string();
  request.is_directory = request.quiet = true;
  EXPECT_EQ(convert(request), 0);
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(tree)) {
    if (entry.is_regular_file()) all += told(entry.path());
  }
  return all;
}

fs::path converted(const fs::path& input, const fs::path& target) {
  ConvertRequest request;
  request.inputs = {input.string()};
  request.target = target.string();
  request.format = target.extension() == ".db" ? DumpFormat::kDb : DumpFormat::kCsv;
  request.quiet = true;
  EXPECT_EQ(convert(request), 0);
  return target;
}

// By way of a csv and of a db.
void expect_told(const std::string& rows, const std::string& expected) {
  const TestDirectory directory;
  const fs::path input = directory / "memscope_dump_1.csv";
  write_bytes(input, std::string(kHeader) + rows);
  EXPECT_EQ(told(converted(input, directory / "a.csv")), expected);
  converted(input, directory / "b.db");
  EXPECT_EQ(told(converted(directory / "b.db", directory / "c.csv")), expected);
}

TEST(CarriedRows, AttributesOfBlocksAndTheirUses) {
  // 26.0's keys that concern no analysis; one of a release to come. A value with commas is a JSON
  // string in our csv, but for the list of words that 26.0 itself writes bare.
  expect_told(
      "1,SYSTEM,START_TRACE,N/A,10,9,9,N/A,N/A,\"{free:100,total:300}\",,\n"
      "2,MALLOC,HAL,N/A,20,9,9,0,0x1,"
      "\"{allocation_id:1,addr:0x1,size:8,used:8,process_used:50,device_used:60,page_type:huge,"
      "alloc_type:create}\",,\n"
      "3,MALLOC,PTA,N/A,30,9,9,0,0x2,"
      "\"{allocation_id:2,addr:0x2,size:4,used:4,total:8,process_used:50,device_used:61,"
      "inefficient_type:early_allocation,late_deallocation,colour:red}\",,\n"
      "4,ACCESS,WRITE,add,40,9,9,0,0x2,"
      "\"{allocation_id:2,addr:0x2,size:4,type:PTA,dtype:float,shape:[2,3]}\",,\n",
      "SYSTEM START_TRACE N/A 10 N/A N/A {free:100,total:300}\n"
      "MALLOC HAL N/A 20 0 0x0000000000000001 {allocation_id:1,addr:0x0000000000000001,size:8,"
      "used:8,process_used:50,device_used:60,page_type:huge,alloc_type:create}\n"
      "MALLOC PTA N/A 30 0 0x0000000000000002 {allocation_id:2,addr:0x0000000000000002,size:4,"
      "used:4,total:8,process_used:50,device_used:61,"
      "inefficient_type:early_allocation,late_deallocation,colour:red}\n"
      "ACCESS WRITE add 40 0 0x0000000000000002 {allocation_id:2,addr:0x0000000000000002,size:4,"
      "type:PTA,dtype:float,shape:\"[2,3]\"}\n");
}

TEST(CarriedRows, RowsThatAreNoEvents) {
  expect_told(
      "1,SYSTEM,ACL_INIT,N/A,5,9,9,N/A,N/A,,,\n"
      "2,MALLOC,HAL,N/A,20,9,9,0,0x1,\"{size:8}\",,\n"
      "3,OOM_DETAIL,OOM_TRIGGER,OOM_Trigger,30,9,9,0,N/A,"
      "\"{func:halMemAlloc,req_size:99,flag:7}\",,\n"
      "4,OOM_DETAIL,OOM_RECENT_ALLOC,OOM_RecentAlloc,30,9,9,0,N/A,"
      "\"{pool:HAL,ptr:0x1,size:8,timestamp:20}\",,\n"
      "5,OOM_DETAIL,OOM_TOP_ALLOC,OOM_TopAlloc,30,9,9,0,N/A,"
      "\"{pool:HAL,ptr:0x1,size:8,timestamp:20}\",,\n"
      "6,SYSTEM,ACL_FINI,N/A,40,9,9,N/A,N/A,,,\n",
      "SYSTEM ACL_INIT N/A 5 N/A N/A \n"
      "MALLOC HAL N/A 20 0 0x0000000000000001 "
      "{allocation_id:1,addr:0x0000000000000001,size:8,used:8}\n"
      "OOM_DETAIL OOM_TRIGGER OOM_Trigger 30 0 N/A {req_size:99,func:halMemAlloc,flag:7}\n"
      "OOM_DETAIL OOM_RECENT_ALLOC OOM_RecentAlloc 30 0 N/A "
      "{pool:HAL,ptr:0x1,size:8,timestamp:20}\n"
      "OOM_DETAIL OOM_TOP_ALLOC OOM_TopAlloc 30 0 N/A {pool:HAL,ptr:0x1,size:8,timestamp:20}\n"
      "SYSTEM ACL_FINI N/A 40 N/A N/A \n");
}

const char* const kPaused =
    "1,SYSTEM,START_TRACE,N/A,10,9,9,N/A,N/A,,,\n"
    "2,MALLOC,PTA,N/A,20,9,9,0,0x1,\"{size:8,used:8,total:8}\",,\n"
    "3,SYSTEM,STOP_TRACE,N/A,30,9,9,N/A,N/A,,,\n"
    "4,SYSTEM,START_TRACE,N/A,50,9,9,N/A,N/A,\"{free:1,total:2}\",,\n"
    "5,MALLOC,PTA,N/A,60,9,9,0,0x2,\"{size:4,used:12,total:12}\",,\n"
    "6,SYSTEM,STOP_TRACE,N/A,70,9,9,N/A,N/A,,,\n";

TEST(CarriedRows, PausesOfTheRecording) {
  expect_told(kPaused,
              "SYSTEM START_TRACE N/A 10 N/A N/A \n"
              "MALLOC PTA N/A 20 0 0x0000000000000001 "
              "{allocation_id:1,addr:0x0000000000000001,size:8,used:8,total:8}\n"
              "SYSTEM STOP_TRACE N/A 30 N/A N/A \n"
              "SYSTEM START_TRACE N/A 50 N/A N/A {free:1,total:2}\n"
              "MALLOC PTA N/A 60 0 0x0000000000000002 "
              "{allocation_id:2,addr:0x0000000000000002,size:4,used:12,total:12}\n"
              "SYSTEM STOP_TRACE N/A 70 N/A N/A \n");
}

TEST(CarriedRows, APauseIsAGapOfTheDiagnosisAndItsBlocksLiveOn) {
  const TestDirectory directory;
  const fs::path input = directory / "memscope_dump_1.csv";
  write_bytes(input, std::string(kHeader) + kPaused);
  const auto result = diagnose_inputs(std::vector<fs::path>{input}, {});
  ASSERT_TRUE(result.ok());
  const Diagnosis& diagnosis = result.value().diagnosis;
  ASSERT_THAT(diagnosis.gaps, SizeIs(1));
  EXPECT_EQ(diagnosis.gaps[0].from_ns, 30u);
  EXPECT_EQ(diagnosis.gaps[0].to_ns, 50u);
  EXPECT_EQ(diagnosis.gaps[0].reason, "recording was stopped");
  EXPECT_EQ(diagnosis.layers.at(0).allocated.end, 12);
}

TEST(CarriedRows, WhatATraceDroppedItsDumpSays) {
  // 50 allocs and 50 frees found no slot. The dump says so in its first START_TRACE, which
  // msMemScope's readers skip, and is as doubtful as its trace.
  const TestDirectory directory;
  SynthOptions options;
  options.output = directory / "runs";
  options.steps = 20;
  options.leaks = {{}};
  options.dropped = 50;
  const auto made = synthesize(options);
  ASSERT_TRUE(made.ok());
  const auto of = [](const fs::path& path) {
    const auto paths = find_inputs(path);
    return diagnose_inputs(paths.value(), {}).value().diagnosis;
  };
  const Diagnosis trace = of(made.value().run);
  ASSERT_EQ(trace.dropped_events, 100);
  for (const char* name : {"a.csv", "a.db"}) {
    const fs::path dump = converted(made.value().run, directory / name);
    const Diagnosis read = of(dump);
    EXPECT_EQ(read.dropped_events, 100);
    EXPECT_FALSE(read.inputs.at(0).complete);
    ASSERT_EQ(read.verdicts.size(), trace.verdicts.size());
    EXPECT_DOUBLE_EQ(read.verdicts[0].confidence, trace.verdicts[0].confidence);
    // And the dump of the dump.
    EXPECT_EQ(of(converted(dump, directory / "again.csv")).dropped_events, 100);
  }
  EXPECT_THAT(told(directory / "a.csv"), HasSubstr("{dropped:100,dropped_frees:50}"));
}

TEST(CarriedRows, LabelsWhateverTheySay) {
  std::string rows, expected;
  int id = 0;
  for (const std::string label : {"plain", "\"quoted\"", "\"\"", "\"", "N/A", "NA", "''", "",
                                  "a\n9,FREE,PTA,N/A,1", "=1+1"}) {
    std::string doubled;
    for (const char c : label) doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
    const std::string number = std::to_string(++id);
    rows += number + ",MSTX,Mark,\"" + doubled + "\"," + number + ",9,9,0,N/A,,,\n";
    expected += "MSTX Mark " + label + " " + number + " 0 N/A \n";
  }
  expect_told(rows, expected);
}

TEST(CarriedRows, WithoutABlockTheyAreRowsAllTheSame) {
  // Into a file and into a tree.
  const std::string rows =
      "1,OP_LAUNCH,ATEN_START,add,5,9,9,0,N/A,,,\n2,MSTX,Mark,\"x\",6,9,9,N/A,N/A,,,\n";
  const std::string expected = "OP_LAUNCH ATEN_START add 5 0 N/A \nMSTX Mark x 6 0 N/A \n";
  expect_told(rows, expected);
  const TestDirectory directory;
  const fs::path input = directory / "memscope_dump_1.csv";
  write_bytes(input, std::string(kHeader) + rows);
  const std::string found = told_in_tree(input, directory / "tree");
  EXPECT_EQ(found, expected);
}

TEST(CarriedRows, OfEveryProcessInATree) {
  // Process 8 has a mark and no block.
  const TestDirectory directory;
  const fs::path input = directory / "memscope_dump_1.csv";
  write_bytes(input, csv("1,MALLOC,PTA,N/A,5,9,9,0,0x1,\"{size:8}\",,\n"
                         "2,MSTX,Mark,\"x\",6,8,8,0,N/A,,,\n"));
  const std::string found = told_in_tree(input, directory / "tree");
  EXPECT_THAT(found, HasSubstr("MSTX Mark x 6 0 N/A \n"));
  EXPECT_THAT(found, HasSubstr("MALLOC PTA N/A 5 0 "));
  EXPECT_THAT(told(converted(input, directory / "a.csv")), HasSubstr("MALLOC"));
}

TEST(CarriedRows, RowsOfNoDeviceAtAll) {
  const std::string rows = "1,SYSTEM,START_TRACE,N/A,5,9,9,N/A,N/A,,,\n";
  expect_told(rows, "SYSTEM START_TRACE N/A 5 N/A N/A \n");
}

}  // namespace
}  // namespace memscope::cli
