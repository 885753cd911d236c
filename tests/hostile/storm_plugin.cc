// What dlopen_storm loads and unloads: it allocates and frees through the stand-in for libc10, and
// looks itself up with dlsym, as an importer's library does.
#include <dlfcn.h>

#include "fake_c10.h"

extern "C" __attribute__((visibility("default"))) int storm_work(void* block, size_t bytes) {
  fake_c10_new(block, bytes);
  fake_c10_delete(block);
  return dlsym(RTLD_DEFAULT, "fake_c10_new") != nullptr ? 1 : 0;
}

#if defined(ALLOCATE_IN_CONSTRUCTOR)
namespace {
struct AllocatesWhileLoaded {
  AllocatesWhileLoaded() { fake_c10_new(block, sizeof(block)); }
  ~AllocatesWhileLoaded() { fake_c10_delete(block); }
  char block[128];
} allocates_while_loaded;
}  // namespace
#endif
