// Loads libraries in every way there is and says what it got: where a library was found, whose
// function a name means, what an interposer sees. Allocates through each of them.
//
//   loads DIRECTORY      that of the libraries
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fake_c10.h"

extern "C" int chain_length();
extern "C" int load_by_runpath(char* block);  // of libwith_runpath.so

namespace {

using Work = int (*)(void*, size_t);
char blocks[16];

void load(const char* what, const std::string& path, int flags) {
  void* library = dlopen(path.c_str(), flags);
  const auto work =
      library == nullptr ? nullptr : reinterpret_cast<Work>(dlsym(library, "storm_work"));
  std::printf("%s: %s\n", what, work == nullptr ? "not found" : "found");
  if (work != nullptr) std::printf("  works: %d\n", work(blocks, 64));
  if (library != nullptr) dlclose(library);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = argv[1];
  const std::string plugin = directory + "/libstorm_plugin.so";
  load("now", plugin, RTLD_NOW | RTLD_LOCAL);
  load("lazily", plugin, RTLD_LAZY | RTLD_LOCAL);
  load("globally", plugin, RTLD_NOW | RTLD_GLOBAL);
  load("with its own symbols first", plugin, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  // The program has no RUNPATH for it: only the library that asks has.
  load("by a name that only another's RUNPATH knows", "libhidden_plugin.so", RTLD_NOW);
  std::printf("by that other: %d\n", load_by_runpath(&blocks[1]));
  std::printf("interposers: %d\n", chain_length());
  void* own_namespace = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
  std::printf("in a namespace of its own: %s\n", own_namespace == nullptr ? "no" : "yes");
  const auto in_namespace = own_namespace == nullptr ? nullptr : dlsym(own_namespace, "cos");
  std::printf("another cos: %d\n", in_namespace != dlsym(RTLD_DEFAULT, "cos"));
  std::printf("no such: %s\n", dlopen("/no/such/library.so", RTLD_NOW) == nullptr ? dlerror() : "");
  std::printf("nothing: %d\n", dlsym(RTLD_DEFAULT, "no_such_symbol_at_all") == nullptr);
  std::printf("error kept: %d\n", dlerror() != nullptr);
  fake_c10_new(&blocks[2], 64);
  return 0;
}
