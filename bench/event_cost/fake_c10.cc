// A stand-in for libc10, so that an event's cost is measured without the allocation that it tells
// of: the two functions that the agent watches, called through slots of the library's own as torch
// does it, in loops that time themselves. Built as libc10.so; driven by event_cost.py, which gives
// each thread its Python stack.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace c10 {
struct ProfiledCPUMemoryReporter {
  void New(void* block, size_t bytes);
  void Delete(void* block);
};
// The optimiser must not see that nothing happens here.
void ProfiledCPUMemoryReporter::New(void* block, size_t bytes) {
  asm volatile("" ::"r"(block), "r"(bytes) : "memory");
}
void ProfiledCPUMemoryReporter::Delete(void* block) {
  asm volatile("" ::"r"(block) : "memory");
}

// Only so that the agent finds nothing missing.
struct Device {
  int8_t type, index;
};
void reportMemoryUsageToProfiler(void* block, int64_t, size_t, size_t, Device) {
  asm volatile("" ::"r"(block) : "memory");
}
}  // namespace c10

namespace {

double ns_of(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}
double now_ns() {
  return ns_of(CLOCK_MONOTONIC);
}

std::atomic<int> waiting{0};

// Addresses as an allocator gives them: 16-byte aligned, apart, of this thread alone.
char* blocks_of_thread(size_t thread) {
  return reinterpret_cast<char*>((size_t{0x500000} + thread) << 24);
}
constexpr size_t kBlockBytes = 4096;

}  // namespace

extern "C" {

struct Timing {
  double alloc_ns;  // mean of an event
  double free_ns;
  double begin_ns;  // CLOCK_MONOTONIC
  double end_ns;
  double cpu_ns;  // of this thread, from begin to end: without the time others took its core
};

// `threads` callers start together; then each makes `rounds` times `live` allocs and `live` frees.
void bench_warm(size_t thread, int threads, size_t rounds, size_t live, Timing* out) {
  c10::ProfiledCPUMemoryReporter reporter;
  char* blocks = blocks_of_thread(thread);
  waiting.fetch_add(1);
  while (waiting.load() < threads) sched_yield();
  double alloc_ns = 0, free_ns = 0;
  const double cpu_begin = ns_of(CLOCK_THREAD_CPUTIME_ID);
  out->begin_ns = now_ns();
  double t0 = out->begin_ns;
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < live; ++i) reporter.New(blocks + i * kBlockBytes, kBlockBytes);
    const double t1 = now_ns();
    for (size_t i = 0; i < live; ++i) reporter.Delete(blocks + i * kBlockBytes);
    const double t2 = now_ns();
    alloc_ns += t1 - t0;
    free_ns += t2 - t1;
    t0 = t2;
  }
  out->end_ns = t0;
  out->cpu_ns = ns_of(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
  const double events = static_cast<double>(rounds * live);
  out->alloc_ns = alloc_ns / events;
  out->free_ns = free_ns / events;
}

// To be called when all threads of a measurement have come back.
void bench_reset() {
  waiting.store(0);
}

// The same on `threads` threads that Python never saw, hence without a Python stack.
void bench_warm_native(int threads, size_t rounds, size_t live, Timing* out) {
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(bench_warm, static_cast<size_t>(i), threads, rounds, live, out + i);
  }
  for (std::thread& worker : workers) worker.join();
}

// The same from `frames` native frames further in.
__attribute__((noinline)) void bench_warm_deep(int frames, size_t thread, int threads,
                                               size_t rounds, size_t live, Timing* out) {
  if (frames > 0) {
    bench_warm_deep(frames - 1, thread, threads, rounds, live, out);
  } else {
    bench_warm(thread, threads, rounds, live, out);
  }
  asm volatile("" ::: "memory");  // not a tail call
}
void bench_warm_native_deep(int frames, int threads, size_t rounds, size_t live, Timing* out) {
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(bench_warm_deep, frames, static_cast<size_t>(i), threads, rounds, live,
                         out + i);
  }
  for (std::thread& worker : workers) worker.join();
}

// One event at a time, with `touch` bytes written and read between events, as the kernels of a
// model would; only the events are timed. The mean of the middle 90 %: the ends are interrupts.
// The clock's own cost is in both numbers; the run without
// the agent tells it.
void bench_cold(size_t pairs, size_t touch, Timing* out) {
  c10::ProfiledCPUMemoryReporter reporter;
  char* blocks = blocks_of_thread(63);
  std::vector<char> between(touch, 1);
  std::vector<double> alloc_ns, free_ns;
  alloc_ns.reserve(pairs);
  free_ns.reserve(pairs);
  const auto evict = [&](char value) {
    for (size_t i = 0; i < touch; i += 64) between[i] = static_cast<char>(between[i] + value);
    asm volatile("" ::"r"(between.data()) : "memory");
  };
  out->begin_ns = now_ns();
  for (size_t i = 0; i < pairs; ++i) {
    char* block = blocks + (i % 64) * kBlockBytes;
    evict(1);
    double t = now_ns();
    reporter.New(block, kBlockBytes);
    alloc_ns.push_back(now_ns() - t);
    evict(2);
    t = now_ns();
    reporter.Delete(block);
    free_ns.push_back(now_ns() - t);
  }
  out->end_ns = now_ns();
  const auto middle = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    const size_t from = values.size() / 20, to = values.size() - from;
    double sum = 0;
    for (size_t i = from; i < to; ++i) sum += values[i];
    return sum / static_cast<double>(to - from);
  };
  out->alloc_ns = middle(alloc_ns);
  out->free_ns = middle(free_ns);
}

void bench_cold_native(size_t pairs, size_t touch, Timing* out) {
  std::thread(bench_cold, pairs, touch, out).join();
}

// One event while others press the disk: the worst and the 99.99th percentile of `pairs` allocs.
void bench_worst(size_t pairs, double* worst_ns, double* p9999_ns) {
  c10::ProfiledCPUMemoryReporter reporter;
  char* blocks = blocks_of_thread(62);
  std::vector<double> ns;
  ns.reserve(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    char* block = blocks + (i % 64) * kBlockBytes;
    const double t = now_ns();
    reporter.New(block, kBlockBytes);
    ns.push_back(now_ns() - t);
    reporter.Delete(block);
  }
  std::sort(ns.begin(), ns.end());
  *worst_ns = ns.back();
  *p9999_ns = ns[ns.size() - 1 - ns.size() / 10000];
}
}
