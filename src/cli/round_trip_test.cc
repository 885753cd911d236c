// A run, its csv and its db give one diagnosis: what is converted and read back leaks the same
// bytes of the same line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "analysis/diagnose_inputs.h"
#include "cli/convert.h"
#include "import/find_inputs.h"
#include "trace/synth.h"
#include "trace/test_directory.h"

namespace memscope::cli {
namespace {

// What a dump can know of a verdict: a kept_at, holders and source texts are in traces alone.
struct Told {
  std::string cause, layer, device, file, function;
  int64_t line = 0, bytes = 0, blocks = 0;
  double per_step = 0;
  friend bool operator==(const Told&, const Told&) = default;
  friend void PrintTo(const Told& t, std::ostream* out) {
    *out << t.cause << " " << t.layer << " " << t.device << " " << t.file << ":" << t.line << " "
         << t.function << ", " << t.bytes << " B in " << t.blocks << ", " << t.per_step
         << " a step";
  }
};

Diagnosis diagnosis_of(const std::filesystem::path& path) {
  const auto paths = find_inputs(path);
  EXPECT_TRUE(paths.ok());
  auto result = memscope::diagnose_inputs(paths.value(), {});
  EXPECT_TRUE(result.ok());
  return std::move(result.value().diagnosis);
}

std::vector<Told> told(const Diagnosis& diagnosis) {
  std::vector<Told> all;
  for (const Verdict& v : diagnosis.verdicts) {
    Told t{.cause = v.cause,
           .layer = v.layer.value_or(""),
           .device = v.device.value_or(""),
           .bytes = v.bytes_total,
           .blocks = v.blocks,
           .per_step = v.bytes_per_step.value_or(-1)};
    if (v.site) {
      t.file = v.site->file.value_or("");
      t.function = v.site->function;
      t.line = v.site->line.value_or(0);
    }
    all.push_back(std::move(t));
  }
  return all;
}

void expect_round_trip(SynthOptions options) {
  const TestDirectory directory;
  options.output = directory.path() / "runs";
  const auto made = synthesize(options);
  ASSERT_TRUE(made.ok());
  const Diagnosis trace = diagnosis_of(made.value().run);
  for (const DumpFormat format : {DumpFormat::kCsv, DumpFormat::kDb}) {
    const bool csv = format == DumpFormat::kCsv;
    SCOPED_TRACE(csv ? "csv" : "db");
    const auto target = directory.path() / (csv ? "csv" : "db");
    ConvertRequest request;
    request.inputs = {made.value().run.string()};
    request.target = target;
    request.is_directory = true;
    request.format = format;
    request.quiet = true;
    ASSERT_EQ(convert(request), 0);
    const Diagnosis dump = diagnosis_of(target);
    EXPECT_EQ(told(dump), told(trace));
    EXPECT_EQ(dump.steps.source, trace.steps.source);
    EXPECT_EQ(dump.steps.count, trace.steps.count);
    EXPECT_EQ(dump.devices, trace.devices);
    for (const InputSummary& input : dump.inputs) EXPECT_EQ(input.kind, csv ? "csv" : "db");
    ASSERT_EQ(dump.layers.size(), trace.layers.size());
    for (const LayerSummary& layer : trace.layers) {
      const auto same =
          std::find_if(dump.layers.begin(), dump.layers.end(), [&](const LayerSummary& other) {
            return other.device == layer.device && other.layer == layer.layer;
          });
      ASSERT_NE(same, dump.layers.end()) << layer.device << " " << layer.layer;
      EXPECT_EQ(same->allocated.end, layer.allocated.end) << layer.device << " " << layer.layer;
      EXPECT_EQ(same->allocated.peak, layer.allocated.peak) << layer.device << " " << layer.layer;
      ASSERT_EQ(same->reserved.has_value(), layer.reserved.has_value());
      if (layer.reserved) {
        EXPECT_EQ(same->reserved->end, layer.reserved->end);
      }
    }
  }
}

TEST(RoundTrip, ALeakOnTheCpu) {
  expect_round_trip({.steps = 40, .leaks = {{}}});
}

TEST(RoundTrip, ALeakOfAPool) {
  expect_round_trip({.steps = 40, .threads = 2, .devices = {"cuda:1"}, .leaks = {{}}});
}

TEST(RoundTrip, AHealthyProgramAndItsOptimizer) {
  expect_round_trip({.steps = 40,
                     .devices = {"npu:0"},
                     .step_source = "optimizer",
                     .cache = SynthCache{},
                     .sawtooth = SynthSawtooth{}});
}

TEST(RoundTrip, OwnersMarksAndCounters) {
  expect_round_trip({.steps = 30, .leaks = {{}}, .owners = true, .marks = true, .counters = true});
}

TEST(RoundTrip, BlocksOlderThanTheRecording) {
  expect_round_trip({.steps = 30, .leaks = {{}}, .preexisting = 5});
}

TEST(RoundTrip, RecordingThatPaused) {
  expect_round_trip({.steps = 30, .leaks = {{}}, .pause_after = 12});
}

TEST(RoundTrip, AKilledRun) {
  expect_round_trip({.steps = 30, .leaks = {{}}, .end = SynthEnd::kKilled});
}

}  // namespace
}  // namespace memscope::cli
