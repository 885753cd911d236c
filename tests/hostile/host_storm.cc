// What programs do that is hard on who watches their malloc. Prints the same with and without the
// agent; test_host.py runs it both ways.
//
//   host_storm signal          a timer's handler allocates, whatever the thread is at
//   host_storm fork            children that allocate, of a process whose threads do
//   host_storm plugin LIBRARY  a library that allocates in its constructor comes and goes
//   host_storm hold MIB        MIB MiB of one MiB each, until the end
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
void* volatile sink;

void* touched(size_t size) {
  void* block = malloc(size);
  if (block == nullptr) abort();
  memset(block, 1, size);
  return block;
}

// -- signal --

volatile sig_atomic_t in_malloc = 0;
std::atomic<int> handled{0}, allocated{0};

// mmap may be called from anywhere; malloc only where the thread is not inside it.
void on_timer(int) {
  void* mapping = mmap(nullptr, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) _exit(9);
  static_cast<char*>(mapping)[5000] = 1;
  munmap(mapping, 12288);
  if (in_malloc == 0) {
    free(touched(333));
    allocated.fetch_add(1);
  }
  handled.fetch_add(1);
}

int signals() {
  struct sigaction action = {};
  action.sa_handler = on_timer;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  in_malloc = 1;
  sink = touched(20 * kMiB);
  in_malloc = 0;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 200'000 || handled < 200 || allocated < 20; ++i) {
    in_malloc = 1;
    sink = malloc(16 + i % 1000);  // or the compiler sees that nobody needs it
    auto* block = static_cast<unsigned char*>(sink);
    in_malloc = 0;
    block[15] = static_cast<unsigned char>(i);
    if (i < 200'000) sum += block[15];
    in_malloc = 1;
    free(block);
    in_malloc = 0;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  printf("sum %llu\n", static_cast<unsigned long long>(sum));
  return 0;
}

// -- fork --

std::atomic<bool> enough{false};

// Not so fast that a busy machine has no time to write it all down: nothing shall be dropped.
void* churn(void*) {
  void* kept[32] = {};
  for (uint64_t i = 0; !enough.load(); ++i) {
    if (i % 100 == 0) usleep(1000);
    free(kept[i % 32]);
    kept[i % 32] = malloc(64 + i % 2000);
  }
  for (void* block : kept) free(block);
  return nullptr;
}

int forks() {
  pthread_t threads[3];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, churn, nullptr);
  sink = touched(20 * kMiB);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      // Every second one holds enough for a trace of its own.
      for (int block = 0; block < (i % 2 == 0 ? 24 : 4); ++block) sink = touched(kMiB);
      _exit(i);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d ", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  enough = true;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  printf("\n");
  return 0;
}

// -- plugin --

int plugin(const char* path) {
  pthread_t threads[2];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, churn, nullptr);
  sink = touched(20 * kMiB);
  size_t sum = 0;
  for (int i = 0; i < 200; ++i) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 4;
    using Work = size_t (*)();
    sum += reinterpret_cast<Work>(dlsym(library, "host_plugin_work"))();
    dlclose(library);
  }
  enough = true;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  printf("sum %zu\n", sum);
  return 0;
}

int hold(size_t count) {
  for (size_t i = 0; i < count; ++i) sink = malloc(kMiB);
  printf("held %zu\n", count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "signal") return signals();
  if (mode == "fork") return forks();
  if (mode == "plugin" && argc > 2) return plugin(argv[2]);
  if (mode == "hold" && argc > 2) return hold(strtoul(argv[2], nullptr, 10));
  return 2;
}
