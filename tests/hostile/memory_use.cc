// What the agent takes of a process's memory: prints as JSON the private kilobytes (smaps_rollup)
// before it is loaded, once it has a trace and has compressed some of it, and with more and more
// live blocks; and the slab's mapped ones, which are not among the others.
//
//   memory_use AGENT OUTPUT BYTES_APART COUNT...
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "agent_loader.h"
#include "fake_c10.h"

namespace {

// Sums the lines of `path` that tell of private pages, of the mapping `only` or of all.
long private_kilobytes(const char* path, const char* only) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return -1;
  static char line[8192];
  bool wanted = only == nullptr;
  long sum = 0, kilobytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    unsigned long from, to;
    if (only != nullptr && std::sscanf(line, "%lx-%lx ", &from, &to) == 2) {
      wanted = std::strstr(line, only) != nullptr;
    }
    if (wanted && (std::sscanf(line, "Private_Clean: %ld", &kilobytes) == 1 ||
                   std::sscanf(line, "Private_Dirty: %ld", &kilobytes) == 1)) {
      sum += kilobytes;
    }
  }
  std::fclose(file);
  return sum;
}

long slab_kilobytes() {
  return private_kilobytes("/proc/self/smaps", "hot.slab");
}

long other_kilobytes() {
  return private_kilobytes("/proc/self/smaps_rollup", nullptr) - slab_kilobytes();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const size_t apart = std::strtoul(argv[3], nullptr, 10);
  const size_t most = std::strtoul(argv[argc - 1], nullptr, 10);
  // Only addresses: the pages are never touched.
  auto* places = static_cast<char*>(mmap(nullptr, apart * (most + 1), PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (places == MAP_FAILED) return 2;
  const long before = other_kilobytes();
  const msmemscope_agent_v1& agent = load_agent(argv[1], argv[2]);
  if (agent.start() != 0) return 3;
  for (size_t i = 0; i < 400'000; ++i) {
    fake_c10_new(places, 64);
    fake_c10_delete(places);
    if (i % 4096 == 0) usleep(500);
  }
  usleep(500'000);  // the agent's thread has touched the slab and compressed what was full
  const long slab = slab_kilobytes();
  const long traced = other_kilobytes();
  std::printf("{\"before\": %ld, \"traced\": %ld, \"slab\": %ld, \"blocks\": [", before, traced,
              slab);
  size_t made = 0;
  for (int i = 4; i < argc; ++i) {
    for (const size_t count = std::strtoul(argv[i], nullptr, 10); made < count;) {
      fake_c10_new(places + apart * ++made, 64);
      if (made % 4096 == 0) usleep(500);
    }
    usleep(100'000);
    std::printf("%s[%zu, %ld]", i == 4 ? "" : ", ", made, other_kilobytes() - traced);
  }
  if (agent.exiting() != 0) return 4;
  std::printf("], \"slab_at_end\": %ld}\n", slab_kilobytes());
  return 0;
}
