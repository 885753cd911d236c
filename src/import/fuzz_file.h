// A file for one fuzzer's process alone, in memory where there is such a place.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "trace/test_directory.h"

namespace memscope {

inline std::filesystem::path fuzz_file(const char* name) {
  static const TestDirectory* const directory = [] {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
    static TestDirectory made;
    return &made;
  }();
  return directory->path() / name;
}

}  // namespace memscope
