// The fixture of elf_patch's tests: small libraries whose calls of a function `hooked` are watched.
// The library libdefiner*.so defines it; the replacement counts and calls on.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "capture/elf_patch.h"
#include "capture/small_libraries.h"

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

class ElfPatchTest : public SmallLibraries {
 protected:
  void SetUp() override {
    SmallLibraries::SetUp();
    calls = 0;
    ASSERT_TRUE(elf_patch::add(kHooks, count_change));
  }
  void TearDown() override {
    elf_patch::restore();
    SmallLibraries::TearDown();
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
};

}  // namespace memscope::capture::elf_patch_test
