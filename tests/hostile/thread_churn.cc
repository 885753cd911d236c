// Threads that are born, make a tensor, free it and die, many more than there are lanes: first
// while nothing is recorded, when the agent has no thread of its own, then in a recording.
//
//   thread_churn AGENT OUTPUT THREADS     prints the agent's status
#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

constexpr long kAtOnce = 4;

void churn(long threads) {
  static char memory[kAtOnce];
  for (long born = 0; born < threads; born += kAtOnce) {
    std::vector<std::thread> alive;
    for (long i = 0; i < std::min(kAtOnce, threads - born); ++i) {
      alive.emplace_back([i] {
        fake_c10_new(&memory[i], 64);
        fake_c10_delete(&memory[i]);
      });
    }
    for (std::thread& thread : alive) thread.join();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  const long threads = std::strtol(argv[3], nullptr, 10);
  churn(threads);
  if (agent.start() != 0) return 3;
  churn(threads);
  if (agent.stop() != 0) return 3;
  std::puts(agent_status(agent).c_str());
  agent.exiting();
  return 0;
}
