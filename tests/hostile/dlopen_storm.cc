// Objects come and go, and with them the slots that the agent patched, while threads allocate,
// throw, fork, refresh, start and stop. Arguments: agent, output directory, plug-in, rounds,
// threads that allocate.
//
// Each of the loading threads works on a copy of the plug-in of its own, so that every round really
// maps and unmaps it. Prints the agent's status after shutdown(); exit 1 if anything went wrong.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

constexpr int kLoaders = 2;
std::atomic<int> wrong{0};
std::atomic<bool> stop{false};

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  ++wrong;
}

void load_and_unload(const std::string& plugin, int rounds) {
  char block[64];
  for (int i = 0; i < rounds; ++i) {
    void* handle = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return fail(dlerror());
    const auto work = reinterpret_cast<int (*)(void*, size_t)>(dlsym(handle, "storm_work"));
    if (work == nullptr || work(block, 64) != 1) return fail("the plug-in does not work");
    dlclose(handle);
  }
}

// Many of them must leave the others some time.
void allocate(bool resting) {
  char block[64];
  for (unsigned i = 1; !stop; ++i) {
    fake_c10_new(block, 64);
    fake_c10_delete(block);
    if (resting && i % 64 == 0) usleep(2000);
  }
}

// Unwinding walks the loader's list of objects too.
void throw_and_catch() {
  while (!stop) {
    try {
      throw std::runtime_error("storm");
    } catch (const std::runtime_error&) {
    }
  }
}

// The child records, as it would after os.fork(), and leaves without a word.
void fork_now_and_then() {
  for (int i = 0; i < 40 && !stop; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      char block[64];
      fake_c10_new(block, 64);
      fake_c10_delete(block);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) fail("no child");
    if (status != 0) fail(("a child ended with status " + std::to_string(status)).c_str());
    usleep(2000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  const int rounds = std::atoi(argv[4]), allocators = std::atoi(argv[5]);
  std::vector<std::thread> loaders, others;
  for (int i = 0; i < kLoaders; ++i) {
    const std::string copy = std::string(argv[2]) + "/plugin" + std::to_string(i) + ".so";
    std::filesystem::copy_file(argv[3], copy);
    loaders.emplace_back(load_and_unload, copy, rounds);
  }
  for (int i = 0; i < allocators; ++i) others.emplace_back(allocate, allocators > 1);
  others.emplace_back(throw_and_catch);
  others.emplace_back(fork_now_and_then);
  others.emplace_back([&] {
    while (!stop) {
      if (agent.refresh() != 0 || agent.start() != 0 || agent.stop() != 0) fail("agent");
    }
  });
  for (std::thread& thread : loaders) thread.join();
  stop = true;
  for (std::thread& thread : others) thread.join();
  agent.shutdown();
  std::printf("%s\n", agent_status(agent).c_str());
  return wrong == 0 ? 0 : 1;
}
