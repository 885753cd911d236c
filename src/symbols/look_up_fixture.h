// For tests: a small shared object compiled on the spot, whose frames are worked out by hand, and
// a folder to lay out copies of it in.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "symbols/elf_file.h"
#include "symbols/look_up.h"

namespace memscope::testing {

// The labels are addresses whose frames are known; `nop` gives each of them a byte of its own.
inline constexpr const char* kShapes = R"(namespace shapes {
struct Box {
  __attribute__((always_inline)) inline int innermost(int x) {
    asm volatile(".globl mark_in\nmark_in: nop");  // line 4
    return x + 1;
  }
};
__attribute__((always_inline)) inline int middle(Box& box, int x) {
  return box.innermost(x) * 3;  // line 9
}
__attribute__((noinline)) int outer(int x) {
  Box box;
  asm volatile(".globl mark_out\nmark_out: nop");  // line 13
  return middle(box, x) + 7;  // line 14
}
}  // namespace shapes
static __attribute__((noinline)) int hidden(int x) {
  asm volatile(".globl mark_hidden\nmark_hidden: nop" : "+r"(x));  // line 18
  return x;
}
extern "C" int plain(int x) {
  auto twice = [](int y) __attribute__((noinline)) {
    asm volatile(".globl mark_lambda\nmark_lambda: nop" : "+r"(y));  // line 23
    return 2 * y;
  };
  return twice(hidden(x)) + shapes::outer(x);
}
__attribute__((always_inline)) inline int add(int x) {
  if (!__builtin_constant_p(x)) asm volatile(".globl mark_add\nmark_add: nop");  // line 29
  return x + 1;
}
extern "C" int local(int x) {
  struct Deep {
    int run(int y) { asm volatile("nop"); return 2 * add(y); }  // line 34
  } deep;
  int (Deep::*volatile run)(int) = &Deep::run;
  return (deep.*run)(x) + deep.run(3);  // called, and inlined where there is no label
}
)";

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "symbols-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  // An absolute path in it, the folders on the way made.
  std::string at(const std::string& name) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    return path.string();
  }

 private:
  std::string path_;
};

inline void run(const std::string& command) {
  ASSERT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(concurrency-mt-unsafe)
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// kShapes as "libshapes.so", -O2 -g; `flags` after those.
inline std::string compile_shapes(const Folder& folder, const std::string& flags = "") {
  const std::string source = folder.at("shapes.cc");
  std::string library = folder.at("libshapes.so");
  write_bytes(source, kShapes);
  run("c++ -O2 -g -fPIC -shared -Wl,--build-id=sha1 " + flags + " -o " + library + " " + source);
  return library;
}

// Where a label of the library is, as an offset in the file's addresses.
inline uint64_t mark(const std::string& library, const char* name) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    ADD_FAILURE() << ::dlerror();  // NOLINT(concurrency-mt-unsafe)
    return 0;
  }
  link_map* map = nullptr;
  ::dlinfo(handle, RTLD_DI_LINKMAP, &map);
  const auto at = reinterpret_cast<uint64_t>(::dlsym(handle, name));
  const uint64_t offset = at == 0 ? 0 : at - map->l_addr;
  ::dlclose(handle);
  EXPECT_NE(offset, 0u) << name;
  return offset;
}

inline std::string build_id_of(const std::string& path) {
  const FileHandle file = open_regular(path);
  const auto identity = file ? identify_elf(file.get()) : std::nullopt;
  EXPECT_TRUE(identity) << path;
  return identity ? identity->build_id : "";
}

// Takes the debug data out of `library` into `debug`.
inline void split_debug(const std::string& library, const std::string& debug) {
  run("objcopy --only-keep-debug " + library + " " + debug);
  run("objcopy --strip-all " + library);
}

inline std::string build_id_path(const std::string& build_id) {
  return ".build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
}

}  // namespace memscope::testing
