// Ends in every way a program can, after 1,000 allocations and 500 frees through the stand-in for
// libc10. Knows nothing of the agent: run alone and under the command, it must look the same.
//
//   endings HOW
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "fake_c10.h"

namespace {

char blocks[2000];

void allocate_and_free() {
  for (int i = 0; i < 1000; ++i) fake_c10_new(&blocks[i], 100 + static_cast<size_t>(i));
  for (int i = 0; i < 500; ++i) fake_c10_delete(&blocks[2 * i]);
}

// Not a tail call, and without an end that anybody could foresee.
volatile int last_depth = -1;
int overflow(int depth) {
  volatile char frame[1000];
  frame[0] = static_cast<char>(depth);
  return depth == last_depth ? 0 : overflow(depth + 1) + frame[0];
}

void on_segv_in_vain(int) {
  _exit(42);  // on the thread's own stack there is no room for it
}

void on_segv(int) {
  constexpr char kText[] = "handled\n";
  (void)!write(STDOUT_FILENO, kText, sizeof(kText) - 1);
  _exit(3);
}

void overflow_handled() {
  static char stack[64 << 10];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_segv;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  overflow(0);
}

// Allocations after main() and after everybody's exit functions: nobody needs to see them.
struct Late {
  ~Late() {
    fake_c10_new(&blocks[1500], 1);
    std::puts("late");
  }
};

std::atomic<int> allocating = 0;

[[noreturn]] void keep_allocating(int at) {
  for (bool first = true;; first = false) {
    fake_c10_new(&blocks[at], 64);
    fake_c10_delete(&blocks[at]);
    if (first) ++allocating;
  }
}

const std::map<std::string, void (*)()> kEndings = {
    {"return", [] {}},
    {"exit", [] { std::exit(3); }},
    {"_exit", [] { _exit(4); }},
    {"quick_exit", [] { std::quick_exit(5); }},
    {"abort", [] { std::abort(); }},
    {"uncaught", [] { throw std::runtime_error("nobody catches this"); }},
    {"terminate", [] { std::terminate(); }},
    {"segv", [] { raise(SIGSEGV); }},
    {"term", [] { raise(SIGTERM); }},
    {"kill", [] { raise(SIGKILL); }},
    {"stack overflow", [] { overflow(0); }},
    {"stack overflow, a handler without a stack",
     [] {
       signal(SIGSEGV, on_segv_in_vain);
       overflow(0);
     }},
    {"stack overflow, handled", overflow_handled},
    {"exit by a thread", [] { std::thread([] { std::exit(6); }).join(); }},
    {"exit while others allocate",
     [] {
       for (int i = 0; i < 4; ++i) std::thread(keep_allocating, 1600 + i).detach();
       while (allocating < 4) usleep(100);
       std::exit(7);
     }},
    {"main thread first",
     [] {
       std::thread([] {
         usleep(20'000);
         std::puts("the other thread");
       }).detach();
       pthread_exit(nullptr);
     }},
    {"allocate at exit",
     [] {
       std::atexit([] { fake_c10_new(&blocks[1501], 1); });
       std::exit(8);
     }},
    {"late", [] { static Late late; }},
    {"exit in an exit function",
     [] {
       std::atexit([] { _exit(9); });
       std::exit(1);
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto ending = kEndings.find(argc == 2 ? argv[1] : "");
  if (ending == kEndings.end()) return 2;
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  allocate_and_free();
  std::puts("ending");
  std::fflush(stdout);
  ending->second();
  return 0;
}
