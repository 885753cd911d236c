// An independent count of the events whose hook has returned: wraps the agent's own hooks in
// libc10's GOT slots and adds one to a counter in a shared file after each return. Loaded by
// kill_run.py after the agent is in; what it counts must be in the trace or among its drops,
// whenever the process is killed.
//
//   int count_hooks_install(const char* counter_file)    0 = both slots are wrapped
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

struct Counters {
  std::atomic<uint64_t> allocs, frees;
};
Counters* counters;

using New = void (*)(void*, void*, size_t);
using Delete = void (*)(void*, void*);
New agent_new;
Delete agent_delete;

void counted_new(void* self, void* block, size_t bytes) {
  agent_new(self, block, bytes);
  if (bytes != 0) counters->allocs.fetch_add(1, std::memory_order_relaxed);
}

void counted_delete(void* self, void* block) {
  agent_delete(self, block);
  counters->frees.fetch_add(1, std::memory_order_relaxed);
}

bool replace(uintptr_t slot, void* with, void** before) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* start = reinterpret_cast<void*>(slot & ~(page - 1));
  if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return false;
  auto* place = reinterpret_cast<std::atomic<void*>*>(slot);
  *before = place->load();
  place->store(with);
  return true;
}

int wrap_in(dl_phdr_info* object, size_t, void*) {
  if (std::strstr(object->dlpi_name, "libc10.so") == nullptr) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic =
          reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    }
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* relocations = nullptr;
  size_t count = 0;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto address = dynamic->d_un.d_ptr;  // glibc has relocated it on x86-64
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (dynamic->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    if (dynamic->d_tag == DT_JMPREL) relocations = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_PLTRELSZ) count = dynamic->d_un.d_val / sizeof(ElfW(Rela));
  }
  if (symbols == nullptr || names == nullptr || relocations == nullptr) return 1;
  for (size_t i = 0; i < count; ++i) {
    const char* name = names + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name;
    const uintptr_t slot = object->dlpi_addr + relocations[i].r_offset;
    if (std::strcmp(name, "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm") == 0) {
      replace(slot, reinterpret_cast<void*>(counted_new), reinterpret_cast<void**>(&agent_new));
    } else if (std::strcmp(name, "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv") == 0) {
      replace(slot, reinterpret_cast<void*>(counted_delete),
              reinterpret_cast<void**>(&agent_delete));
    }
  }
  return 1;
}

}  // namespace

extern "C" int count_hooks_install(const char* counter_file) {
  const int fd = open(counter_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Counters)) != 0) return 1;
  void* memory = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return 1;
  counters = static_cast<Counters*>(memory);
  dl_iterate_phdr(wrap_in, nullptr);
  return agent_new != nullptr && agent_delete != nullptr ? 0 : 1;
}
