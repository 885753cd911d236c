#include "analysis/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/operators_fixture.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Measure = OperatorCollector::Measure;

constexpr Device kNpu0{Device::kNpu, 0};

// "mm 512", in order.
std::vector<std::string> values(const OperatorRun& run, const StringTable& names,
                                Device device = kNpu0) {
  std::vector<std::string> list;
  const auto found = run.devices.find(device);
  if (found == run.devices.end()) return list;
  for (const OperatorValue& value : found->second) {
    list.push_back(std::string(names.text(value.name)) + " " + std::to_string(value.bytes));
  }
  return list;
}

std::vector<std::string> deltas(OperatorProgram& program, StringTable& names,
                                OperatorLevel level = OperatorLevel::kOperator) {
  return values(collect_operators(program.source, level, Measure::kDelta, names), names);
}

TEST(Operators, AnOperatorsDeltaIsWhatItAllocatesMinusWhatItFrees) {
  OperatorProgram p;
  p.start("mm");
  p.alloc(0x1000, 512);
  p.alloc(0x2000, 1536);
  p.free(0x2000);  // 512 + 1536 - 1536 = 512
  p.end("mm");
  p.free(0x1000);  // outside operators: -512
  p.start("relu");
  p.end("relu");
  StringTable names;
  const OperatorRun run =
      collect_operators(p.source, OperatorLevel::kOperator, Measure::kDelta, names);
  EXPECT_THAT(values(run, names), ElementsAre("mm 512", "relu 0"));
  EXPECT_THAT(run.outside, ElementsAre(Pair(kNpu0, -512)));
}

TEST(Operators, AnOperatorHasWhatTheOperatorsInsideItDid) {
  OperatorProgram p;
  p.start("layer", 2);
  p.alloc(0x1000, 100);
  p.start("mm", 2);
  p.alloc(0x2000, 7);
  p.end("mm", 2);
  p.end("layer", 2);
  StringTable names;
  EXPECT_THAT(deltas(p, names), ElementsAre("mm 7", "layer 107"));
}

TEST(Operators, ThreadsDoNotMix) {
  // The backward thread's operator is open while the main thread allocates.
  OperatorProgram p;
  p.thread = ThreadId(2);
  p.start("backward");
  p.thread = ThreadId(1);
  p.alloc(0x1000, 4096);
  p.thread = ThreadId(2);
  p.alloc(0x2000, 16);
  p.end("backward");
  StringTable names;
  EXPECT_THAT(deltas(p, names), ElementsAre("backward 16"));
}

TEST(Operators, OnlyTheOperatorsDeviceAndLayersThatHandOutMemoryCount) {
  OperatorProgram p;
  p.start("copy");
  p.where = {Layer::kDriver, kNpu0};
  p.alloc(0x1000, 1 << 20);  // the segment that the pool takes
  p.where = OperatorProgram::kNpuPool;
  p.alloc(0x1000, 512);
  p.where = {Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
  p.alloc(0x5000, 64);  // the result on the CPU
  p.where = OperatorProgram::kNpuPool;
  p.end("copy");
  StringTable names;
  EXPECT_THAT(deltas(p, names), ElementsAre("copy 512"));
}

TEST(Operators, EndsWithoutABeginningAndBeginningsWithoutAnEndDoNoHarm) {
  OperatorProgram p;
  p.alloc(0x1000, 8);
  p.end("cut");  // began before the recording: all that its thread did in it
  p.start("lost");
  p.start("mm");
  p.alloc(0x2000, 16);
  p.end("mm");
  StringTable names;
  EXPECT_THAT(deltas(p, names), ElementsAre("cut 8", "mm 16"));
}

TEST(Operators, AKernelsDeltaIsItsThreadsSinceTheLaunchBefore) {
  OperatorProgram p;
  p.alloc(0x1000, 512);  // what MatMul writes
  p.kernel("MatMul");
  p.alloc(0x2000, 256);
  p.free(0x1000);  // 256 - 512
  p.kernel("Add");
  p.start("aten.mm");  // operators are another level
  p.end("aten.mm");
  StringTable names;
  EXPECT_THAT(deltas(p, names, OperatorLevel::kKernel), ElementsAre("MatMul 512", "Add -256"));
}

TEST(Operators, NextRowIsTheSizeOfThePoolsNextEvent) {
  // msMemScope 26.0: whatever comes next, a free's size like an allocation's, for every operator
  // since the event before; 0 for those with nothing after them.
  OperatorProgram p;
  p.start("a");
  p.alloc(0x1000, 512);
  p.end("a");
  p.start("b");
  p.end("b");
  p.where = {Layer::kDriver, kNpu0};
  p.alloc(0x1000, 1 << 21);  // HAL rows do not count
  p.where = {Layer::kPoolAtb, kNpu0};
  p.alloc(0x9000, 77);  // nor do ATB's
  p.where = OperatorProgram::kNpuPool;
  p.free(0x1000);  // of 512: for a and b
  p.start("c");
  p.alloc(0x3000, 24);
  p.end("c");
  StringTable names;
  const OperatorRun run =
      collect_operators(p.source, OperatorLevel::kOperator, Measure::kNextRow, names);
  EXPECT_THAT(values(run, names), ElementsAre("a 512", "b 512", "c 0"));
}

TEST(Operators, NextRowTakesTheSizeThatAFreesRowHas) {
  // Freed, but allocated before the recording: the row's own size is all there is.
  OperatorProgram p;
  p.start("a");
  p.end("a");
  p.free(0x1000, 4096);
  StringTable names;
  const OperatorRun run =
      collect_operators(p.source, OperatorLevel::kOperator, Measure::kNextRow, names);
  EXPECT_THAT(values(run, names), ElementsAre("a 4096"));
}

TEST(Operators, WhatWasThereBeforeIsNobodysDelta) {
  OperatorProgram p;
  p.source.add({.kind = EventKind::kSeed,
                .where = OperatorProgram::kNpuPool,
                .time = 1,
                .addr = 0x1000,
                .size = 100});
  p.start("drop");
  p.free(0x1000);
  p.end("drop");
  StringTable names;
  EXPECT_THAT(deltas(p, names), ElementsAre("drop -100"));
}

TEST(Operators, ProcessesOfOneFileFollowEachOther) {
  constexpr Device kNpu1{Device::kNpu, 1};
  StringTable names;
  const auto value = [&](const char* name, int64_t bytes) {
    return OperatorValue{names.intern(name), bytes};
  };
  OperatorRun run{.devices = {{kNpu0, {value("mm", 1)}}}, .outside = {{kNpu0, 5}}};
  run.add({.devices = {{kNpu0, {value("add", 2)}}, {kNpu1, {value("relu", 3)}}},
           .outside = {{kNpu0, -1}}});
  EXPECT_THAT(values(run, names), ElementsAre("mm 1", "add 2"));
  EXPECT_THAT(values(run, names, kNpu1), ElementsAre("relu 3"));
  EXPECT_THAT(run.outside, ElementsAre(Pair(kNpu0, 4)));
}

TEST(Operators, AnEmptyRunHasNone) {
  OperatorProgram p;
  StringTable names;
  EXPECT_THAT(deltas(p, names), IsEmpty());
}

}  // namespace
}  // namespace memscope
