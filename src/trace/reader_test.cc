#include "trace/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>

#include "trace/records.h"
#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {
namespace {

using testing::ElementsAre;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
constexpr Where kCuda{Layer::kPool, {Device::kCuda, 1}};

std::vector<Event> read_all(TraceReader& reader) {
  std::vector<Event> events;
  for (Event event; reader.next(event);) events.push_back(event);  // their words are gone by then
  return events;
}

TraceReader open_or_die(const std::filesystem::path& path) {
  auto reader = TraceReader::open(path);
  EXPECT_TRUE(reader.ok()) << (reader.ok() ? "" : reader.error().message);
  return std::move(reader).value();
}

// Fills every field with a value that says where it belongs.
template <typename Record>
Record filled(std::vector<std::string>& texts) {
  Record record;
  int i = 0;
  for_each_field(record, [&](std::string_view name, auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    ++i;
    if constexpr (std::is_same_v<Value, std::string_view>) {
      texts.push_back(std::string(name) + std::string(static_cast<size_t>(i), '\xe2'));
      value = texts.back();
    } else {
      value = static_cast<Value>(1000) * static_cast<Value>(Record::kKind) + static_cast<Value>(i);
    }
  });
  return record;
}

template <typename Record>
bool same(const Record& a, const Record& b) {
  std::vector<std::string> left, right;
  const auto print = [](std::vector<std::string>& out) {
    return [&out](std::string_view, const auto& value) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string_view>) {
        out.emplace_back(value);
      } else {
        out.push_back(std::to_string(value));
      }
    };
  };
  for_each_field(a, print(left));
  for_each_field(b, print(right));
  return left == right;
}

constexpr bool is_definition(Kind kind) {
  return kind >= Kind::kLane && kind <= Kind::kStack;
}

// Only the host layer is sampled, and what its blocks stand for is said as they are read.
TEST(TraceReader, SampledBlocksAreScaledAsTheyAreRead) {
  constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
  TestDirectory directory;
  TraceBuilder builder(directory.path());
  builder.agent().record(5, ConfigRecord{.key = kHostSampleKey, .value = "65536"});
  builder.agent().record(
      5, SeedRecord{
             .addr = 0x30, .sized = pack_sized(16, kHost.packed()), .birth = 3, .window_ticks = 5});
  LaneBuilder& lane = builder.lane(1, 7);
  lane.alloc(10, 0x10, 65536, kHost, 0);
  lane.alloc(20, 0x20, 65536, kCpu, 0);
  // Folded blocks were read before, and written as they were read.
  lane.record(
      30, FoldedBlockRecord{
              .addr = 0x40, .sized = pack_sized(103676, kHost.packed()), .sampled_size = 65536});
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  std::vector<std::array<uint64_t, 3>> seen;
  for (Event event; reader.next(event);) {
    if (event.addr != 0) seen.push_back({event.addr, event.size, event.sampled_size});
  }
  EXPECT_THAT(seen, ElementsAre(std::array<uint64_t, 3>{0x30, 65544, 16},
                                std::array<uint64_t, 3>{0x10, 103676, 65536},
                                std::array<uint64_t, 3>{0x20, 65536, 0},
                                std::array<uint64_t, 3>{0x40, 103676, 65536}));
}

TEST(HostSampling, WhatIsNoRateIsNone) {
  EXPECT_EQ(host_sampling("524288").rate, 524288u);
  for (const char* value : {"", "x", "-1", "12 ", "1073741825", "99999999999999999999"}) {
    EXPECT_FALSE(host_sampling(value).on()) << value;
  }
}

TEST(TraceReader, EveryRecordKindOfTheTableComesBackAsItWasWritten) {
  visit_record_kinds([]<typename Record>(std::string_view name) {
    if (is_definition(Record::kKind) || Record::kKind == Kind::kTime) return;
    SCOPED_TRACE(name);
    TestDirectory directory;
    std::vector<std::string> texts;
    texts.reserve(32);
    const Record record = filled<Record>(texts);
    TraceBuilder builder(directory.path(), {.process_record = false});
    builder.lane(1).record(100, record, kCpu.packed());
    ASSERT_TRUE(builder.finish().ok());

    TraceReader reader = open_or_die(directory.path());
    Event event;
    ASSERT_TRUE(reader.next(event));
    if constexpr (is_hot<Record>) {
      if constexpr (requires { record.addr; }) {
        EXPECT_EQ(event.addr, record.addr);
      }
      EXPECT_EQ(reader.counts()[static_cast<size_t>(Record::kKind)], 1u);
    } else {
      ASSERT_EQ(event.record_kind, static_cast<uint8_t>(Record::kKind));
      const auto again = decode_record<Record>(event.words);
      ASSERT_TRUE(again.has_value());
      EXPECT_TRUE(same(record, *again));
    }
    EXPECT_FALSE(reader.next(event));
    EXPECT_TRUE(reader.damage().empty());
  });
}

TEST(TraceReader, HotRecordsBecomeAllocsAndFrees) {
  TestDirectory directory;
  TraceBuilder builder(directory.path());
  LaneBuilder& lane = builder.lane(1, 77, "python");
  const uint32_t inner = lane.stack({{"train.py", "main", 9}, {"train.py", "step", 4, 6}});
  lane.alloc(100, 0xA0, 512, kCpu, inner);
  lane.free(200, 0xA0, kCpu);
  lane.pool_alloc(300, 0xB0, 1 << 20, kCuda, inner, 5, 9);
  lane.pool_free(400, 0xB0, kCuda, 4, 8);
  ASSERT_TRUE(builder.finish().ok());

  TraceReader reader = open_or_die(directory.path());
  Event event;
  ASSERT_TRUE(reader.next(event));  // the Process record
  EXPECT_EQ(event.record_kind, static_cast<uint8_t>(Kind::kProcess));

  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.kind, EventKind::kAlloc);
  EXPECT_EQ(event.time, kEpochNs + 100);
  EXPECT_EQ(event.addr, 0xA0u);
  EXPECT_EQ(event.size, 512u);
  EXPECT_EQ(event.where, kCpu);
  EXPECT_FALSE(event.has_totals);
  EXPECT_EQ(reader.threads()[event.thread.value].tid, 77u);
  EXPECT_EQ(reader.threads()[event.thread.value].name, "python");
  const auto frames = reader.stacks().frames(event.stack);
  ASSERT_EQ(frames.size(), 2u);
  const Frame& top = reader.stacks().frame(frames[0]);
  EXPECT_EQ(reader.strings().text(top.function), "step");
  EXPECT_EQ(reader.strings().text(top.file), "train.py");
  EXPECT_EQ(top.line, 4u);
  EXPECT_EQ(top.end_line, 6u);
  const StackId stack = event.stack;

  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.kind, EventKind::kFree);
  EXPECT_EQ(event.where, kCpu);
  EXPECT_EQ(event.time, kEpochNs + 200);

  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.kind, EventKind::kAlloc);
  EXPECT_TRUE(event.has_totals);
  EXPECT_EQ(event.allocated, 5u);
  EXPECT_EQ(event.reserved, 9u);
  EXPECT_EQ(event.where, kCuda);
  EXPECT_EQ(event.stack, stack);

  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.kind, EventKind::kFree);
  EXPECT_EQ(event.allocated, 4u);
  EXPECT_EQ(event.reserved, 8u);
  EXPECT_FALSE(reader.next(event));
  EXPECT_FALSE(reader.next(event));
}

// Lanes 1 and 2 number the same stack differently; both are one stack of the process.
TEST(TraceReader, LanesHaveTheirOwnNumbersAndShareTheProcessTables) {
  TestDirectory directory;
  TraceBuilder builder(directory.path());
  LaneBuilder& one = builder.lane(1, 1);
  LaneBuilder& two = builder.lane(2, 2);
  two.stack({{"other.py", "f", 1}});
  one.alloc(10, 1, 8, kCpu, one.stack({{"a.py", "f", 1}}));
  two.alloc(20, 2, 8, kCpu, two.stack({{"a.py", "f", 1}}));
  // Lane 1 goes to another thread: its id 1 is now another stack.
  one.change_hands(30, 3, "worker");
  one.alloc(40, 3, 8, kCpu, one.stack({{"b.py", "g", 1}}));
  one.record(50, OomRecord{.where = kCpu.packed(), .size = 7, .stack = 1});
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  const auto events = read_all(reader);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[1].stack, events[2].stack);
  EXPECT_NE(events[1].stack, events[3].stack);
  EXPECT_EQ(events[4].stack, events[3].stack);  // oom.stack, mapped
  EXPECT_EQ(reader.threads()[events[3].thread.value].tid, 3u);
  EXPECT_EQ(reader.threads()[events[3].thread.value].name, "worker");
}

TEST(TraceReader, NativeFramesAreKnownByObjectAndOffset) {
  TestDirectory directory;
  TraceBuilder builder(directory.path() / "run");
  LaneBuilder& lane = builder.lane(1);
  const auto leaf = [&](uint64_t offset, FrameKind kind) {
    return lane.stack({{.file = "/lib/a.so", .kind = kind, .module = "c0ffee", .offset = offset}});
  };
  lane.alloc(10, 1, 8, kCpu, leaf(0x1234, FrameKind::kNative));
  lane.alloc(20, 2, 8, kCpu, leaf(0x5678, FrameKind::kNative));
  lane.alloc(30, 3, 8, kCpu, leaf(0x5678, FrameKind::kPython));
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path() / "run");
  std::vector<uint64_t> offsets;
  for (const Event& event : read_all(reader)) {
    if (event.kind != EventKind::kAlloc) continue;
    const Frame& frame = reader.stacks().frame(reader.stacks().innermost(event.stack));
    EXPECT_EQ(reader.strings().text(frame.module), "c0ffee");
    offsets.push_back(frame.offset);
  }
  EXPECT_THAT(offsets, ElementsAre(0x1234, 0x5678, 0)) << "Python has lines, not offsets";
}

// The next thread on a lane goes on with the numbers of the one before.
TEST(TraceReader, ALaneMayChangeHandsAndKeepItsNumbers) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.process_record = false});
  LaneBuilder& lane = builder.lane(1, 1);
  const uint32_t stack = lane.stack({{"a.py", "f", 1}});
  lane.alloc(10, 1, 8, kCpu, stack);
  lane.change_hands(20, 2, "worker", true);
  lane.alloc(30, 2, 8, kCpu, stack);
  lane.alloc(40, 3, 8, kCpu, lane.stack({{"a.py", "f", 1}, {"a.py", "g", 2}}));
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  const auto events = read_all(reader);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[0].stack);
  EXPECT_EQ(events[1].stack, events[0].stack);
  EXPECT_EQ(reader.stacks().parent(events[2].stack), events[0].stack);
  EXPECT_EQ(reader.threads()[events[0].thread.value].tid, 1u);
  EXPECT_EQ(reader.threads()[events[1].thread.value].tid, 2u);
}

TEST(TraceReader, MergesLanesByTimeAndKeepsEachLanesOrder) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.process_record = false});
  // Lane k has events at every time t with t % 4 == k - 1 or so; 40,000 each: several chunks.
  constexpr uint64_t kEvents = 160'000;
  for (uint64_t t = 1; t <= kEvents; ++t) {
    const auto number = static_cast<uint32_t>(t * t % 7 % 4 + 1);
    builder.lane(number, number, "t", t).alloc(t, t, 8, kCpu, 0);
  }
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  EXPECT_GT(reader.extent().pieces, reader.extent().lanes);
  for (int round = 0; round < 2; ++round) {
    uint64_t expected = 0;
    for (Event event; reader.next(event);) ASSERT_EQ(event.addr, ++expected);
    EXPECT_EQ(expected, kEvents);
    reader.rewind();
  }
}

TEST(TraceReader, AtEqualTicksFreesComeFirstAndAllocsLast) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.process_record = false});
  builder.lane(1).alloc(10, 0xA, 8, kCpu, 0);
  builder.lane(2).record(10, StepRecord{.index = 1});
  builder.lane(3).free(10, 0xA, kCpu);
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  const auto events = read_all(reader);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, EventKind::kFree);
  EXPECT_EQ(events[1].kind, EventKind::kRecord);
  EXPECT_EQ(events[2].kind, EventKind::kAlloc);
}

TEST(TraceReader, ALongPauseIsBridgedByATimeRecord) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.process_record = false});
  constexpr uint64_t kHour = 3'600'000'000'000;
  builder.lane(1).alloc(5, 1, 8, kCpu, 0);
  builder.lane(1).alloc(kHour, 2, 8, kCpu, 0);
  builder.lane(1).alloc(kHour + 1, 3, 8, kCpu, 0);
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  const auto events = read_all(reader);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].time, kEpochNs + kHour);
  EXPECT_EQ(events[2].time, kEpochNs + kHour + 1);
}

// The agent's thread writes the window and the seeds after other threads have gone on; they belong
// before what happened since.
TEST(TraceReader, WindowsAndSeedsComeAtTheirOwnTime) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.process_record = false});
  LaneBuilder& lane = builder.lane(1);
  lane.alloc(50, 0xB, 8, kCpu, 0);
  lane.free(110, 0xA, kCpu);
  LaneBuilder& agent = builder.agent();
  agent.record(200, window_record(WindowAction::kStart, 100));
  agent.record(205, NoticeRecord{.what = "n", .why = "w"});
  agent.record(
      210,
      SeedRecord{
          .addr = 0xA, .sized = pack_sized(64, kCuda.packed()), .birth = 0, .window_ticks = 100});
  agent.record(
      220,
      SeedRecord{
          .addr = 0xB, .sized = pack_sized(8, kCpu.packed()), .birth = 50, .window_ticks = 100});
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  const auto events = read_all(reader);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].kind, EventKind::kAlloc);
  EXPECT_EQ(events[1].kind, EventKind::kWindow);
  EXPECT_EQ(events[1].size, 1u);
  EXPECT_EQ(events[1].time, kEpochNs + 100);
  EXPECT_EQ(events[2].kind, EventKind::kSeed);
  EXPECT_EQ(events[2].addr, 0xAu);
  EXPECT_EQ(events[2].size, 64u);
  EXPECT_EQ(events[2].where, kCuda);
  EXPECT_EQ(events[2].birth, 0u);  // preexisting
  EXPECT_EQ(events[3].kind, EventKind::kSeed);
  EXPECT_EQ(events[3].birth, events[0].time);  // the alloc it denotes
  EXPECT_EQ(events[4].kind, EventKind::kFree);
  EXPECT_EQ(events[5].record_kind, static_cast<uint8_t>(Kind::kNotice));
  EXPECT_EQ(reader.info().preexisting, 1u);
  EXPECT_EQ(reader.info().seeds, 2u);
}

TEST(TraceReader, UnknownColdKindsAndFieldsArePassedOn) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.process_record = false});
  const uint64_t unknown[] = {hot_word(static_cast<Kind>(100), 3, 0), 11, 22};
  builder.lane(1).raw(10, unknown);
  // A step of a later minor version has one field more; of an earlier one, one fewer.
  const uint64_t longer[] = {hot_word(Kind::kStep, 6, 0), 1, 7, 0, 0, 99};
  const uint64_t shorter[] = {hot_word(Kind::kStep, 3, 0), 1, 8};
  builder.lane(1).raw(20, longer);
  builder.lane(1).raw(30, shorter);
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  Event event;
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.record_kind, 100);
  EXPECT_THAT(std::vector(event.words.begin() + 1, event.words.end()), ElementsAre(11, 22));
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(decode_record<StepRecord>(event.words)->index, 7u);
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(decode_record<StepRecord>(event.words)->index, 8u);
  EXPECT_EQ(decode_record<StepRecord>(event.words)->name, "");
}

TEST(TraceReader, ScanFindsRecordsInTimeOrderWithoutDisturbingNext) {
  TestDirectory directory;
  TraceBuilder builder(directory.path());
  for (uint64_t step = 1; step <= 50; ++step) {
    for (uint64_t i = 0; i < 1000; ++i) builder.lane(1).alloc(step * 10'000 + i, i, 8, kCpu, 0);
    builder.lane(step % 2 == 0 ? 1 : 2)
        .record(step * 10'000 + 5000, StepRecord{.source = 1, .index = step});
  }
  ASSERT_TRUE(builder.finish().ok());
  TraceReader reader = open_or_die(directory.path());
  Event event;
  ASSERT_TRUE(reader.next(event));
  uint64_t steps = 0;
  reader.scan(kind_bit(Kind::kStep), [&](const Event& e) {
    EXPECT_EQ(decode_record<StepRecord>(e.words)->index, ++steps);
    EXPECT_EQ(e.time, kEpochNs + steps * 10'000 + 5000);
    return true;
  });
  EXPECT_EQ(steps, 50u);
  uint64_t rest = 0;
  while (reader.next(event)) ++rest;
  EXPECT_EQ(rest, 50u * 1001);
}

TEST(TraceReader, InfoTellsWhoWasTracedAndWhatIsMissing) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), {.pid = 12, .rank = 3, .host = "h", .argv0 = "a.py"});
  LaneBuilder& agent = builder.agent();
  agent.record(1, ConfigRecord{.key = "device", .value = "auto"});
  agent.record(2, ConfigRecord{.key = "device", .value = "cpu"});
  agent.record(3, NoticeRecord{.what = "python stacks off", .why = "unknown layout"});
  agent.record(4, DropRecord{.kind = 1, .count = 5, .bytes = 50});
  agent.record(5, DropRecord{.kind = 1, .count = 2, .bytes = 20});
  agent.record(6, DropRecord{.kind = 2, .count = 1});
  agent.record(7, GapRecord{.from_ticks = 4, .to_ticks = 6, .reason = "slab full"});
  agent.record(8, SourceRecord{.path = "/a.py", .text = "x = 1\n", .flags = 1});
  agent.record(9, ChildRecord{.pid = 13, .how = "fork", .traced = "dir"});
  agent.record(10, window_record(WindowAction::kStart, 10));
  agent.record(20, window_record(WindowAction::kStop, 20));
  agent.record(30, window_record(WindowAction::kExit, 30));
  ASSERT_TRUE(builder.finish().ok());
  const TraceReader reader = open_or_die(directory / kLogName);  // by the file, too
  const TraceInfo& info = reader.info();
  ASSERT_TRUE(info.process.has_value());
  EXPECT_EQ(info.process->pid, 12u);
  EXPECT_EQ(info.process->rank, 3);
  EXPECT_EQ(info.process->host, "h");
  EXPECT_EQ(info.process->argv0, "a.py");
  EXPECT_EQ(info.configs.at("device"), "cpu");
  ASSERT_EQ(info.notices.size(), 1u);
  EXPECT_EQ(info.notices[0].why, "unknown layout");
  EXPECT_EQ(info.dropped_events(), 8u);
  EXPECT_EQ(info.dropped.at(1).count, 7u);
  EXPECT_EQ(info.dropped.at(1).bytes, 70u);
  ASSERT_EQ(info.gaps.size(), 1u);
  EXPECT_EQ(info.gaps[0].from_ns, kEpochNs + 4);
  EXPECT_EQ(info.gaps[0].reason, "slab full");
  EXPECT_EQ(info.sources.at("/a.py").text, "x = 1\n");
  EXPECT_TRUE(info.sources.at("/a.py").newer_than_process);
  ASSERT_EQ(info.children.size(), 1u);
  EXPECT_EQ(info.children[0].pid, 13u);
  EXPECT_EQ(info.ended, "stop");  // the exit came after the recording had ended
}

struct EndedCase {
  std::vector<uint64_t> actions;
  std::string ended;
};

TEST(TraceReader, HowItEndedComesFromTheLastRecording) {
  // Pid 4711 of the builder's host "synthetic" is not a process of this host, and nothing says that
  // it still writes... but the files are new, so a trace without an end counts as running.
  for (const auto& [actions, ended] :
       {EndedCase{{1, 4}, "exit"}, EndedCase{{1, 2}, "stop"}, EndedCase{{1, 3}, "stop"},
        EndedCase{{1, 2, 1, 4}, "exit"}, EndedCase{{1}, "running"}, EndedCase{{1, 2, 1}, "running"},
        EndedCase{{}, "running"}}) {
    TestDirectory directory;
    TraceBuilder builder(directory.path());
    uint64_t ticks = 0;
    for (const uint64_t action : actions) {
      ++ticks;
      builder.agent().record(ticks, WindowRecord{.action = action, .ticks = ticks});
    }
    ASSERT_TRUE(builder.finish().ok());
    EXPECT_EQ(open_or_die(directory.path()).info().ended, ended);
    // An hour later nobody writes any more.
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    std::filesystem::last_write_time(directory / kLogName, old);
    EXPECT_EQ(open_or_die(directory.path()).info().ended, ended == "running" ? "killed" : ended);
  }
}

// A process of this host with the record's pid and start time is running; another one that has got
// its pid since is not it.
TEST(TraceReader, ARunningProcessIsKnownByPidAndStartTime) {
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  const auto now = static_cast<uint64_t>(time(nullptr)) * 1'000'000'000;
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  const auto ended = [&](uint64_t start) {
    TestDirectory directory;
    TraceBuilder builder(
        directory.path(),
        {.pid = static_cast<uint64_t>(child), .host = host, .anchor = {0, 0, start}});
    EXPECT_TRUE(builder.finish().ok());
    return open_or_die(directory.path()).info().ended;
  };
  EXPECT_EQ(ended(now), "running");
  EXPECT_EQ(ended(kEpochNs), "killed");  // years ago: that was another process
  kill(child, SIGKILL);
  siginfo_t died{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &died, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ended(now), "killed");  // a zombie
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ended(now), "killed");
}

}  // namespace
}  // namespace memscope
