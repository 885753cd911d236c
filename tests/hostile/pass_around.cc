// Four threads pass one address back and forth: whoever finds it free takes it, another thread
// gives it back. The serial number of each allocation is its size as reported, and stands in the
// block; each thread writes down the serials of what it freed, in order. check_pairs then compares
// what the trace pairs with what really happened.
//
//   pass_around AGENT OUTPUT PASSES     writes OUTPUT/freed-<tid>.bin and the trace
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

enum State : int { kFree, kTaking, kHeld, kFreeing };

std::atomic<int> state = kFree;
std::atomic<int> holder = -1;
std::atomic<uint64_t> passes_left;
uint64_t block;            // the memory passed around; holds its serial
uint64_t next_serial = 1;  // written by who is in kTaking only

void pass(int self, std::vector<uint64_t>& freed) {
  for (int idle = 0;;) {
    int expected = kFree;
    if (state.compare_exchange_strong(expected, kTaking)) {
      if (passes_left.load() == 0) {
        state = kFree;
        return;
      }
      passes_left.fetch_sub(1);
      const uint64_t serial = next_serial++;
      fake_c10_new(&block, serial);
      block = serial;
      holder = self;
      state = kHeld;
      idle = 0;
      continue;
    }
    expected = kHeld;
    // Given back by another thread than took it, unless the others do not come to run.
    if ((holder.load() != self || idle > 2000) &&
        state.compare_exchange_strong(expected, kFreeing)) {
      freed.push_back(block);
      fake_c10_delete(&block);
      state = kFree;
      idle = 0;
      continue;
    }
    if (++idle % 64 == 0) std::this_thread::yield();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  passes_left = std::strtoull(argv[3], nullptr, 10);
  if (agent.start() != 0) return 3;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int self = 0; self < 4; ++self) {
    threads.emplace_back([self, output = std::string(argv[2])] {
      std::vector<uint64_t> freed;
      pass(self, freed);
      std::filesystem::create_directories(output);
      std::ofstream file(output + "/freed-" + std::to_string(syscall(SYS_gettid)) + ".bin",
                         std::ios::binary);
      file.write(reinterpret_cast<const char*>(freed.data()),
                 static_cast<std::streamsize>(freed.size() * sizeof(uint64_t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  agent.exiting();
  return 0;
}
