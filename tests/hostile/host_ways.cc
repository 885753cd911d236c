// Every way there is to get and give back host memory, one after the other, by one thread, each
// with a size of its own; and the calls that fail. test_host.py has the events that must come of
// it.
//
//   host_ways AGENT OUTPUT
//
// Exits with the line of the first call that did not do what it does without the agent.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "agent_loader.h"

#ifndef __cpp_sized_deallocation  // clang declares it only when told to
void operator delete(void* block, size_t size) noexcept;
#endif

namespace {

constexpr size_t kPage = 4096;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS;

// The compiler must not take a malloc and its free away, nor see a size that cannot be had.
void* volatile sink;
volatile size_t too_much = SIZE_MAX / 2;

#define CHECK(condition) \
  if (!(condition)) _exit(__LINE__ & 0x7f)

void* shown(void* block) {
  sink = block;
  CHECK(sink != nullptr);
  return sink;
}

// Whoever takes its address has malloc in his own hash table, among what he exports.
void* (*volatile taken)(size_t) = &malloc;

void mallocs() {
  errno = 0;
  CHECK(taken != nullptr);
  free(shown(malloc(1001)));
  free(shown(calloc(3, 501)));
  free(shown(malloc(0)));
  free(nullptr);
  CHECK(errno == 0);
  CHECK(malloc(too_much) == nullptr && errno == ENOMEM);
  CHECK(calloc(too_much, 8) == nullptr && errno == ENOMEM);
}

void aligned() {
  void* block = nullptr;
  CHECK(posix_memalign(&block, 64, 3001) == 0);
  CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
  free(shown(block));
  CHECK(posix_memalign(&block, 3, 3001) == EINVAL);
  free(shown(aligned_alloc(64, 3072)));
  free(shown(memalign(128, 3003)));
  free(shown(valloc(3004)));
  // An allocator that lacks it (jemalloc) must not be given glibc's block.
  Dl_info of_malloc{}, of_pvalloc{};
  CHECK(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc) != 0);
  CHECK(dladdr(dlsym(RTLD_DEFAULT, "pvalloc"), &of_pvalloc) != 0);
  if (of_malloc.dli_fbase == of_pvalloc.dli_fbase) free(shown(pvalloc(3005)));
}

void resized() {
  void* block = shown(realloc(nullptr, 2001));
  block = shown(realloc(block, 2002));
  CHECK(realloc(block, too_much) == nullptr);  // without errno by jemalloc 5.3
  static_cast<char*>(block)[2001] = 1;
  free(block);
  block = shown(reallocarray(nullptr, 7, 300));
  CHECK(reallocarray(block, too_much, 3) == nullptr && errno == ENOMEM);
  sink = realloc(block, 0);
  free(sink);
}

void operators() {
  ::operator delete(shown(::operator new(4001)));
  ::operator delete (shown(::operator new(4002)), size_t{4002});
  ::operator delete[](shown(::operator new[](4003)));
  const std::align_val_t align{64};
  ::operator delete(shown(::operator new(4032, align)), align);
  ::operator delete(shown(::operator new(4005, std::nothrow)), std::nothrow);
  CHECK(::operator new(too_much, std::nothrow) == nullptr);
  bool thrown = false;
  try {
    sink = ::operator new(too_much);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
}

char* map(size_t pages, int flags = kOwn, void* at = nullptr, int protection = kReadWrite) {
  void* mapping = mmap(at, pages * kPage, protection, flags, -1, 0);
  CHECK(mapping != MAP_FAILED);
  return static_cast<char*>(mapping);
}

void unmap(char* at, size_t pages) {
  CHECK(munmap(at, pages * kPage) == 0);
}

void mappings() {
  char* at = map(5);
  unmap(at + 2 * kPage, 1);                                       // a hole
  unmap(at, 1);                                                   // the head of the first part
  CHECK(munmap(at + kPage + 1, kPage) == -1 && errno == EINVAL);  // no page's address
  unmap(at, 5);                                                   // both parts, over the holes
  at = map(6);
  CHECK(map(2, kOwn | MAP_FIXED, at + 2 * kPage) == at + 2 * kPage);  // over its middle
  unmap(at, 6);
  unmap(map(7, kOwn, nullptr, PROT_NONE), 7);  // only a reservation
  unmap(map(8, kOwn | MAP_NORESERVE), 8);      // another
  const int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  void* of_file = mmap(nullptr, 9 * kPage, PROT_READ, MAP_PRIVATE, file, 0);
  CHECK(of_file != MAP_FAILED && close(file) == 0);
  unmap(static_cast<char*>(of_file), 9);
  CHECK(mmap(nullptr, 0, kReadWrite, kOwn, -1, 0) == MAP_FAILED && errno == EINVAL);
}

void remapped() {
  char* at = map(3);
  void* moved = mremap(at, 3 * kPage, 700 * kPage, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED);
  at = static_cast<char*>(moved);
  CHECK(mremap(at + 1, kPage, 2 * kPage, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
  CHECK(mremap(at, 700 * kPage, 2 * kPage, 0) == at);  // shrunk in its place
  char* other = map(10);
  moved = mremap(at, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, other);
  CHECK(moved == other);  // over the head of another
  unmap(other, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  if (agent.configure("device", "host") != 0 || agent.start() != 0) return 3;
  // Makes the trace: below its threshold there are seeds, and no events.
  void* large = shown(malloc(size_t{32} << 20));
  mallocs();
  aligned();
  resized();
  operators();
  mappings();
  remapped();
  free(large);
  if (agent.stop() != 0) return 3;
  agent.exiting();
  return 0;
}
