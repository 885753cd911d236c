#include "trace/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "trace/reader.h"
#include "trace/records.h"
#include "trace/run_layout.h"
#include "trace/test_directory.h"

namespace memscope {
namespace {

using testing::HasSubstr;

// What a reader sees of a process, counted without replay.
struct Seen {
  struct Layer {
    uint64_t live = 0, peak = 0, reserved_end = 0;
  };
  std::map<std::string, Layer> layers;                        // by device
  std::map<uint64_t, std::pair<uint64_t, std::string>> live;  // addr -> size, device
  uint64_t allocs = 0, frees = 0, seeds = 0, steps = 0, strays = 0;
  std::map<uint32_t, uint64_t> bytes_by_line;  // live at the end, by line of the user's file
  std::set<uint32_t> threads;
};

Seen read(const std::filesystem::path& path) {
  Seen seen;
  auto opened = TraceReader::open(path);
  EXPECT_TRUE(opened.ok());
  if (!opened) return seen;
  TraceReader& reader = opened.value();
  std::map<uint64_t, StackId> stacks;
  uint64_t before = 0;
  for (Event event; reader.next(event);) {
    EXPECT_GE(event.time, before);
    before = event.time;
    const std::string device = device_name(event.where.device);
    if (event.record_kind == static_cast<uint8_t>(Kind::kStep)) ++seen.steps;
    if (event.kind == EventKind::kRecord || event.kind == EventKind::kWindow) continue;
    seen.threads.insert(event.thread.value);
    Seen::Layer& layer = seen.layers[device];
    if (event.has_totals) layer.reserved_end = event.reserved;
    if (event.kind == EventKind::kFree) {
      ++seen.frees;
      const auto found = seen.live.find(event.addr);
      if (found == seen.live.end()) {
        ++seen.strays;
        continue;
      }
      layer.live -= found->second.first;
      seen.live.erase(found);
      continue;
    }
    event.kind == EventKind::kAlloc ? ++seen.allocs : ++seen.seeds;
    const bool fresh = seen.live.emplace(event.addr, std::pair(event.size, device)).second;
    if (!fresh) {  // a seed of a block that the trace has seen
      EXPECT_EQ(event.kind, EventKind::kSeed);
      continue;
    }
    stacks[event.addr] = event.stack;
    layer.live += event.size;
    layer.peak = std::max(layer.peak, layer.live);
    if (event.has_totals) {
      EXPECT_EQ(event.allocated, layer.live);
    }
  }
  for (const auto& [addr, block] : seen.live) {
    for (const FrameId id : reader.stacks().frames(stacks[addr])) {
      const Frame& frame = reader.stacks().frame(id);
      if (reader.strings().text(frame.file) != "/synthetic/train.py") continue;
      seen.bytes_by_line[frame.line] += block.first;
      break;
    }
  }
  EXPECT_TRUE(reader.damage().empty());
  return seen;
}

void expect_as_answered(const SynthProcessAnswer& answer) {
  const Seen seen = read(answer.directory);
  EXPECT_EQ(seen.allocs, answer.allocs);
  EXPECT_EQ(seen.frees, answer.frees);
  EXPECT_EQ(seen.seeds, answer.seeds);
  EXPECT_EQ(seen.steps, answer.steps);
  EXPECT_EQ(seen.strays, 0u);
  EXPECT_EQ(seen.live.size(), answer.live_blocks);
  for (const SynthLayerAnswer& layer : answer.layers) {
    const Seen::Layer& found = seen.layers.at(layer.device);
    EXPECT_EQ(found.live, layer.end);
    EXPECT_EQ(found.peak, layer.peak);
    if (layer.reserved_end) {
      EXPECT_EQ(found.reserved_end, *layer.reserved_end);
    }
  }
  for (const SynthLeakAnswer& leak : answer.leaks) {
    EXPECT_EQ(seen.bytes_by_line.at(leak.line), leak.bytes_total);
  }
  auto reader = TraceReader::open(answer.directory);
  ASSERT_TRUE(reader.ok());
  const TraceInfo& info = reader.value().info();
  EXPECT_EQ(info.ended, answer.ended);
  EXPECT_EQ(info.preexisting, answer.preexisting);
  EXPECT_EQ(info.dropped_events(), answer.dropped);
  EXPECT_EQ(info.process->rank.value_or(-1), answer.rank);
}

SynthOptions small(const TestDirectory& directory) {
  SynthOptions options;
  options.output = directory.path();
  options.steps = 20;
  options.events = 10'000;
  return options;
}

// 20 steps of 3 blocks and 1,000 bytes: 60 blocks, 20,000 bytes, at the line that says so.
TEST(Synth, ALeakIsWhatWasAskedFor) {
  TestDirectory directory;
  SynthOptions options = small(directory);
  options.leaks = {{.name = "grow", .bytes_per_step = 1000, .blocks_per_step = 3}};
  const auto answers = synthesize(options);
  ASSERT_TRUE(answers.ok());
  const SynthProcessAnswer& answer = answers.value().processes.at(0);
  ASSERT_EQ(answer.leaks.size(), 1u);
  EXPECT_EQ(answer.leaks[0].bytes_total, 20'000u);
  EXPECT_EQ(answer.leaks[0].blocks_total, 60u);
  EXPECT_NEAR(static_cast<double>(answer.allocs + answer.frees), 10'000, 200);
  expect_as_answered(answer);

  auto reader = TraceReader::open(answer.directory);
  ASSERT_TRUE(reader.ok());
  const std::string text = reader.value().info().sources.at("/synthetic/train.py").text;
  size_t at = 0;
  for (uint32_t line = 1; line < answer.leaks[0].line; ++line) at = text.find('\n', at) + 1;
  EXPECT_EQ(text.substr(at, text.find('\n', at) - at), "    leak_tensor = torch.empty(n)");
}

TEST(Synth, EverythingAtOnceIsAsAnswered) {
  TestDirectory directory;
  SynthOptions options = small(directory);
  options.processes = 2;
  options.threads = 3;
  options.devices = {"cpu", "cuda:0", "npu:1"};
  options.leaks = {{.device = "cuda:0", .holder = true},
                   {.name = "second", .first_step = 5, .device = "npu:1", .process = 1}};
  options.cache = SynthCache{};
  options.sawtooth = SynthSawtooth{.period = 7};
  options.jump = SynthJump{.at_step = 9};
  options.owners = options.marks = options.counters = true;
  options.preexisting = 4;
  options.pause_after = 10;
  options.dropped = 6;
  for (const SynthEnd end : {SynthEnd::kStop, SynthEnd::kExit, SynthEnd::kKilled}) {
    options.end = end;
    options.run_id = std::to_string(static_cast<int>(end));
    const auto answers = synthesize(options);
    ASSERT_TRUE(answers.ok());
    ASSERT_EQ(answers.value().processes.size(), 2u);
    EXPECT_EQ(answers.value().processes[0].leaks.size(), 1u);
    EXPECT_EQ(answers.value().processes[1].leaks.size(), 2u);
    for (const SynthProcessAnswer& answer : answers.value().processes) expect_as_answered(answer);
    const auto found = find_processes(answers.value().run);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value().size(), 2u);
  }
}

// What is alive at a time is asked for, and outlives its step: so many blocks more than the
// program's.
TEST(Synth, ScratchBlocksHaveLifetimesOfAllLengths) {
  const TestDirectory directory;
  SynthOptions options = small(directory);
  options.events = 20'000;
  const auto without = synthesize(options);
  options.scratch_alive = 300;
  options.run_id = "alive";
  const auto with = synthesize(options);
  ASSERT_TRUE(without.ok() && with.ok());
  const SynthProcessAnswer& answer = with.value().processes[0];
  expect_as_answered(answer);
  const uint64_t more = answer.live_blocks - without.value().processes[0].live_blocks;
  EXPECT_GE(more, 300u * 3 / 4);  // at most a quarter of them goes at once
  EXPECT_LE(more, 300u);
}

// Without extras the program is flat: what is alive after a step is parameters and states,
// 3 blocks a layer.
TEST(Synth, TheBareProgramIsHealthy) {
  TestDirectory directory;
  SynthOptions options = small(directory);
  const auto answers = synthesize(options);
  ASSERT_TRUE(answers.ok());
  const SynthProcessAnswer& answer = answers.value().processes.at(0);
  EXPECT_EQ(answer.live_blocks, 3u * options.layers);
  EXPECT_EQ(answer.layers.at(0).end, 3 * options.layers * options.layer_bytes);
  const auto json = nlohmann::json::parse(read_bytes(answers.value().run / "answers.json"));
  EXPECT_EQ(json["cause"], "none");
  EXPECT_EQ(json["processes"][0]["events"]["alloc"], answer.allocs);
}

TEST(Synth, TheSameSeedGivesTheSameBytes) {
  TestDirectory directory;
  SynthOptions options = small(directory);
  std::set<std::string> traces;
  for (const char* id : {"a", "b"}) {
    options.run_id = id;
    const auto answers = synthesize(options);
    ASSERT_TRUE(answers.ok());
    traces.insert(read_bytes(answers.value().processes[0].directory / kLogName));
  }
  EXPECT_EQ(traces.size(), 1u);
  options.seed = 2;
  const auto other = synthesize(options);
  ASSERT_TRUE(other.ok());
  traces.insert(read_bytes(other.value().processes[0].directory / kLogName));
  EXPECT_EQ(traces.size(), 2u);
}

TEST(Synth, WrongOptionsAreErrors) {
  TestDirectory directory;
  SynthOptions options = small(directory);
  options.devices = {"gpu0"};
  EXPECT_THAT(synthesize(options).error().message, HasSubstr("\"gpu0\" is none"));
}

}  // namespace
}  // namespace memscope
