// The raw walk of a thread's Python frames with its hash, on chains laid out as CPython lays them
// out (frames side by side on the thread's frame stack, code objects on the heap, each frame's code
// another one). What it leaves out: finding the thread's state, two calls into the interpreter.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "capture/python_frames.h"

namespace memscope::capture {
namespace {

constexpr size_t kFrameBytes = 160;  // locals and stack included
constexpr size_t kCodeBytes = 1024;

class Chain {
 public:
  Chain(const PythonLayout& layout, size_t depth) : thread_(512), frames_(depth * kFrameBytes) {
    char* link = thread_.data() + layout.thread_head;
    if (layout.head_in_cframe) {
      put(link, address(cframe_.data()));
      link = cframe_.data() + layout.cframe_head;
    }
    for (size_t i = 0; i < depth; ++i) {
      codes_.push_back(std::make_unique<std::vector<char>>(kCodeBytes));
      const uint64_t code = address(codes_.back()->data());
      char* frame = &frames_[(depth - 1 - i) * kFrameBytes];
      put(link, address(frame));
      link = frame + layout.frame_previous;
      put(frame + layout.frame_code, code);
      if (layout.frame_objects) {
        put(frame + layout.frame_instruction, int32_t{40});
      } else {
        put(frame + layout.frame_instruction, code + layout.code_bytecode + 40);
      }
    }
    put(link, uint64_t{0});
  }
  uint64_t thread() const { return address(thread_.data()); }

 private:
  static uint64_t address(const char* pointer) { return reinterpret_cast<uint64_t>(pointer); }
  template <class T>
  static void put(char* at, T value) {
    std::memcpy(at, &value, sizeof value);
  }

  std::vector<char> thread_, frames_;
  std::vector<char> cframe_ = std::vector<char>(64);
  std::vector<std::unique_ptr<std::vector<char>>> codes_;
};

template <size_t kLayout>
WalkResult walk(uint64_t thread, RawFrame* frames) {
  DirectMemory memory;
  return walk_frames<false>(kPythonLayouts[kLayout], memory, thread, frames, kMaxFrames);
}

template <size_t kLayout>
void warm(benchmark::State& state) {
  const Chain chain(kPythonLayouts[kLayout], static_cast<size_t>(state.range(0)));
  std::vector<RawFrame> frames(kMaxFrames);
  for (auto _ : state) {
    WalkResult result = walk<kLayout>(chain.thread(), frames.data());
    benchmark::DoNotOptimize(result);
  }
}

// The program touches 4 MiB between two events.
template <size_t kLayout>
void cold(benchmark::State& state) {
  const Chain chain(kPythonLayouts[kLayout], static_cast<size_t>(state.range(0)));
  std::vector<RawFrame> frames(kMaxFrames);
  std::vector<char> other(4 << 20);
  for (auto _ : state) {
    for (size_t i = 0; i < other.size(); i += 64) ++other[i];
    benchmark::ClobberMemory();
    const auto begin = std::chrono::steady_clock::now();
    WalkResult result = walk<kLayout>(chain.thread(), frames.data());
    benchmark::DoNotOptimize(result);
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

static_assert(kPythonLayouts[1].minor == 10 && kPythonLayouts[2].minor == 11 &&
              kPythonLayouts[5].minor == 14);
BENCHMARK(warm<1>)->Name("walk_warm/3.10")->Arg(30);
BENCHMARK(warm<2>)->Name("walk_warm/3.11")->Arg(5)->Arg(30)->Arg(100);
BENCHMARK(warm<5>)->Name("walk_warm/3.14")->Arg(30);
BENCHMARK(cold<2>)->Name("walk_cold/3.11")->Arg(30)->UseManualTime()->Iterations(20000);
BENCHMARK(cold<5>)->Name("walk_cold/3.14")->Arg(30)->UseManualTime()->Iterations(20000);

}  // namespace
}  // namespace memscope::capture

BENCHMARK_MAIN();
