#include "capture/module_map.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "capture/native_bounds.h"
#include "capture/small_libraries.h"
#include "capture/unwind_fixture.h"

namespace memscope::capture {
namespace {

class ModuleMapTest : public SmallLibraries {
 protected:
  uint64_t address_in(void* library) {
    return reinterpret_cast<uint64_t>(dlsym(library, "something"));
  }
  UnwindTables tables_;
  ModuleMap& map_ = tables_.modules;
};

constexpr char kSomething[] = "int something(void) { return 1; }\n";

TEST_F(ModuleMapTest, KnowsTheProgramAndItsLibraries) {
  Module program, libc;
  ASSERT_TRUE(map_.find(reinterpret_cast<uint64_t>(&kSomething), &program));
  EXPECT_EQ(program.path, std::filesystem::read_symlink("/proc/self/exe"));
  ASSERT_TRUE(
      map_.find(reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")), &libc));
  EXPECT_NE(std::strstr(libc.path, "libc.so"), nullptr) << libc.path;
  EXPECT_NE(libc.cfi.header, nullptr);
  EXPECT_NE(program.serial, libc.serial);
  Module none;
  EXPECT_FALSE(map_.find(1, &none));
  EXPECT_FALSE(map_.find(reinterpret_cast<uint64_t>(&none), &none)) << "a stack is no object";
  EXPECT_EQ(map_.left_out(), 0u);
}

TEST_F(ModuleMapTest, TellsBuildIdAndLoadAddress) {
  build("plain", kSomething, "-Wl,--build-id=0x0123456789abcdef");
  const uint64_t address = address_in(open("plain"));
  map_.update();
  Module module;
  ASSERT_TRUE(map_.find(address, &module));
  const uint8_t wanted[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
  ASSERT_EQ(module.build_id_size, sizeof wanted);
  EXPECT_EQ(std::memcmp(module.build_id, wanted, sizeof wanted), 0);
  EXPECT_EQ(module.path, path("libplain.so"));
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(address), &info), 0);
  EXPECT_EQ(module.bias, reinterpret_cast<uint64_t>(info.dli_fbase));
}

TEST_F(ModuleMapTest, WhatIsUnloadedIsGoneAndComesBackAsAnother) {
  build("comes", kSomething);
  void* library = open("comes");
  const uint64_t address = address_in(library);
  EXPECT_FALSE(map_.update()) << "nothing is gone";
  Module first, second;
  ASSERT_TRUE(map_.find(address, &first));
  EXPECT_FALSE(map_.update());
  ASSERT_TRUE(map_.find(address, &second));
  EXPECT_EQ(first.serial, second.serial) << "as long as it is loaded";
  close(library);
  EXPECT_TRUE(map_.loader_changed());
  EXPECT_TRUE(map_.update());
  EXPECT_FALSE(map_.loader_changed());
  EXPECT_FALSE(map_.find(address, &second));
  library = open("comes");
  EXPECT_FALSE(map_.update());
  ASSERT_TRUE(map_.find(address_in(library), &second));
  EXPECT_NE(first.serial, second.serial);
}

// Between two updates one library goes and another, with other contents and the same sizes, comes
// to its place under its name.
TEST_F(ModuleMapTest, AnotherFileOfTheSameNameAndSizeIsAnother) {
  build("same", "int something(void) { return 1; }\n");
  void* library = open("same");
  const uint64_t address = address_in(library);
  map_.update();
  Module first, second;
  ASSERT_TRUE(map_.find(address, &first));
  close(library);
  build("same", "int something(void) { return 2; }\n");
  library = open("same");
  if (address_in(library) != address) GTEST_SKIP() << "the loader chose another place";
  EXPECT_TRUE(map_.update());
  ASSERT_TRUE(map_.find(address, &second));
  EXPECT_NE(first.serial, second.serial);
}

TEST_F(ModuleMapTest, ManyRoundsTakeNoMoreRoom) {
  build("again", kSomething);
  for (size_t i = 0; i < ModuleMap::kMaxModules + 100; ++i) {
    void* library = dlopen(path("libagain.so").c_str(), RTLD_NOW);
    map_.update();
    dlclose(library);
    map_.update();
  }
  EXPECT_EQ(map_.left_out(), 0u);
}

TEST_F(ModuleMapTest, AForkOutsideOfUpdatesLosesNothing) {
  EXPECT_FALSE(map_.reset_after_fork()) << "nobody was in the middle: nothing is lost";
  Module module;
  EXPECT_TRUE(map_.find(reinterpret_cast<uint64_t>(&kSomething), &module));
}

TEST(NativeBounds, ReadALineOfTheMaps) {
  uint64_t begin = 0, end = 0;
  bool writable = false;
  ASSERT_TRUE(native_bounds::parse_mapping(
      "7ffd2b0c1000-7ffd2b0e2000 rw-p 00000000 00:00 0 [stack]", &begin, &end, &writable));
  EXPECT_EQ(begin, 0x7ffd2b0c1000u);
  EXPECT_EQ(end, 0x7ffd2b0e2000u);
  EXPECT_TRUE(writable);
  ASSERT_TRUE(native_bounds::parse_mapping("1000-2000 r-xp 0 08:01 5 /a", &begin, &end, &writable));
  EXPECT_FALSE(writable);
  for (const char* bad : {"", "zz", "1000", "1000-", "1000 2000 rw-p", "-2000 rw"}) {
    EXPECT_FALSE(native_bounds::parse_mapping(bad, &begin, &end, &writable)) << bad;
  }
}

}  // namespace
}  // namespace memscope::capture
