// A job of very many steps: temporaries in each, a block that stays in every 64th. Prints as JSON
// what the trace must say of it, and the peak of its resident memory. Fails where somebody else's
// child came to its notice.
//
//   many_steps AGENT OUTPUT COMMAND BUDGET STEPS STEPS_A_SECOND
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

constexpr uint32_t kStepApi = 1;
constexpr size_t kPlaces = size_t{1} << 24;  // addresses, never touched
char places[kPlaces];

volatile sig_atomic_t children_that_ended = 0;

bool has_no_child() {
  return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD && children_that_ended == 0;
}

// Of this program alone: getrusage() remembers what was there before the exec.
long peak_kilobytes() {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  char line[256];
  long kilobytes = -1;
  while (file != nullptr && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "VmHWM: %ld", &kilobytes) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return kilobytes;
}

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  const uint64_t steps = std::strtoull(argv[5], nullptr, 10);
  const uint64_t rate = std::strtoull(argv[6], nullptr, 10);
  if (agent.configure("command", argv[3]) != 0 || agent.configure("max_trace_size", argv[4]) != 0 ||
      agent.start() != 0) {
    std::fprintf(stderr, "%s\n", agent.last_error());
    return 3;
  }
  struct sigaction action {};
  action.sa_handler = [](int) { children_that_ended = children_that_ended + 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &action, nullptr);
  std::mt19937_64 random(1);
  const uint64_t begin = now_ns();
  uint64_t live_bytes = 0, live_blocks = 0, events = 0;
  size_t next = 0;
  for (uint64_t step = 1; step <= steps; ++step) {
    char* temporaries[3];
    for (size_t i = 0; i < 3; ++i) {  // each in a region of its own
      temporaries[i] = places + (i + 1) * (kPlaces / 4) + random() % (kPlaces / 32) * 8;
      fake_c10_new(temporaries[i], 64 + random() % 4096);
    }
    if (step % 64 == 0) {
      const size_t bytes = 1024;
      fake_c10_new(places + 8 * next++, bytes);
      live_bytes += bytes;
      ++live_blocks;
      ++events;
    }
    for (char* temporary : temporaries) fake_c10_delete(temporary);
    events += 6;
    agent.step(kStepApi, step, 0, nullptr);
    // No faster than can be folded: nothing may be dropped.
    const uint64_t due = begin + step * 1'000'000 / rate * 1'000;
    if (step % 256 == 0) {
      if (!has_no_child()) return 5;
      for (uint64_t now = now_ns(); now < due; now = now_ns()) usleep((due - now) / 1000 + 1);
    }
  }
  if (agent.exiting() != 0) return 4;
  if (!has_no_child()) return 5;
  std::printf(
      "{\"steps\": %llu, \"live_bytes\": %llu, \"live_blocks\": %llu, \"events\": %llu, "
      "\"peak_kilobytes\": %ld}\n",
      static_cast<unsigned long long>(steps), static_cast<unsigned long long>(live_bytes),
      static_cast<unsigned long long>(live_blocks), static_cast<unsigned long long>(events),
      peak_kilobytes());
  return 0;
}
