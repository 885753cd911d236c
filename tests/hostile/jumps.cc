// Leaves the allocator in unusual ways, or enters it from unusual places, and goes on allocating:
// what is recorded must be what happened. Prints "allocs N frees N", what the trace must hold.
//
//   jumps HOW
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "fake_c10.h"

namespace {

constexpr int kRounds = 1000;
char blocks[4 * kRounds];
int allocs = 0, frees = 0;

void allocate(int at) {
  fake_c10_new(&blocks[at], 64);
  ++allocs;
}
void free_block(int at) {
  fake_c10_delete(&blocks[at]);
  ++frees;
}
void one_of_each(int at) {
  allocate(at);
  free_block(at);
}

// An allocation that threw has made no block.
void exceptions() {
  for (int i = 0; i < kRounds; ++i) {
    fake_c10_inside([] { throw std::bad_alloc(); });
    try {
      fake_c10_new(&blocks[i], 64);
      std::puts("not thrown");
    } catch (const std::bad_alloc&) {
    }
    one_of_each(i);
  }
}

// The hook's frame is dropped without being unwound, deeper and deeper down; the program goes on
// from less deep.
jmp_buf home;
void allocate_below(int depth) {
  char frame[200];
  asm volatile("" ::"r"(frame) : "memory");  // keeps it, and the call below from being the last
  if (depth > 0) {
    allocate_below(depth - 1);
  } else {
    fake_c10_new(&blocks[0], 64);
  }
  asm volatile("" ::"r"(frame) : "memory");
}
void longjmps() {
  for (static int i = 0; i < kRounds; ++i) {
    fake_c10_inside([] { longjmp(home, 1); });
    if (setjmp(home) == 0) {
      allocate_below(i % 50);
      std::puts("not jumped");
    }
    one_of_each(1);
  }
}

// A signal handler that allocates, at any moment: outside of the allocator, and inside of it, where
// its events belong to the outer one. Its blocks are its own, and not counted here.
void on_alarm(int) {
  fake_c10_new(&blocks[2 * kRounds], 8);
  fake_c10_delete(&blocks[2 * kRounds]);
}
void handle_signals(int flags) {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART | flags;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 100}, {0, 100}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 500 * kRounds; ++i) one_of_each(i % kRounds);
  setitimer(ITIMER_REAL, &never, nullptr);
}
void signals() {
  handle_signals(0);
}
void signals_on_another_stack() {
  static char stack[64 << 10];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  sigaltstack(&alternative, nullptr);
  handle_signals(SA_ONSTACK);
}

// Coroutines with stacks of their own, that take turns between an allocation and its free.
constexpr int kCoroutines = 8, kTurns = 200;
ucontext_t scheduler, coroutines[kCoroutines];
int running;
void coroutine(int self) {
  for (int i = 0; i < kTurns; i += 2) {
    allocate(self);
    swapcontext(&coroutines[self], &scheduler);
    free_block(self);
    swapcontext(&coroutines[self], &scheduler);
  }
}
void make_coroutine(int self, char* stack, size_t size) {
  ucontext_t& context = coroutines[self];
  getcontext(&context);
  context.uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = size};
  context.uc_link = &scheduler;
  makecontext(&context, reinterpret_cast<void (*)()>(coroutine), 1, self);
}
void take_turns() {
  static char stacks[kCoroutines][64 << 10];
  for (int i = 0; i < kCoroutines; ++i) make_coroutine(i, stacks[i], sizeof(stacks[i]));
  for (int turn = 0; turn <= kTurns; ++turn) {
    for (running = 0; running < kCoroutines; ++running) {
      swapcontext(&scheduler, &coroutines[running]);
    }
  }
}

// Recursion: the allocator allocates for itself. The inner block is part of the outer one.
void allocator_that_allocates() {
  for (int i = 0; i < kRounds; ++i) {
    fake_c10_inside([] { fake_c10_new(&blocks[3 * kRounds], 8); });
    one_of_each(i);
  }
}

// A thread that ends inside the allocator: pthread_exit unwinds through the hook.
void threads_that_end_inside() {
  for (int i = 0; i < 300; ++i) {
    std::thread([] {
      one_of_each(0);
      fake_c10_inside([] { pthread_exit(nullptr); });
      fake_c10_new(&blocks[1], 64);
      std::puts("not ended");
    }).join();
  }
}

const std::map<std::string, void (*)()> kWays = {
    {"exceptions", exceptions},
    {"longjmps", longjmps},
    {"signals", signals},
    {"signals on another stack", signals_on_another_stack},
    {"coroutines", take_turns},
    {"an allocator that allocates", allocator_that_allocates},
    {"threads that end inside", threads_that_end_inside},
};

}  // namespace

int main(int argc, char** argv) {
  const auto way = kWays.find(argc == 2 ? argv[1] : "");
  if (way == kWays.end()) return 2;
  allocate(0);
  free_block(0);
  way->second();
  std::fprintf(stdout, "allocs %d frees %d\n", allocs, frees);
  return 0;
}
