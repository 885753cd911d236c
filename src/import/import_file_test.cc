// What rows of msMemScope mean: each small file with the events it must give.
#include "import/import_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/find_inputs.h"
#include "import/test_dumps.h"
#include "trace/records.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ImportCsv, RowsComeInTheOrderOfTime) {
  // The original writes a block's rows when it is freed, and at the exit what is left.
  OpenedFile file(
      csv("7,FREE,PTA,N/A,1764753083000000070,9,9,0,0x0000000000000010,"
          "\"{allocation_id:2,addr:0x0000000000000010,size:64,used:0,total:2048}\",,\n"
          "3,MALLOC,PTA,N/A,1764753083000000030,9,9,0,0x0000000000000010,"
          "\"{allocation_id:2,addr:0x0000000000000010,size:64,used:64,total:2048}\",,\n"
          "2,MALLOC,HAL,N/A,1764753083000000020,9,9,0,0x0000000000000010,"
          "\"{allocation_id:1,addr:0x0000000000000010,size:2048}\",,\n"
          "1,SYSTEM,START_TRACE,N/A,1764753083000000010,9,9,N/A,N/A,,,\n"));
  ASSERT_EQ(file.error(), "");
  EXPECT_THAT(block_events(file), ElementsAre("alloc 10+2048 @1764753083000000020 driver npu:0",
                                              "alloc 10+64 @1764753083000000030 pool npu:0",
                                              "free 10+64 @1764753083000000070 pool npu:0"));
  const auto events = file.events();
  EXPECT_EQ(events[0].event.kind, EventKind::kWindow);
  EXPECT_FALSE(events[1].event.has_totals);  // the driver tells no reserved bytes
  EXPECT_TRUE(events[2].event.has_totals);
  EXPECT_EQ(events[2].event.allocated, 64u);
  EXPECT_EQ(events[2].event.reserved, 2048u);
  const InputInfo info = file.input().info();
  EXPECT_EQ(info.kind, InputKind::kCsv);
  EXPECT_EQ(info.process->pid, 9u);
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.ended, "unknown");
}

TEST(ImportCsv, EveryLayer) {
  const char* const kRows =
      "1,MALLOC,HAL,N/A,1,9,9,0,0x1,{size:8},,\n"
      "2,MALLOC,HAL,N/A,2,9,9,host,0x2,{size:8},,\n"
      "3,MALLOC,PTA,N/A,3,9,9,1,0x3,{size:8},,\n"
      "4,MALLOC,PTA_WORKSPACE,N/A,4,9,9,1,0x4,{size:8},,\n"
      "5,MALLOC,ATB,N/A,5,9,9,1,0x5,{size:8},,\n"
      "6,MALLOC,MINDSPORE,N/A,6,9,9,1,0x6,{size:8},,\n"
      "7,MALLOC,MindSpore,N/A,7,9,9,1,0x7,{size:8},,\n"
      "8,MALLOC,HOST,N/A,8,9,9,cpu,0x8,\"{size:8,total:8}\",,\n"
      "9,MALLOC,HOST,N/A,9,9,9,cpu,0x9,\"{size:8,pinned:true,used:8}\",,\n"
      "10,MALLOC,HOST_PINNED,N/A,10,9,9,cpu,0xa,{size:8},,\n"
      "11,MALLOC,HOST_MALLOC,N/A,11,9,9,cpu,0xb,{size:8},,\n"
      "12,MALLOC,PYTHON,N/A,12,9,9,cpu,0xc,{size:8},,\n";
  OpenedFile file(csv(kRows));
  EXPECT_THAT(
      block_events(file),
      ElementsAre("alloc 1+8 @1 driver npu:0", "alloc 2+8 @2 pinned cpu", "alloc 3+8 @3 pool npu:1",
                  "alloc 4+8 @4 workspace npu:1", "alloc 5+8 @5 pool npu:1",
                  "alloc 6+8 @6 pool npu:1", "alloc 7+8 @7 pool npu:1", "alloc 8+8 @8 tensor cpu",
                  "alloc 9+8 @9 pinned cpu", "alloc a+8 @10 pinned cpu", "alloc b+8 @11 host cpu",
                  "alloc c+8 @12 python cpu"));
  const auto events = file.events();
  EXPECT_EQ(events[4].event.where.layer, Layer::kPoolAtb);
  EXPECT_EQ(events[5].event.where.layer, Layer::kPoolMindSpore);
}

TEST(ImportCsv, FilesOfOldHaveMicrosecondsDecimalsAndFreesWithoutADevice) {
  // Two blocks of the driver, on npu:1 and on the host; their FREE rows do not say where.
  OpenedFile file(
      csv("1,SYSTEM,acl init,N/A,1746006014162153,9,9,N/A,N/A,,,\n"
          "2,MALLOC,HAL,N/A,1746006014361575,9,9,1,20615843020800,"
          "\"{addr:20615843020800,size:16384,owner:,MID:7}\",,\n"
          "3,MALLOC,HAL,N/A,1746006014361580,9,9,host,4096,"
          "\"{addr:4096,size:8192,owner:,MID:7}\",,\n"
          "4,FREE,HAL,N/A,1746006014361590,9,9,N/A,4096,"
          "\"{addr:4096,size:-8192,owner:,MID:7}\",,\n"
          "5,FREE,HAL,N/A,1746006014361591,9,9,N/A,20615843020800,"
          "\"{addr:20615843020800,size:-16384,owner:,MID:7}\",,\n"));
  EXPECT_THAT(block_events(file),
              ElementsAre("alloc 12c000000000+16384 @1746006014361575000 driver npu:1",
                          "alloc 1000+8192 @1746006014361580000 pinned cpu",
                          "free 1000+8192 @1746006014361590000 pinned cpu",
                          "free 12c000000000+16384 @1746006014361591000 driver npu:1"));
}

TEST(ImportCsv, AWorkspaceThatOnlyItsMallocTells) {
  OpenedFile file(
      csv("1,MALLOC,PTA,N/A,1,9,9,0,0x1,\"{size:8,owner:PTA_WORKSPACE}\",,\n"
          "2,MALLOC,PTA,N/A,2,9,9,0,0x2,\"{size:8,owner:PTA@ops}\",,\n"
          "3,FREE,PTA,N/A,3,9,9,0,0x1,{size:8},,\n"
          "4,FREE,PTA,N/A,4,9,9,0,0x2,{size:8},,\n"));
  EXPECT_THAT(block_events(file),
              ElementsAre("alloc 1+8 @1 workspace npu:0", "alloc 2+8 @2 pool npu:0",
                          "free 1+8 @3 workspace npu:0", "free 2+8 @4 pool npu:0"));
  const auto owners = file.records<OwnerRecord>();
  ASSERT_THAT(owners, SizeIs(2));
  const auto owner = decode_record<OwnerRecord>(owners[1].second);
  EXPECT_EQ(owner->owner, "PTA@ops");
  EXPECT_EQ(owner->addr, 2u);
  EXPECT_EQ(owners[1].first.time, 2u);
}

TEST(ImportCsv, ShadowRows) {
  // MALLOC with shadow: alive at start(). FREE with shadow at the end: alive at the end.
  OpenedFile file(
      csv("1,SYSTEM,START_TRACE,N/A,1000,9,9,N/A,N/A,,,\n"
          "2,MALLOC,PTA,N/A,1000,9,9,0,0x1,\"{size:8,shadow:true}\",,\n"
          "3,MALLOC,PTA,N/A,2000,9,9,0,0x2,{size:8},,\n"
          "4,SYSTEM,STOP_TRACE,N/A,9000,9,9,N/A,N/A,,,\n"
          "5,FREE,PTA,N/A,9001,9,9,0,0x1,\"{size:8,shadow:true}\",,\n"
          "6,FREE,PTA,N/A,9001,9,9,0,0x2,\"{size:8,shadow:true}\",,\n"));
  EXPECT_THAT(block_events(file),
              ElementsAre("seed 1+8 @1000 pool npu:0", "alloc 2+8 @2000 pool npu:0"));
  EXPECT_EQ(file.input().info().ended, "stop");
  EXPECT_FALSE(file.input().info().complete);  // a block is older than the recording
}

TEST(ImportCsv, ShadowFreesBetweenTwoRecordings) {
  // Freed while not recording; stamped with the start of the next recording. All of it lies more
  // than a millisecond apart, as programs do.
  OpenedFile file(
      csv("1,SYSTEM,START_TRACE,N/A,1000,9,9,N/A,N/A,,,\n"
          "2,MALLOC,PTA,N/A,2000,9,9,0,0x1,{size:8},,\n"
          "3,MALLOC,PTA,N/A,2001,9,9,0,0x2,{size:8},,\n"
          "4,SYSTEM,STOP_TRACE,N/A,9000000,9,9,N/A,N/A,,,\n"
          "5,SYSTEM,START_TRACE,N/A,90000000,9,9,N/A,N/A,,,\n"
          "6,FREE,PTA,N/A,90000000,9,9,0,0x1,\"{size:8,shadow:true}\",,\n"
          "7,MALLOC,PTA,N/A,91000000,9,9,0,0x3,{size:8},,\n"
          "8,FREE,PTA,N/A,99000000,9,9,0,0x2,\"{size:8,shadow:true}\",,\n"));
  EXPECT_THAT(block_events(file),
              ElementsAre("alloc 1+8 @2000 pool npu:0", "alloc 2+8 @2001 pool npu:0",
                          "free 1+8 @90000000 pool npu:0", "alloc 3+8 @91000000 pool npu:0"));
  EXPECT_EQ(file.input().info().ended, "exit");
}

TEST(ImportCsv, ProcessesOfOneFileAreInputsOfTheirOwn) {
  OpenedFile file(
      csv("1,SYSTEM,ACL_INIT,N/A,1,5,5,N/A,N/A,,,\n"  // no blocks: no input
          "1,MALLOC,PTA,N/A,1,9,9,0,0x1,{size:8},,\n"
          "1,MALLOC,PTA,N/A,2,7,7,0,0x1,{size:8},,\n"
          "2,FREE,PTA,N/A,3,9,9,0,0x1,{size:8},,\n"));
  ASSERT_THAT(file.inputs(), SizeIs(2));
  EXPECT_EQ(file.inputs()[0].info().process->pid, 9u);
  EXPECT_EQ(file.inputs()[1].info().process->pid, 7u);
  EXPECT_THAT(block_events(file, 0),
              ElementsAre("alloc 1+8 @1 pool npu:0", "free 1+8 @3 pool npu:0"));
  EXPECT_THAT(block_events(file, 1), ElementsAre("alloc 1+8 @2 pool npu:0"));
}

TEST(ImportCsv, ARowWrittenTwiceCountsOnce) {
  // A fork took the buffer along: header and rows come again.
  const std::string rows =
      "1,MALLOC,PTA,N/A,1,9,9,0,0x1,{size:8},,\n2,FREE,PTA,N/A,2,9,9,0,0x1,{size:8},,\n";
  OpenedFile file(csv(rows) + csv(rows));
  EXPECT_THAT(block_events(file), ElementsAre("alloc 1+8 @1 pool npu:0", "free 1+8 @2 pool npu:0"));
  EXPECT_TRUE(file.input().info().complete);
}

TEST(ImportCsv, StepsRangesAndMarks) {
  // An inner range ends within the step; the step's own end is the last one.
  OpenedFile file(
      csv("1,SYSTEM,STEP,3,1,9,9,N/A,N/A,,,\n"
          "2,MSTX,Range_start,\"step start\",2,9,9,0,N/A,,,\n"
          "3,MSTX,Range_start,\"forward\",3,9,9,0,N/A,,,\n"
          "4,MSTX,Range_end,N/A,4,9,9,0,N/A,,,\n"
          "5,MSTX,Range_end,N/A,5,9,9,0,N/A,,,\n"
          "6,MSTX,Mark,\"hello\",6,9,8,1,N/A,,,\n"
          "7,MALLOC,PTA,N/A,7,9,9,0,0x1,{size:8},,\n"));
  const auto steps = file.records<StepRecord>();
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_EQ(decode_record<StepRecord>(steps[0].second)->index, 3u);
  std::vector<std::string> marks;
  for (const auto& [event, words] : file.records<MarkRecord>()) {
    const auto mark = decode_record<MarkRecord>(words);
    marks.push_back(std::to_string(mark->action) + " " + std::to_string(mark->range) + " " +
                    std::string(mark->text) + " " + device_name(event.where.device));
  }
  EXPECT_THAT(marks, ElementsAre("1 1 step start npu:0", "1 2 forward npu:0", "2 2  npu:0",
                                 "2 1  npu:0", "0 0 hello npu:1"));
  EXPECT_EQ(file.input().threads()[file.records<MarkRecord>()[4].first.thread.value].tid, 8u);
}

TEST(ImportCsv, LaunchesAccessesAndTheRest) {
  OpenedFile file(
      csv("1,OP_LAUNCH,ATEN_START,aten.mm,1,9,9,0,N/A,,,\n"
          "2,OP_LAUNCH,ATB_END,linear,2,9,9,0,N/A,,,\n"
          "3,KERNEL_LAUNCH,KERNEL_LAUNCH,k,3,9,9,0,N/A,\"{streamId:4,taskId:5}\",,\n"
          "4,KERNEL_LAUNCH,KERNEL_EXECUTE_END,k,4,9,9,0,N/A,\"{streamId:4,taskId:5}\",,\n"
          "5,ACCESS,WRITE,aten.mm,5,9,9,0,0x1,\"{allocation_id:1,addr:0x1,size:8,type:ATB}\",,\n"
          "6,OOM_DETAIL,OOM_TRIGGER,OOM_Trigger,6,9,9,0,N/A,\"{func:halMemAlloc,req_size:77}\",,\n"
          "7,OOM_DETAIL,OOM_TOP_ALLOC,OOM_TopAlloc,7,9,9,0,N/A,\"{pool:PTA,size:5}\",,\n"
          "8,SNAPSHOT,SNAPSHOT,here,8,9,9,0,N/A,\"{reserved:10,allocated:6,total:99}\",,\n"
          "9,MALLOC,HAL,N/A,9,9,9,0,0x1,\"{size:8,process_used:50,device_used:60}\",,\n"
          "10,MALLOC,HAL,N/A,10,9,9,0,0x2,\"{size:8,process_used:50,device_used:61}\",,\n"));
  ASSERT_EQ(file.error(), "");
  std::vector<std::string> launches;
  for (const auto& [event, words] : file.records<LaunchRecord>()) {
    const auto launch = decode_record<LaunchRecord>(words);
    launches.push_back(std::to_string(launch->level) + " " + std::to_string(launch->action) + " " +
                       std::string(launch->name) + " " + std::to_string(launch->stream));
  }
  EXPECT_THAT(launches, ElementsAre("0 0 aten.mm 0", "2 1 linear 0", "1 2 k 4", "1 1 k 4"));
  const auto access = file.records<AccessRecord>();
  ASSERT_THAT(access, SizeIs(1));
  EXPECT_EQ(access[0].first.where, (Where{Layer::kPoolAtb, {Device::kNpu, 0}}));
  EXPECT_EQ(decode_record<AccessRecord>(access[0].second)->mode, 2u);
  const auto oom = file.records<OomRecord>();
  ASSERT_THAT(oom, SizeIs(1));
  EXPECT_EQ(decode_record<OomRecord>(oom[0].second)->size, 77u);
  const auto snapshot = file.records<PoolSnapshotRecord>();
  ASSERT_THAT(snapshot, SizeIs(1));
  EXPECT_EQ(decode_record<PoolSnapshotRecord>(snapshot[0].second)->detail,
            R"({"name":"here","total":99})");
  std::vector<std::string> counters;  // where they change
  for (const auto& [event, words] : file.records<CounterRecord>()) {
    const auto counter = decode_record<CounterRecord>(words);
    counters.push_back(std::string(counter->name) + " " + std::to_string(counter->value));
  }
  EXPECT_THAT(counters, ElementsAre("process_used 50", "device_used 60", "device_used 61"));
}

TEST(ImportCsv, GoodRowsAreUsedBadOnesCountedAndTheFirstShown) {
  OpenedFile file(
      csv("1,MALLOC,PTA,N/A,1,9,9,0,0x1,{size:8},,\n"
          "2,MALLOC,PTA,N/A,2,9,9,0,0x2,{size:eight},,\n"  // line 3
          "3,MALLOC,PTA,N/A,x,9,9,0,0x2,{size:8},,\n"
          "4,FREE,PTA,N/A,4,9,9,0,there,{size:8},,\n"
          "5,GRAB,PTA,N/A,5,9,9,0,0x1,{size:8},,\n"
          "6,FREE,PTA,N/A,6,9,9,0,0x1,{size:8},,\n"));
  EXPECT_THAT(block_events(file), ElementsAre("alloc 1+8 @1 pool npu:0", "free 1+8 @6 pool npu:0"));
  EXPECT_THAT(file.input().damage(),
              ElementsAre(file.path().string() +
                          ":3: the size is \"eight\"; this row and 3 others are left out"));
  EXPECT_EQ(file.input().info().dropped, 4u);
  EXPECT_FALSE(file.input().info().complete);
  EXPECT_FALSE(file.input().lost());         // it is no damage of the file
  EXPECT_EQ(file.input().lost_frees(), 2u);  // of lines 5 and 6
}

TEST(ImportCsv, EachWrongNumberIsNamed) {
  const auto problem = [](const std::string& row) {
    OpenedFile file(csv("1,SYSTEM,ACL_INIT,N/A,1,9,9,N/A,N/A,,,\n" + row + "\n"));
    EXPECT_THAT(file.inputs(), SizeIs(1));
    const auto damage = file.inputs().empty() ? std::vector<std::string>{} : file.input().damage();
    if (damage.empty()) return std::string();
    const std::string tail = damage[0].substr(file.path().string().size());
    return tail.substr(0, tail.find(';'));
  };
  EXPECT_EQ(problem("x,FREE,PTA,N/A,1,9,9,0,0x1,,,"), ":3: the ID is \"x\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,-1,9,9,0,0x1,,,"), ":3: the timestamp is \"-1\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,0,9,9,0,0x1,,,"), ":3: the timestamp is \"0\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,99999999999999999999,9,9,0,0x1,,,"),
            ":3: the timestamp is \"99999999999999999999\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,1,me,9,0,0x1,,,"), ":3: the process id is \"me\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,1,9,-,0,0x1,,,"), ":3: the thread id is \"-\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,1,9,9,gpu,0x1,,,"), ":3: the device is \"gpu\"");
  EXPECT_EQ(problem("1,FREE,ABC,N/A,1,9,9,0,0x1,,,"), ":3: the event type is \"ABC\"");
  EXPECT_EQ(problem("1,FREE,PTA,N/A,1,9,9,0,N/A,,,"), ":3: the address is \"\"");
  EXPECT_EQ(problem("1,MALLOC,PTA,N/A,1,9,9,0,0x1,{},,"), ":3: it has no size");
  EXPECT_EQ(problem("1,MALLOC,PTA,N/A,1,9,9,0,0x1,{size:0},,"), ":3: the size is \"0\"");
  EXPECT_EQ(problem("1,MALLOC,PTA,N/A,1,9,9,0,0x1,{size:-5},,"), ":3: the size is \"-5\"");
  EXPECT_EQ(problem("1,MALLOC,PTA,N/A,1,9,9,0,0x1,{size:999999999999999},,"),
            ":3: the size is \"999999999999999\"");
  EXPECT_EQ(problem("1,MSTX,Ping,N/A,1,9,9,0,N/A,,,"), ":3: the event type is \"Ping\"");
}

TEST(ImportCsv, AFileWithoutAUsableRowIsOneClearLine) {
  EXPECT_THAT(OpenedFile(csv("")).error(), HasSubstr("no rows in it; nothing was recorded"));
  EXPECT_THAT(OpenedFile(csv("1,MALLOC,PTA\n2,MALLOC,PTA\n")).error(),
              HasSubstr(".csv:2: it has 3 of 12 columns; none of its 2 lines can be used; give"));
  EXPECT_THAT(OpenedFile("").error(), HasSubstr("the file is empty (0 bytes)"));
  EXPECT_THAT(OpenedFile("a,b,c\n1,2,3\n").error(),
              HasSubstr("neither a trace, nor a snapshot, nor SQLite, nor"));
  EXPECT_THAT(OpenedFile("\xFF\xFEI\0D\0").error(), HasSubstr("UTF-16"));
  EXPECT_THAT(OpenedFile("PK\x03\x04xxxxx", "snapshot.pickle").error(), HasSubstr("a zip file"));
  EXPECT_THAT(OpenedFile("FuncInfo,StartTime(ns),EndTime(ns),Thread Id,Process Id\n").error(),
              HasSubstr("Python functions only"));
}

TEST(OpenInput, WhatCannotBeReadSaysWhatToDo) {
  EXPECT_THAT(OpenedFile("\x1F\x8B\x08 and so on", "dump.csv.gz").error(),
              HasSubstr("the file is compressed; unpack it first"));
  TestDirectory directory;
  const auto pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_TRUE(find_inputs(pipe).ok());
  EXPECT_THAT(open_input(pipe).error().message, HasSubstr("write it to a file first"));
  // Not allowed, and not for root either: as somebody else.
  const auto closed = directory / "memscope_dump_1.csv";
  write_bytes(closed, csv(""));
  ASSERT_EQ(::chmod(closed.c_str(), 0), 0);
  const uid_t before = ::geteuid();
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  if (before == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto opened = open_input(closed);
  if (before == 0) {
    ASSERT_EQ(::seteuid(before), 0);
  }
  EXPECT_THAT(opened.error().message, HasSubstr("Permission denied; read it as the user who"));
}

TEST(ImportCsv, TheDirectoryOfTheProcessIsReadToo) {
  TestDirectory directory;
  const auto dump = directory / "msmemscope_9_20250101000000_ascend" / "device_0" / "dump";
  std::filesystem::create_directories(dump);
  write_bytes(dump.parent_path().parent_path() / "config.json",
              R"({"analysisType": 1, "outputDir": "/out"})");
  write_bytes(dump / "memscope_dump_1.csv", csv("1,MALLOC,PTA,N/A,5,9,9,0,0x1,{size:8},,\n"));
  write_bytes(dump / "python_trace_1.csv",
              "FuncInfo,StartTime(ns),EndTime(ns),Thread Id,Process Id\n"
              "/a.py(3): f,10,20,9,9\n/a.py(4): g(a, b),N/A,30,9,9\nhalf,\n");
  auto opened = open_input(dump / "memscope_dump_1.csv");
  ASSERT_TRUE(opened.ok());
  Input& input = opened.value().at(0);
  EXPECT_EQ(input.info().settings["outputDir"], "/out");
  EXPECT_EQ(input.info().settings["analysisType"], "1");
  std::vector<std::string> spans;
  input.visit([&](auto& source) {
    source.scan(kind_bit(Kind::kPythonTrace), [&](const Event& event) {
      const auto span = decode_record<PythonTraceRecord>(event.words);
      spans.push_back(std::string(span->name) + " " + std::to_string(span->start_ticks) + " " +
                      std::to_string(span->end_ticks));
    });
  });
  EXPECT_THAT(spans, ElementsAre("/a.py(3): f 10 20", "/a.py(4): g(a, b) 30 30"));
}

TEST(ImportCsv, DevicesThatAreNoNpus) {
  OpenedFile file(
      csv("1,SYSTEM,START_TRACE,N/A,1,9,9,N/A,N/A,{backend:cuda},,\n"
          "2,MALLOC,PTA,N/A,2,9,9,1,0x1,{size:8},,\n"
          "3,MALLOC,PTA,N/A,3,9,9,xpu:2,0x2,{size:8},,\n"));
  EXPECT_THAT(block_events(file),
              ElementsAre("alloc 1+8 @2 pool cuda:1", "alloc 2+8 @3 pool xpu:2"));
}

TEST(ImportCsv, AMessageIsWhatItSays) {
  // A csv has taken its quotes off already; a message is there, whatever it says.
  OpenedFile file(
      csv("1,MSTX,Mark,\"\"\"quoted\"\"\",1,9,9,0,N/A,,,\n"
          "2,MSTX,Mark,\"N/A\",2,9,9,0,N/A,,,\n"
          "3,MSTX,Mark,\"''\",3,9,9,0,N/A,,,\n"
          "4,MSTX,Mark,\"\",4,9,9,0,N/A,,,\n"
          "5,MSTX,Mark,\"\"\"\"\"\",5,9,9,0,N/A,,,\n"));
  std::vector<std::string> texts;
  for (const auto& [event, words] : file.records<MarkRecord>()) {
    texts.emplace_back(decode_record<MarkRecord>(words)->text);
  }
  EXPECT_THAT(texts, ElementsAre("\"quoted\"", "N/A", "''", "", "\"\""));
}

}  // namespace
}  // namespace memscope
