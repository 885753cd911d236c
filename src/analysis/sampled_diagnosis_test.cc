// What a diagnosis says of host memory that was sampled by its bytes (core/sampling.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/diagnose.h"

namespace memscope {
namespace {

constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
// 1,000 B of which one in 525 is taken: each stands for 524,788 B.
constexpr uint64_t kRate = 524288, kSize = 1000, kScaled = 524788;

// 40 steps of a program of which `blocks(step)` blocks were sampled and stayed.
template <typename Blocks>
Diagnosis diagnosis_of(Blocks blocks) {
  VectorSource source;
  StringTable& strings = source.strings();
  const StackId stack = source.stacks().intern(
      {},
      source.stacks().intern_frame(
          {.file = strings.intern("/me/train.py"), .function = strings.intern("keep"), .line = 4}));
  source.add_record(1, ConfigRecord{.key = kHostSampleKey, .value = "524288"});
  uint64_t time = 1, addr = 0x1000;
  for (uint64_t step = 1; step <= 40; ++step) {
    for (uint64_t i = blocks(step); i-- > 0;) {
      source.add({.kind = EventKind::kAlloc,
                  .where = kHost,
                  .thread = ThreadId(1),
                  .stack = stack,
                  .time = ++time,
                  .addr = addr += kSize,
                  .size = kScaled,
                  .sampled_size = kSize});
    }
    time = step * 1'000'000;
    source.add_record(time,
                      StepRecord{.source = static_cast<uint64_t>(StepSource::kApi), .index = step});
  }
  std::vector<DiagnoseInput> inputs;
  inputs.push_back(
      {{.path = "run"}, replay(source, ReplayOptions{}), &source.stacks(), &source.strings()});
  return diagnose(inputs, {}).diagnosis;
}

double number(const Verdict& verdict, const char* key) {
  const auto found = verdict.evidence.find(key);
  if (found == verdict.evidence.end()) return -1;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  return std::get<double>(found->second);
}

// 20 samples in each of the 38 steps after warm-up, 760 of R each: 760 R, give or take
// 1.96 sqrt(760) R.
TEST(SampledDiagnosis, ALeakHasItsEstimatesAndTheirErrors) {
  const Diagnosis d = diagnosis_of([](uint64_t) { return 20; });
  ASSERT_EQ(d.verdicts.size(), 1u);
  const Verdict& v = d.verdicts[0];
  EXPECT_EQ(v.cause, "host_leak");
  EXPECT_EQ(v.bytes_total, 760 * static_cast<int64_t>(kScaled));
  EXPECT_EQ(v.blocks, std::llround(760 * 524.788));
  EXPECT_NEAR(v.bytes_per_step.value_or(0), 20.0 * kScaled, 1);
  EXPECT_EQ(number(v, "sampled_every_bytes"), kRate);
  const double error = 1.96 * std::sqrt(760.0) * kRate;
  EXPECT_NEAR(number(v, "bytes_total_error"), error, error / 100);
  EXPECT_NEAR(number(v, "bytes_per_step_error"), 1.5 * error / 38, error / 1000);
  // All 800 are there at the peak.
  const double of_layer = 1.96 * std::sqrt(800.0) * kRate;
  EXPECT_NEAR(number(v, "layer_peak_error_bytes"), of_layer, of_layer / 100);
  EXPECT_EQ(static_cast<double>(d.layers[0].end_error), number(v, "layer_end_error_bytes"));
}

// 10 samples are more than a mebibyte, rise evenly, and may be chance: at least 16 are asked for.
TEST(SampledDiagnosis, FewSamplesAreNoFindingAndTheLimitSaysSo) {
  const Diagnosis d = diagnosis_of([](uint64_t step) { return step % 4 == 3 ? 1 : 0; });
  ASSERT_EQ(d.verdicts.size(), 1u);
  const Verdict& none = d.verdicts[0];
  EXPECT_EQ(none.cause, "none");
  EXPECT_TRUE(d.suspects.empty());
  EXPECT_EQ(number(none, "sampled_every_bytes"), kRate);
  // G = 4 sqrt(R G + 10 R^2): G = 8 R + sqrt(64 + 160) R = 22.97 R over 38 steps.
  EXPECT_NEAR(number(none, "detection_limit_bytes_per_step"), 22.97 * kRate / 38, 0.02 * kRate);
}

}  // namespace
}  // namespace memscope
