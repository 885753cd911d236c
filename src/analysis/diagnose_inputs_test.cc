// Whole path on synthetic traces with known answers: written, read, replayed, judged.
#include "analysis/diagnose_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trace/layout.h"
#include "trace/synth.h"
#include "trace/test_directory.h"

namespace memscope {
namespace {

using ::testing::SizeIs;

constexpr int64_t kMiB = 1 << 20;

struct SynthRun {
  explicit SynthRun(SynthOptions options) {
    options.output = directory.path();
    auto made = synthesize(options);
    EXPECT_TRUE(made.ok());
    answers = std::move(made).value();
    std::vector<std::filesystem::path> paths;
    for (const SynthProcessAnswer& process : answers.processes) paths.push_back(process.directory);
    auto result = diagnose_inputs(paths, {});
    EXPECT_TRUE(result.ok());
    diagnosis = std::move(result).value().diagnosis;
  }
  TestDirectory directory;
  SynthAnswers answers;
  Diagnosis diagnosis;
};

TEST(DiagnoseInputs, ALeakWithItsHolder) {
  const SynthRun run({.steps = 100, .leaks = {{.holder = true}}});
  ASSERT_THAT(run.diagnosis.verdicts, SizeIs(1));
  const Verdict& v = run.diagnosis.verdicts[0];
  const SynthLeakAnswer& truth = run.answers.processes[0].leaks[0];
  EXPECT_EQ(v.cause, "leak");
  EXPECT_EQ(v.site->file, truth.file);
  EXPECT_LE(v.site->line, truth.line);
  EXPECT_GE(v.site->end_line, truth.line);
  ASSERT_TRUE(v.kept_at);
  EXPECT_EQ(v.kept_at->line, truth.kept_line);
  EXPECT_NEAR(*v.bytes_per_step, kMiB, 0.02 * kMiB);
  EXPECT_EQ(v.bytes_total, (100 - *run.diagnosis.steps.warmup_until) * kMiB);
  EXPECT_GT(v.confidence, 0.9);
  EXPECT_TRUE(run.diagnosis.inputs[0].complete);
}

TEST(DiagnoseInputs, LookAlikesAreHealthy) {
  const SynthRun run({.steps = 100,
                      .threads = 2,
                      .cache = SynthCache{.until_step = 40},
                      .sawtooth = SynthSawtooth{.period = 20},
                      .jump = SynthJump{}});
  ASSERT_THAT(run.diagnosis.verdicts, SizeIs(1));
  EXPECT_EQ(run.diagnosis.verdicts[0].cause, "none");
  EXPECT_THAT(run.diagnosis.suspects, SizeIs(0));
}

TEST(DiagnoseInputs, RanksOnDevicesWithThreadsKilled) {
  const SynthRun run({.events = 20'000,
                      .processes = 3,
                      .threads = 4,
                      .devices = {"cuda:0", "cpu"},
                      .step_source = "optimizer",
                      .leaks = {{}},
                      .end = SynthEnd::kKilled});
  ASSERT_THAT(run.diagnosis.verdicts, SizeIs(1));
  const Verdict& v = run.diagnosis.verdicts[0];
  EXPECT_EQ(run.diagnosis.steps.source, "optimizer");
  EXPECT_EQ(v.layer, "pool");
  EXPECT_EQ(v.device, "cuda:0");
  EXPECT_THAT(v.processes, SizeIs(3));
  EXPECT_FALSE(v.kept_at);
  EXPECT_EQ(run.diagnosis.inputs[0].ended, "killed");
  EXPECT_EQ(run.diagnosis.ambiguous, 0);
}

TEST(DiagnoseInputs, StoppedAndStartedAgain) {
  const SynthRun run({.steps = 100, .leaks = {{}}, .preexisting = 50, .pause_after = 50});
  ASSERT_THAT(run.diagnosis.verdicts, SizeIs(1));
  const Verdict& v = run.diagnosis.verdicts[0];
  EXPECT_EQ(v.cause, "leak");
  EXPECT_NEAR(*v.bytes_per_step, kMiB, 0.02 * kMiB);
  EXPECT_EQ(v.bytes_total, (100 - *run.diagnosis.steps.warmup_until) * kMiB);
  EXPECT_THAT(run.diagnosis.gaps, SizeIs(1));
}

TEST(DiagnoseInputs, AHoleInAHealthyTraceAccusesNobody) {
  // Whatever lies in the hole, the blocks whose free is lost with it look alive.
  std::mt19937 random(5);
  SynthRun run({.steps = 400, .sawtooth = SynthSawtooth{.period = 4}});
  const std::filesystem::path log = run.answers.processes[0].directory / kLogName;
  const std::string whole = read_bytes(log);
  for (int round = 0; round < 40; ++round) {
    std::string bytes = whole;
    bytes[sizeof(LogHeader) + random() % (bytes.size() - sizeof(LogHeader))] ^= 4;
    write_bytes(log, bytes);
    const std::vector<std::filesystem::path> paths{run.answers.processes[0].directory};
    const auto result = diagnose_inputs(paths, {});
    if (!result) continue;
    ASSERT_THAT(result.value().diagnosis.verdicts, SizeIs(1));
    EXPECT_EQ(result.value().diagnosis.verdicts[0].cause, "none") << "round " << round;
  }
}

TEST(DiagnoseInputs, AnUnreadableInputIsAnErrorThatNamesIt) {
  const std::vector<std::filesystem::path> paths = {"/nonexistent/trace"};
  const auto result = diagnose_inputs(paths, {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("/nonexistent/trace"));
}

}  // namespace
}  // namespace memscope
