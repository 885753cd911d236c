// malloc and free in a program without Python: what host_cost.py measures the tools with.
//
//   malloc_pairs THREADS DEPTH PAIRS KEPT
//
// Each thread makes PAIRS pairs DEPTH calls below its start, keeps KEPT blocks alive, of 16 to
// 4,000 bytes each, and frees the one that it replaces. Prints ns a pair of one thread: wall time,
// and the threads' own CPU time, which a busy machine changes less and waiting does not show in.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <vector>

namespace {

long depth, pairs, kept;
std::atomic<double> cpu_ns{0};
// Of the first thread to begin and the last to end. The main thread may get a core late.
std::atomic<double> first_ns{1e300}, last_ns{0};

template <typename Better>
void take(std::atomic<double>& best, double value, Better better) {
  for (double known = best; better(value, known) && !best.compare_exchange_weak(known, value);) {
  }
}
pthread_barrier_t barrier;

double now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

__attribute__((noinline)) void work(uint64_t seed) {
  uint64_t random = seed;
  std::vector<char*> blocks(static_cast<size_t>(kept), nullptr);
  const auto one = [&](char*& block) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    free(block);
    block = static_cast<char*>(malloc(16 + random % 3984));
    *block = 1;
  };
  for (char*& block : blocks) one(block);
  pthread_barrier_wait(&barrier);
  take(first_ns, now(CLOCK_MONOTONIC), std::less<>());
  const double begin = now(CLOCK_THREAD_CPUTIME_ID);
  for (long i = 0; i < pairs; ++i) one(blocks[(random >> 20) % blocks.size()]);
  const double used = now(CLOCK_THREAD_CPUTIME_ID) - begin;
  take(last_ns, now(CLOCK_MONOTONIC), std::greater<>());
  for (double sum = cpu_ns; !cpu_ns.compare_exchange_weak(sum, sum + used);) {
  }
}

// A frame a level: what is done after the call keeps it from becoming a jump.
__attribute__((noinline)) void down(long level, uint64_t seed) {
  volatile char frame[32];
  frame[0] = static_cast<char>(level);
  if (level <= 0) {
    work(seed);
  } else {
    down(level - 1, seed);
  }
  frame[1] = frame[0];
}

void* run(void* seed) {
  down(depth, reinterpret_cast<uint64_t>(seed) * 2685821657736338717u + 88172645463325252u);
  return nullptr;
}

}  // namespace

// Also from a Python process (in_python.py), for tools that trace no other.
extern "C" void malloc_pairs(long threads, long depth_wanted, long pairs_wanted, long kept_wanted) {
  depth = depth_wanted;
  pairs = pairs_wanted;
  kept = kept_wanted;
  // Enough for the agent to make its trace (16 MiB).
  void* volatile large = malloc(size_t{20} << 20);
  pthread_barrier_init(&barrier, nullptr, static_cast<unsigned>(threads) + 1);
  std::vector<pthread_t> ids(static_cast<size_t>(threads));
  for (long i = 0; i < threads; ++i) {
    pthread_create(&ids[static_cast<size_t>(i)], nullptr, run, reinterpret_cast<void*>(i + 1));
  }
  pthread_barrier_wait(&barrier);
  for (const pthread_t id : ids) pthread_join(id, nullptr);
  const auto count = static_cast<double>(pairs);
  printf("%.1f %.1f\n", (last_ns - first_ns) / count,
         cpu_ns / count / static_cast<double>(threads));
  fflush(stdout);
  free(large);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto word = [&](int i) { return strtol(argv[i], nullptr, 10); };
  malloc_pairs(word(1), word(2), word(3), word(4));
  return 0;
}
