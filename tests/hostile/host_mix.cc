// Threads that allocate in every way there is and count it themselves, bytes and blocks:
//
//   host_mix AGENT OUTPUT THREADS ROUNDS
//
// The counts are of what is done between start() and stop(): nothing else allocates there. Prints
// the agent's status and, on a line of its own, {"allocs":..,"frees":..} as counted here; what is
// alive at the end goes to OUTPUT/live.txt, for check_live.
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "agent_loader.h"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kKept = 64;

std::atomic<uint64_t> allocs{0}, frees{0};

struct Block {
  void* at = nullptr;
  size_t size = 0;
  bool mapped = false;
};

struct Work {
  uint64_t random = 0;
  long rounds = 0;
  Block kept[kKept];
  uint64_t allocs = 0, frees = 0;

  uint64_t next() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
  }

  void drop(Block& block) {
    if (block.at == nullptr) return;
    if (block.mapped) {
      munmap(block.at, block.size);
    } else {
      free(block.at);
    }
    ++frees;
    block = {};
  }

  void fill(Block& block) {
    size_t size = 1 + next() % 3000;
    void* at = nullptr;
    bool mapped = false;
    switch (next() % 9) {
      case 0:
        at = malloc(size);
        break;
      case 1:
        size = size / 8 * 8 + 8;
        at = calloc(size / 8, 8);
        break;
      case 2:
        if (posix_memalign(&at, 64, size) != 0) abort();
        break;
      case 3:
        at = memalign(128, size);
        break;
      case 4:
        size = (size + 63) / 64 * 64;
        at = aligned_alloc(64, size);
        break;
      case 5:
        at = valloc(size);
        break;
      case 6:
        at = realloc(nullptr, size);
        break;
      case 7:
        at = reallocarray(nullptr, size, 1);
        break;
      default:
        size = kPage * (1 + next() % 4);
        at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) abort();
        mapped = true;
    }
    if (at == nullptr) abort();
    memset(at, 1, size);
    ++allocs;
    block = {at, size, mapped};
  }

  void grow(Block& block) {
    const size_t size = 1 + next() % 6000;
    if (block.at == nullptr || block.mapped) return;
    void* at = realloc(block.at, size);
    if (at == nullptr) abort();
    ++allocs;
    ++frees;
    block = {at, size, false};
  }

  // The middle page of five is given back, then the first, then what is left: in one call over the
  // holes only while no other thread can have been given them.
  void cut(bool alone) {
    char* at = static_cast<char*>(
        mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at == MAP_FAILED) abort();
    allocs += 1;
    munmap(at + 2 * kPage, kPage);  // one block dies, two stay
    frees += 1;
    allocs += 2;
    munmap(at, kPage);  // the first of the two, of which a page stays
    frees += 1;
    allocs += 1;
    if (alone) {
      munmap(at, 5 * kPage);  // both, and the holes between them
    } else {
      munmap(at + kPage, kPage);
      munmap(at + 3 * kPage, 2 * kPage);
    }
    frees += 2;
  }

  // What fails leaves everything as it was: an undone free, no alloc. Counted as a free that is
  // recorded, and taken back.
  void fail() {
    void* at = malloc(100);
    ++allocs;
    volatile size_t too_much = SIZE_MAX / 2;
    if (realloc(at, too_much) != nullptr) abort();
    ++frees;
    if (munmap(static_cast<char*>(at) + 1, kPage) == 0) abort();  // not a page's address
    free(at);
    ++frees;
  }

  void run() {
    for (long i = 0; i < rounds; ++i) {
      Block& block = kept[next() % kKept];
      if (next() % 4 == 0) {
        grow(block);
      } else {
        drop(block);
        fill(block);
      }
      if (i % 1000 == 0) cut(false);
      if (i % 1000 == 500) fail();
    }
    ::allocs += allocs;
    ::frees += frees;
  }
};

void* run(void* work) {
  static_cast<Work*>(work)->run();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  if (agent.configure("device", "host") != 0) return 3;
  const long threads = strtol(argv[3], nullptr, 10), rounds = strtol(argv[4], nullptr, 10);
  if (agent.start() != 0) return 3;
  // Makes the trace: below its threshold there are seeds, and no events.
  void* large = malloc(size_t{32} << 20);
  memset(large, 1, size_t{32} << 20);
  static Work work[64];
  static pthread_t ids[64];
  work[0].cut(true);
  for (long i = 0; i < threads; ++i) {
    work[i].random = 88172645463325252u + static_cast<uint64_t>(i) * 2685821657736338717u;
    work[i].rounds = rounds;
    pthread_create(&ids[i], nullptr, run, &work[i]);
  }
  for (long i = 0; i < threads; ++i) pthread_join(ids[i], nullptr);
  if (agent.stop() != 0) return 3;
  std::puts(agent_status(agent).c_str());
  std::printf("{\"allocs\":%" PRIu64 ",\"frees\":%" PRIu64 "}\n", allocs.load() + 1, frees.load());
  std::ofstream file(std::string(argv[2]) + "/live.txt");
  file << reinterpret_cast<uint64_t>(large) << ' ' << (size_t{32} << 20) << '\n';
  for (const Work& each : work) {
    for (const Block& block : each.kept) {
      if (block.at == nullptr) continue;
      file << reinterpret_cast<uint64_t>(block.at) << ' ' << block.size << '\n';
    }
  }
  agent.exiting();
  return 0;
}
