// Recording is started and stopped thousands of times under three threads that allocate and free
// all the while; at the end what the trace says is alive must be what is alive, and every GOT slot
// must be restored by shutdown().
//
//   start_stop AGENT OUTPUT ROUNDS     writes OUTPUT/live.txt: "address size" of what is alive
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

constexpr size_t kBlocks = 400;

struct Blocks {
  char memory[kBlocks] = {};
  size_t size[kBlocks] = {};  // 0 = free
};

std::atomic<uint64_t> operations = 0;

void churn(Blocks& blocks, unsigned seed, const std::atomic<bool>& stop) {
  std::mt19937 random(seed);
  for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
    const size_t at = random() % kBlocks;
    if (blocks.size[at] != 0) {
      fake_c10_delete(&blocks.memory[at]);
      blocks.size[at] = 0;
    } else {
      blocks.size[at] = 1 + random() % 100000;
      fake_c10_new(&blocks.memory[at], blocks.size[at]);
    }
    operations.fetch_add(1, std::memory_order_relaxed);
    if (i % 64 == 0) std::this_thread::yield();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  std::atomic<bool> stop = false;
  std::vector<Blocks> blocks(3);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] { churn(blocks[t], t + 1, stop); });
  }
  const long rounds = std::strtol(argv[3], nullptr, 10);
  for (long round = 0; round < rounds; ++round) {
    // Something is allocated and freed inside each window and between them.
    const auto await_operations = [](uint64_t count) {
      const uint64_t begin = operations.load();
      while (operations.load() < begin + count) std::this_thread::yield();
    };
    await_operations(50);
    if (agent.start() != 0) return 3;
    await_operations(100);
    if (agent.stop() != 0) return 3;
  }
  if (agent.start() != 0) return 3;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::filesystem::create_directories(argv[2]);
  std::ofstream live(std::string(argv[2]) + "/live.txt");
  for (const Blocks& own : blocks) {
    for (size_t i = 0; i < kBlocks; ++i) {
      if (own.size[i] != 0) {
        live << reinterpret_cast<uintptr_t>(&own.memory[i]) << ' ' << own.size[i] << '\n';
      }
    }
  }
  live.close();
  if (agent.shutdown() != 0) return 3;
  std::printf("%s\n", agent_status(agent).c_str());
  return 0;
}
