// How fast a trace is read, replayed and diagnosed: events a second on one core, on a synthetic
// job of MEMSCOPE_BENCH_EVENTS events (10 M unless set) with a leak, caches and churn.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "analysis/diagnose_inputs.h"
#include "replay/trace_events.h"
#include "trace/reader.h"
#include "trace/synth.h"

namespace memscope {
namespace {

namespace fs = std::filesystem;

uint64_t event_count() {
  const char* text = std::getenv("MEMSCOPE_BENCH_EVENTS");
  const uint64_t count = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
  return count != 0 ? count : 10'000'000;
}

// A trace made once for all benchmarks, gone at the end.
class BenchTrace {
 public:
  BenchTrace() : root_(fs::temp_directory_path() / "memscope_analyze_bench") {
    fs::remove_all(root_);
    SynthOptions options{.output = root_,
                         .steps = 300,
                         .events = event_count(),
                         .threads = 4,
                         .depth = 30,
                         .scratch_sites = 1000,
                         .leaks = {{.holder = true}},
                         .cache = SynthCache{}};
    const auto made = synthesize(options);
    if (!made) return;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.path().filename() == "trace.msm") path_ = entry.path().parent_path();
    }
  }
  ~BenchTrace() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path root_, path_;
};

const fs::path& trace_path() {
  static const BenchTrace trace;
  return trace.path();
}

void read_only(benchmark::State& state) {
  uint64_t events = 0;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    auto reader = TraceReader::open(trace_path());
    if (!reader) return state.SkipWithError(reader.error().message.c_str());
    std::vector<Event> batch(256);
    while (const size_t count = reader.value().next_batch(batch)) events += count;
  }
  state.SetItemsProcessed(static_cast<int64_t>(events));
}
BENCHMARK(read_only)->Unit(benchmark::kMillisecond);

void read_and_replay(benchmark::State& state) {
  uint64_t events = 0;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    auto reader = TraceReader::open(trace_path());
    if (!reader) return state.SkipWithError(reader.error().message.c_str());
    TraceEvents source(reader.value());
    events += replay(source, {}).events;
  }
  state.SetItemsProcessed(static_cast<int64_t>(events));
}
BENCHMARK(read_and_replay)->Unit(benchmark::kMillisecond);

void diagnose_it(benchmark::State& state) {
  uint64_t verdicts = 0;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    const std::vector<fs::path> paths = {trace_path()};
    const auto result = diagnose_inputs(paths, {});
    if (!result) return state.SkipWithError(result.error().message.c_str());
    verdicts += result.value().diagnosis.verdicts.size();
  }
  benchmark::DoNotOptimize(verdicts);
  state.SetItemsProcessed(static_cast<int64_t>(event_count()) *
                          static_cast<int64_t>(state.iterations()));
}
BENCHMARK(diagnose_it)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace memscope

BENCHMARK_MAIN();
