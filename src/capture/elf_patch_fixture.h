// The fixture of elf_patch's tests. Each test builds small shared libraries with the system's C
// compiler in a directory of its own and watches their calls of a function `hooked`, which the
// library libdefiner*.so defines. The replacement counts and calls on.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "capture/elf_patch.h"

namespace memscope::capture::elf_patch_test {

using IntFunction = int (*)(int);

inline std::atomic<int> calls{0};
inline void* original = nullptr;
inline int replacement(int x) {
  ++calls;
  return reinterpret_cast<IntFunction>(__atomic_load_n(&original, __ATOMIC_RELAXED))(x);
}
inline const SymbolHook kHooks[] = {
    {"memscope_test_hooked", reinterpret_cast<void*>(&replacement), &original, "libdefiner"}};

// hooked(x) = x + 1.
inline constexpr char kDefiner[] =
    "int memscope_test_hooked(int x) { return x + 1; }\n"
    "int call_self(int x) { return memscope_test_hooked(x); }\n";
// call(x) = hooked(x), by a PLT call.
inline constexpr char kCaller[] =
    "int memscope_test_hooked(int);\n"
    "int call(int x) { return memscope_test_hooked(x) ; }\n";

inline std::atomic<int> changes{0};
inline void count_change() noexcept {
  ++changes;
}

class ElfPatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "memscope_elf_patch_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    calls = 0;
    ASSERT_TRUE(elf_patch::add(kHooks, count_change));
  }
  void TearDown() override {
    elf_patch::restore();
    for (void* handle : handles_) dlclose(handle);
    std::filesystem::remove_all(directory_);
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  // Compiles `source` into lib<name>.so.
  void build(const std::string& name, const std::string& source, const std::string& flags = "") {
    std::ofstream(path(name + ".c")) << source;
    const char* compiler = getenv("CC");
    const std::string command = std::string(compiler == nullptr ? "cc" : compiler) +
                                " -shared -fPIC -O1 -o " + path("lib" + name + ".so") + " " +
                                path(name + ".c") + " -L" + directory_ + " " + flags;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void* open(const std::string& name, int flags = RTLD_LAZY | RTLD_LOCAL) {
    void* handle = dlopen(path("lib" + name + ".so").c_str(), flags);
    EXPECT_NE(handle, nullptr) << dlerror();
    if (handle != nullptr) handles_.push_back(handle);
    return handle;
  }
  void close(void* handle) {
    std::erase(handles_, handle);
    dlclose(handle);
  }
  static IntFunction function(void* handle, const char* name) {
    return reinterpret_cast<IntFunction>(dlsym(handle, name));
  }
  // Builds definer and caller, the latter linked with `flags`, and opens it.
  IntFunction build_pair(const std::string& flags) {
    build("definer", kDefiner);
    build("caller", kCaller, "-ldefiner -Wl,-rpath," + directory_ + " " + flags);
    return function(open("caller"), "call");
  }
  // x = 1 gives 2 with and without the hook, and is counted `times` times.
  static void expect_counted(IntFunction call, int times) {
    calls = 0;
    EXPECT_EQ(call(1), 2);
    EXPECT_EQ(calls, times);
  }

  std::string directory_;
  std::vector<void*> handles_;
};

}  // namespace memscope::capture::elf_patch_test
