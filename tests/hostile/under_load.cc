// Four threads that allocate and free until somebody kills them, each with its own count, in a
// shared file, of the calls that have returned. Prints "counting" when all of them are at work.
//
//   under_load COUNTS      8 words: allocations of each thread, frees of each thread
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "fake_c10.h"

namespace {

constexpr int kThreads = 4;
constexpr int kBlocks = 100;
struct Counts {
  std::atomic<uint64_t> allocs[kThreads], frees[kThreads];
};
char blocks[kThreads][kBlocks];
std::atomic<int> at_work = 0;

void count(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

[[noreturn]] void work(Counts& counts, int self) {
  for (uint64_t round = 0;; ++round) {
    for (char& block : blocks[self]) {
      fake_c10_new(&block, 64);
      count(counts.allocs[self]);
    }
    if (round == 0) ++at_work;
    for (char& block : blocks[self]) {
      fake_c10_delete(&block);
      count(counts.frees[self]);
    }
    usleep(50);  // no faster than the trace is written: nothing may be dropped
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int file = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Counts)) != 0) return 2;
  void* memory = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 2;
  auto& counts = *static_cast<Counts*>(memory);
  std::vector<std::thread> threads;
  for (int self = 0; self < kThreads; ++self) {
    threads.emplace_back([&counts, self] { work(counts, self); });
  }
  while (at_work < kThreads) usleep(100);
  std::puts("counting");
  std::fflush(stdout);
  for (std::thread& thread : threads) thread.join();
  return 0;
}
