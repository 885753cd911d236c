// A malloc inside a tensor's event, and a tensor on malloc's memory:
//
//   host_nested AGENT OUTPUT
#include <cstdlib>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

void* volatile sink;
void* nested = nullptr;

void allocate() {
  nested = std::malloc(5001);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  if (agent.configure("device", "auto,host") != 0 || agent.start() != 0) return 3;
  sink = std::malloc(size_t{32} << 20);  // makes the trace
  void* large = sink;
  void* memory = std::malloc(6001);
  fake_c10_inside(allocate);
  fake_c10_new(memory, 6000);
  fake_c10_delete(memory);
  std::free(memory);
  std::free(nested);
  std::free(large);
  if (agent.stop() != 0) return 3;
  agent.exiting();
  return 0;
}
