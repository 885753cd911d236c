// The one library whose RUNPATH leads to libhidden_plugin.so: the loader must take the look-up for
// its own, not for the agent's or the program's.
#include <dlfcn.h>

#include <cstddef>

extern "C" __attribute__((visibility("default"))) int load_by_runpath(char* block) {
  void* library = dlopen("libhidden_plugin.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return -1;
  const auto work = reinterpret_cast<int (*)(void*, size_t)>(dlsym(library, "storm_work"));
  return work == nullptr ? -2 : work(block, 64);
}
