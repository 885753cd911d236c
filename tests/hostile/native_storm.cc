// Native stacks are walked by many threads while libraries take each other's place. Arguments:
// agent, output directory, plug-in, rounds, threads.
//
// Two loading threads have two copies of the plug-in each, which they load and unload by turns, so
// that one comes to lie where the other was. Copy i allocates blocks of 4000 + i bytes, the other
// threads of 64: so the trace tells of each stack which library must be in it, and which must not.
// Ends through exit(), with the trace left behind.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

std::atomic<bool> stop{false};
std::atomic<int> wrong{0};

void load_by_turns(const std::string& directory, int first, int rounds) {
  char block[64];
  for (int i = 0; i < rounds; ++i) {
    const int copy = first + i % 2;
    const std::string path = directory + "/plugin" + std::to_string(copy) + ".so";
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      ++wrong;
      return;
    }
    const auto work = reinterpret_cast<int (*)(void*, size_t)>(dlsym(handle, "storm_work"));
    work(block, static_cast<size_t>(4000 + copy));
    dlclose(handle);
  }
}

__attribute__((noinline)) void deep(int depth, char* block) {
  if (depth > 0) {
    deep(depth - 1, block);
  } else {
    fake_c10_new(block, 64);
    fake_c10_delete(block);
  }
  asm volatile("" ::: "memory");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  for (int i = 0; i < 4; ++i) {
    std::filesystem::copy_file(argv[3],
                               std::string(argv[2]) + "/plugin" + std::to_string(i) + ".so");
  }
  if (agent.configure("call_stack", "c:100") != 0 || agent.start() != 0) return 3;
  const int rounds = std::atoi(argv[4]);
  std::vector<std::thread> walkers, loaders;
  for (int i = 0; i < std::atoi(argv[5]); ++i) {
    walkers.emplace_back([i] {
      char block[64];
      while (!stop) {
        deep(i, block);
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 2; ++i) loaders.emplace_back(load_by_turns, argv[2], 2 * i, rounds);
  for (std::thread& thread : loaders) thread.join();
  stop = true;
  for (std::thread& thread : walkers) thread.join();
  agent.stop();
  std::printf("%s\n", agent_status(agent).c_str());
  return wrong == 0 ? 0 : 1;
}
