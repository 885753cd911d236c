// What rows the events give: the columns of msMemScope's csv, worked out by hand.
#include "export/dump_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/dump_story.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A run of a CPU program: two tensors, of which one stays, a mark and two steps.
//
//   time  what                   live bytes after it (total)
//   1000  start()
//   1010  tensor A, 64 B          64
//   1020  mark "epoch 1"
//   1030  tensor B, 32 B          96
//   1040  step() ends step 1
//   1050  A is freed              32
//   1060  step() ends step 2
//   1070  stop()
//
// The mark has no device of its own, so it is as of the file's; SYSTEM rows have none. What the
// agent's own thread wrote (thread 0) is the main thread's, whose id is the pid.
TEST(DumpRows, ACpuRunIsThisCsv) {
  DumpStory story;
  story.window(1000, kStartWindow);
  story.alloc(1010, 0x7f0000000040, 64);
  story.mark(1020, "epoch 1");
  story.alloc(1030, 0x7f0000000100, 32, kCpu, 2);
  story.step(1040);
  story.free(1050, 0x7f0000000040, kCpu, 2);
  story.step(1060);
  story.window(1070, kStopWindow);

  const TestDirectory directory;
  const auto path = directory / "dump.csv";
  ASSERT_TRUE(story.dump(path, DumpFormat::kCsv).ok());
  EXPECT_EQ(read_bytes(path),
            "ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,"
            "Call Stack(Python),Call Stack(C)\n"
            "1,SYSTEM,START_TRACE,N/A,1000,4711,4711,N/A,N/A,,,\n"
            "2,MALLOC,HOST,N/A,1010,4711,101,cpu,0x00007f0000000040,"
            "\"{allocation_id:1,addr:0x00007f0000000040,size:64,total:64}\",,\n"
            "3,MSTX,Mark,\"epoch 1\",1020,4711,4711,cpu,N/A,,,\n"
            "4,MALLOC,HOST,N/A,1030,4711,102,cpu,0x00007f0000000100,"
            "\"{allocation_id:2,addr:0x00007f0000000100,size:32,total:96}\",,\n"
            "5,SYSTEM,STEP,1,1040,4711,4711,N/A,N/A,,,\n"
            "6,FREE,HOST,N/A,1050,4711,102,cpu,0x00007f0000000040,"
            "\"{allocation_id:1,addr:0x00007f0000000040,size:64,total:32}\",,\n"
            "7,SYSTEM,STEP,2,1060,4711,4711,N/A,N/A,,,\n"
            "8,SYSTEM,STOP_TRACE,N/A,1070,4711,4711,N/A,N/A,,,\n");
}

TEST(DumpRows, APoolTellsUsedAndTotalAndAFileItsBackend) {
  DumpStory story;
  story.window(1000, kStartWindow);
  story.pool_alloc(1010, 0x1000, 512, 512, 2 << 20);
  const auto lines = story.csv();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], "1,SYSTEM,START_TRACE,N/A,1000,4711,4711,N/A,N/A,\"{backend:cuda}\",,");
  EXPECT_EQ(lines[1],
            "2,MALLOC,PTA,N/A,1010,4711,101,0,0x0000000000001000,\"{allocation_id:1,"
            "addr:0x0000000000001000,size:512,used:512,total:2097152}\",,");
}

TEST(DumpRows, EveryLayerHasItsType) {
  DumpStory story;
  const Device npu = kNpu.device;
  story.alloc(1, 1, 8, {Layer::kDriver, npu});
  story.alloc(2, 2, 8, {Layer::kPool, npu});
  story.alloc(3, 3, 8, {Layer::kPoolMindSpore, npu});
  story.alloc(4, 4, 8, {Layer::kPoolAtb, npu});
  story.alloc(5, 5, 8, {Layer::kWorkspace, npu});
  story.alloc(6, 6, 8, {Layer::kPinned, npu});
  const auto lines = story.csv();
  ASSERT_THAT(lines, SizeIs(6));
  for (const auto& [line, type] : {std::pair{0, "HAL"},
                                   {1, "PTA"},
                                   {2, "MINDSPORE"},
                                   {3, "ATB"},
                                   {4, "PTA_WORKSPACE"},
                                   {5, "HOST"}}) {
    EXPECT_THAT(lines[static_cast<size_t>(line)], HasSubstr(std::string(",MALLOC,") + type + ","));
  }
  EXPECT_THAT(lines[5], HasSubstr("size:8,pinned:true,used:8"));
  DumpRequest compat;
  compat.settings.compat = true;
  EXPECT_THAT(story.csv(compat)[4], HasSubstr(",MALLOC,PTA,"));
}

TEST(DumpRows, StacksAreAsDeepAsAskedFor) {
  DumpStory story;
  story.alloc(10, 0x10, 8);
  story.free(20, 0x10);
  DumpRequest request;
  request.settings.python_depth = 1;
  request.settings.c_depth = 50;
  auto lines = story.csv(request);
  EXPECT_THAT(lines[0], HasSubstr(",\"/home/me/model.py(7): forward\","
                                  "\"/lib/libc10.so(c10::alloc())\""));
  EXPECT_THAT(lines[1], testing::EndsWith(",\"NA\",\"NA\""));  // asked for, but a free has none
  request.settings.python_depth = 50;
  request.settings.c_depth.reset();
  lines = story.csv(request);  // a frame a line, within the quotes
  EXPECT_THAT(lines[0], testing::EndsWith(",\"/home/me/model.py(7): forward"));
  EXPECT_EQ(lines[1], "/home/me/train.py(30): <module>\",");
}

// The owner is known at 30, the row of the block is of 10. Of the second block nothing is known but
// the framework.
TEST(DumpRows, TheOwnerFoundLaterIsInTheMallocRow) {
  DumpStory story;
  story.pool_alloc(10, 0x10, 8, 8, 64);
  story.pool_alloc(20, 0x20, 8, 16, 64);
  story.record(
      30,
      OwnerRecord{.addr = 0x10, .birth = 10, .owner = "PTA@model@weight", .label = "embedding"});
  story.free(40, 0x10, kCuda);
  const auto lines = story.csv();
  EXPECT_THAT(lines[0], HasSubstr("total:64,owner:PTA@model@weight@embedding}"));
  EXPECT_THAT(lines[1], HasSubstr("total:64,owner:PTA}"));
  EXPECT_THAT(lines[2], testing::Not(HasSubstr("owner")));
  DumpRequest compat;
  compat.settings.compat = true;
  EXPECT_THAT(story.csv(compat)[0], HasSubstr("owner:PTA@weight@embedding}"));
}

// An owner's record of birth 0 is about the block that is alive when it comes.
TEST(DumpRows, AnOwnerWithoutBirthIsTheLiveBlocks) {
  DumpStory story;
  story.pool_alloc(10, 0x10, 8, 8, 64);
  story.free(20, 0x10, kCuda);
  story.pool_alloc(30, 0x10, 8, 8, 64);
  story.record(30, OwnerRecord{.addr = 0x10, .owner = "PTA@ops"});
  const auto lines = story.csv();
  EXPECT_THAT(lines[0], HasSubstr("owner:PTA}"));
  EXPECT_THAT(lines[2], HasSubstr("owner:PTA@ops}"));
}

TEST(DumpRows, OperatorsKernelsAndAccessesHaveTheirNames) {
  DumpStory story;
  story.pool_alloc(10, 0x10, 8, 8, 64, kNpu);
  story.record(20, LaunchRecord{.action = 0, .level = 0, .name = "aten.add.Tensor"});
  story.record(21, AccessRecord{.addr = 0x10, .size = 8, .mode = 2, .op = "aten.add.Tensor"});
  story.record(22, LaunchRecord{.action = 1, .level = 0, .name = "aten.add.Tensor"});
  story.record(23, LaunchRecord{.action = 2, .level = 1, .name = "Add", .stream = 3, .id = 9});
  const auto lines = story.csv();
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_EQ(lines[1], "2,OP_LAUNCH,ATEN_START,aten.add.Tensor,20,4711,4711,0,N/A,,,");
  EXPECT_EQ(lines[2],
            "3,ACCESS,WRITE,aten.add.Tensor,21,4711,4711,0,0x0000000000000010,\"{allocation_id:1,"
            "addr:0x0000000000000010,size:8,type:PTA}\",,");
  EXPECT_EQ(lines[3], "4,OP_LAUNCH,ATEN_END,aten.add.Tensor,22,4711,4711,0,N/A,,,");
  EXPECT_EQ(lines[4],
            "5,KERNEL_LAUNCH,KERNEL_LAUNCH,Add,23,4711,4711,0,N/A,\"{streamId:3,taskId:9}\",,");
}

// 16 + 48 + 32 B live when 1 GiB is asked for in vain: the latest two, the largest two.
TEST(DumpRows, AnOomHasItsTriggerItsListsAndItsSnapshot) {
  DumpStory story;
  story.pool_alloc(10, 0x10, 16, 16, 4096);
  story.pool_alloc(20, 0x20, 48, 64, 4096);
  story.pool_alloc(30, 0x30, 32, 96, 4096);
  story.record(
      40, OomRecord{.where = kCuda.packed(), .size = 1 << 30, .allocated = 96, .reserved = 4096});
  DumpRequest request;
  request.settings.oom_top = 2;
  const auto lines = story.csv(request);
  ASSERT_THAT(lines, SizeIs(9));
  EXPECT_EQ(lines[3],
            "4,OOM_DETAIL,OOM_TRIGGER,OOM_Trigger,40,4711,4711,0,N/A,"
            "\"{req_size:1073741824}\",,");
  EXPECT_EQ(lines[4],
            "5,OOM_DETAIL,OOM_RECENT_ALLOC,OOM_RecentAlloc,40,4711,4711,0,N/A,"
            "\"{pool:PTA,ptr:0x0000000000000030,size:32,timestamp:30}\",,");
  EXPECT_THAT(lines[5], HasSubstr("ptr:0x0000000000000020"));
  EXPECT_THAT(lines[6], HasSubstr("OOM_TopAlloc,40,4711,4711,0,N/A,\"{pool:PTA,"
                                  "ptr:0x0000000000000020,size:48"));
  EXPECT_THAT(lines[7], HasSubstr("ptr:0x0000000000000030,size:32"));
  EXPECT_EQ(lines[8],
            "9,SNAPSHOT,SNAPSHOT,OOM_Snapshot,40,4711,4711,0,N/A,"
            "\"{reserved:4096,allocated:96}\",,");
}

TEST(DumpRows, ASnapshotHasWhatIsKnownInTheOriginalsOrder) {
  DumpStory story;
  story.pool_alloc(10, 0x10, 16, 16, 4096);
  story.record(20, PoolSnapshotRecord{.where = kCuda.packed(),
                                      .allocated = 16,
                                      .reserved = 4096,
                                      .detail = R"({"name":"before","total":100,"free":"60"})"});
  EXPECT_EQ(story.csv()[1],
            "2,SNAPSHOT,SNAPSHOT,before,20,4711,4711,0,N/A,"
            "\"{reserved:4096,allocated:16,total:100,free:60}\",,");
}

// Optimizer 7 steps often, optimizer 8 makes the steps: only its ends are STEP rows, and they say
// so.
TEST(DumpRows, StepsOfAnOptimizerSayWhereTheyComeFrom) {
  DumpStory story;
  story.alloc(1, 0x10, 8);
  for (uint64_t k = 1; k <= 8; ++k) {
    for (uint64_t i = 0; i < 2; ++i) {
      story.record(k * 100 + i, StepRecord{.source = static_cast<uint64_t>(StepSource::kOptimizer),
                                           .optimizer = 7});
    }
    story.record(k * 100 + 50, StepRecord{.source = static_cast<uint64_t>(StepSource::kOptimizer),
                                          .optimizer = 8});
  }
  const auto lines = story.csv();
  ASSERT_THAT(lines, SizeIs(9));
  EXPECT_EQ(lines[1], "2,SYSTEM,STEP,1,150,4711,4711,N/A,N/A,\"{source:optimizer}\",,");
}

// Steps end at 100, 200, 300. Step 2 is 101 to 200: what was alive when it began is a shadow
// MALLOC.
TEST(DumpRows, StepsCutTheRowsAndTellWhatWasAlive) {
  DumpStory story;
  story.window(1, kStartWindow);
  story.alloc(10, 0x10, 8);
  story.alloc(20, 0x20, 16);
  story.free(30, 0x20);
  story.step(100);
  story.free(150, 0x10);
  story.alloc(160, 0x30, 4);
  story.step(200);
  story.free(250, 0x30);
  story.step(300);
  DumpRequest request;
  request.settings.first_step = request.settings.last_step = 2;
  EXPECT_THAT(story.csv(request),
              ElementsAre("1,SYSTEM,START_TRACE,N/A,101,4711,4711,N/A,N/A,,,",
                          "2,MALLOC,HOST,N/A,101,4711,4711,cpu,0x0000000000000010,"
                          "\"{allocation_id:1,addr:0x0000000000000010,size:8,shadow:true}\",,",
                          "3,FREE,HOST,N/A,150,4711,101,cpu,0x0000000000000010,"
                          "\"{allocation_id:1,addr:0x0000000000000010,size:8,total:0}\",,",
                          "4,MALLOC,HOST,N/A,160,4711,101,cpu,0x0000000000000030,"
                          "\"{allocation_id:3,addr:0x0000000000000030,size:4,total:4}\",,",
                          "5,SYSTEM,STEP,2,200,4711,4711,N/A,N/A,,,",
                          "6,SYSTEM,STOP_TRACE,N/A,200,4711,4711,N/A,N/A,,,"));
  request.settings.first_step = 4;
  request.settings.last_step = 9;
  request.name = "run-7";
  EXPECT_THAT(story.csv(request),
              ElementsAre("error: run-7: has 3 steps (by api), so --steps cannot begin at 4"));
}

TEST(DumpRows, OnlyTheEventsAskedFor) {
  DumpStory story;
  story.alloc(10, 0x10, 8);
  story.record(20, LaunchRecord{.name = "aten.add"});
  story.free(30, 0x10);
  DumpRequest request;
  set_events(request.settings, "free");
  EXPECT_THAT(story.csv(request), ElementsAre(HasSubstr("1,FREE,HOST")));
  set_events(request.settings, "none");
  EXPECT_THAT(story.csv(request), IsEmpty());
}

// 26.0 freed at the end what was alive, a nanosecond after stop().
TEST(DumpRows, OldSpellingsFreeWhatIsAliveAtTheEnd) {
  DumpStory story;
  story.window(5, kStartWindow);
  story.alloc(10, 0x10, 8);
  story.window(30, kStopWindow);
  EXPECT_THAT(story.csv(), SizeIs(3));
  DumpRequest compat;
  compat.settings.compat = true;
  const auto lines = story.csv(compat);
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[3],
            "4,FREE,HOST,N/A,31,4711,4711,cpu,0x0000000000000010,"
            "\"{allocation_id:1,addr:0x0000000000000010,size:8,shadow:true}\",,");
}

TEST(DumpRows, AFileHoldsOneDevice) {
  DumpStory story;
  story.alloc(10, 0x10, 8);
  story.pool_alloc(20, 0x20, 16, 16, 64, kNpu);
  DumpRequest request;
  request.name = "run-7";
  EXPECT_THAT(
      story.csv(request),
      ElementsAre("error: run-7: has 2 devices (cpu, npu:0) and a file holds one; choose it "
                  "with --device, or give a directory: -o DIR/"));
  request.device = kNpu.device;
  EXPECT_THAT(story.csv(request), ElementsAre(HasSubstr("1,MALLOC,PTA,N/A,20,4711,101,0,")));
  request.device = Device{Device::kCuda, 3};
  EXPECT_THAT(story.csv(request),
              ElementsAre("error: run-7: has nothing of cuda:3, only of cpu, npu:0"));
}

// Two NPUs and the CPU in one process: a file each; rows without a device stand in all of them,
// with one ID; a mark cuts every device's rows, so it has that device in each.
TEST(DumpRows, ADirectoryHasAFileADevice) {
  DumpStory story;
  story.window(5'000'000'000, kStartWindow);
  story.alloc(5'000'000'010, 0x10, 8);
  story.pool_alloc(5'000'000'020, 0x20, 16, 16, 64, kNpu);
  story.mark(5'000'000'025, "A");
  story.pool_alloc(5'000'000'030, 0x30, 16, 16, 64, kNpu1);
  const TestDirectory directory;
  DumpFiles files(directory.path() / "out", true, DumpFormat::kCsv, false, {});
  const auto report = story.dump(files, {});
  ASSERT_TRUE(report.ok()) << report.error().message;
  std::vector<std::string> names;
  for (const auto& file : report.value().files) {
    names.push_back(std::filesystem::path(file.path).lexically_relative(directory.path()).string());
    EXPECT_EQ(file.rows, 3u);
    const std::string text = read_bytes(file.path);
    EXPECT_THAT(text, HasSubstr("1,SYSTEM,START_TRACE,N/A,5000000000,4711,4711,N/A,N/A,"));
    EXPECT_THAT(text, HasSubstr("4,MSTX,Mark,\"A\",5000000025,4711,4711,"));
    const auto status = std::filesystem::status(file.path);
    EXPECT_EQ(status.permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  // The time is local: 19700101 with the hour of the zone.
  ASSERT_THAT(names, SizeIs(3));
  const std::string tail = "_ascend/device_(cpu|0|1)/dump/memscope_dump_[0-9]{14}\\.csv";
  EXPECT_THAT(names, testing::Each(testing::MatchesRegex("out/msmemscope_4711_[0-9]{14}" + tail)));
}

TEST(DumpRows, ThePythonTraceIsAFileBesideACsv) {
  DumpStory story;
  story.alloc(5'000'000'010, 0x10, 8);
  story.record(5'000'000'030, PythonTraceRecord{.name = "a.py(1): f, \"g\"",
                                                .start_ticks = 5'000'000'020,
                                                .end_ticks = 5'000'000'020});
  const TestDirectory directory;
  DumpFiles files(directory.path(), true, DumpFormat::kCsv, false, {});
  const auto report = story.dump(files, {});
  ASSERT_TRUE(report.ok()) << report.error().message;
  std::string calls;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (entry.path().filename().string().starts_with("python_trace_")) calls = entry.path();
  }
  // It took no time that the clock could see, and readers need an end after the start.
  EXPECT_EQ(read_bytes(calls),
            "FuncInfo,StartTime(ns),EndTime(ns),Thread Id,Process Id\n"
            "\"a.py(1): f, \"\"g\"\"\",5000000020,5000000021,4711,4711\n");
  DumpFiles one(directory / "one.csv", false, DumpFormat::kCsv, false, {});
  EXPECT_EQ(story.dump(one, {}).value().calls_left_out, 1u);
}

TEST(DumpRows, WhatIsHeldWithoutNeedWhereTheProcessAskedForIt) {
  // Four calls: y, x, the free of y, the first use of x. Allocated after y was freed, x would have
  // found room: early. The row is x's MALLOC, its FREE says nothing.
  DumpStory story;
  story.window(1, kStartWindow);
  story.pool_alloc(2, 0x20, 8, 8, 64, kNpu);
  story.pool_alloc(3, 0x10, 16, 24, 64, kNpu);
  story.free(4, 0x20, kNpu);
  story.source().add_record(5, AccessRecord{.addr = 0x10, .size = 16, .mode = 1, .op = "add"},
                            kNpu);
  story.free(6, 0x10, kNpu);
  DumpRequest request;
  std::vector<std::string> told;
  for (const bool asked : {true, false}) {
    request.settings.inefficient = asked;
    for (const std::string& line : story.csv(request)) {
      if (line.find("inefficient_type:early_allocation}") != std::string::npos)
        told.push_back(line);
    }
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("MALLOC,PTA,N/A,3,"), std::string::npos) << told[0];
}

}  // namespace
}  // namespace memscope
