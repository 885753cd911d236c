#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace memscope {

// debuginfod_find_debuginfo(3): a build-id length of 0 says that it is text; the answer is an open
// file or a negative errno, `path` is malloc'ed.
std::string debuginfod_file(const std::string& build_id) {
  using Begin = void* (*)();
  using Find = int (*)(void*, const unsigned char*, int, char**);
  using End = void (*)(void*);
  void* library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  const auto begin = reinterpret_cast<Begin>(::dlsym(library, "debuginfod_begin"));
  const auto find = reinterpret_cast<Find>(::dlsym(library, "debuginfod_find_debuginfo"));
  const auto end = reinterpret_cast<End>(::dlsym(library, "debuginfod_end"));
  if (begin == nullptr || find == nullptr || end == nullptr) return {};
  void* client = begin();
  if (client == nullptr) return {};
  char* path = nullptr;
  std::string found;
  const int fd = find(client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  if (fd >= 0) {
    if (path != nullptr) found = path;
    ::close(fd);
  }
  std::free(path);
  end(client);
  return found;
}

}  // namespace memscope
