// A link of a chain of interposers, as memory debuggers and other tools preload them: its function
// calls the next one's, and its malloc the next malloc, both found by RTLD_NEXT.
#include <dlfcn.h>

#include <cstddef>

namespace {
template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
}  // namespace

extern "C" __attribute__((visibility("default"))) int chain_length() {
  const auto rest = next(&chain_length, "chain_length");
  return 1 + (rest == nullptr ? 0 : rest());
}

extern "C" __attribute__((visibility("default"))) void* malloc(size_t bytes) {
  static void* (*const real)(size_t) = next<void* (*)(size_t)>(nullptr, "malloc");
  return real(bytes);
}
