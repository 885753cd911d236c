// elf_patch under a living process: imports noticed through dlsym, and everything at once.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "capture/elf_patch_fixture.h"

namespace memscope::capture::elf_patch_test {
namespace {

// --- the dlsym hook ---------------------------------------------------------------------------

// A library that opens another one and looks a function up in it, as an importer does.
constexpr char kImporter[] =
    "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n"
    "typedef int (*function)(int);\n"
    "void* handle;\n"
    "function import(const char* path, const char* name) {\n"
    "  handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);\n"
    "  return handle ? (function)dlsym(handle, name) : NULL; }\n";

struct Importer {
  explicit Importer(void* importer)
      : import(
            reinterpret_cast<IntFunction (*)(const char*, const char*)>(dlsym(importer, "import"))),
        handle(static_cast<void**>(dlsym(importer, "handle"))) {}
  ~Importer() {
    if (*handle != nullptr) dlclose(*handle);
  }
  IntFunction (*import)(const char* path, const char* name);
  void** handle;
};

TEST_F(ElfPatchTest, AnImportIsNoticedByItsDlsym) {
  build("definer", kDefiner);
  build("caller", kCaller, "-ldefiner -Wl,-rpath," + directory_);
  build("importer", kImporter);
  const Importer importer(open("importer"));
  elf_patch::refresh();
  const IntFunction call = importer.import(path("libcaller.so").c_str(), "call");
  ASSERT_NE(call, nullptr);
  expect_counted(call, 1);
  elf_patch::restore();
  expect_counted(call, 0);
}

// dlopen is not wrapped, so that the RUNPATH of the object that calls it is searched: here the only
// way to the plug-in is the importer's own.
TEST_F(ElfPatchTest, TheCallersRunpathIsStillSearched) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer wraps dlopen, which breaks this by itself";
#endif
  std::filesystem::create_directory(path("plugins"));
  build("caller", "int call(int x) { return x + 1; }\n");
  std::filesystem::rename(path("libcaller.so"), path("plugins/libcaller.so"));
  build("importer", kImporter, "-Wl,--enable-new-dtags -Wl,-rpath," + path("plugins"));
  const Importer importer(open("importer"));
  elf_patch::refresh();
  const IntFunction call = importer.import("libcaller.so", "call");
  ASSERT_NE(call, nullptr) << dlerror();
  EXPECT_EQ(call(1), 2);
}

// RTLD_NEXT means: after the object that called dlsym. `first` and `second` both define `who`;
// asked from `first`, the next one is `second`'s, hooked or not.
TEST_F(ElfPatchTest, RtldNextStillStartsAtTheCaller) {
  build("second", "int memscope_test_who(int x) { return x + 200; }\n");
  build("first",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
        "int memscope_test_who(int x) { return x + 100; }\n"
        "int next(int x) {\n"
        "  int (*who)(int) = (int (*)(int))dlsym(RTLD_NEXT, \"memscope_test_who\");\n"
        "  return who ? who(x) : -1; }\n"
        "int any(int x) {\n"
        "  int (*who)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, \"memscope_test_who\");\n"
        "  return who ? who(x) : -1; }\n",
        "-Wl,--no-as-needed -lsecond -Wl,-rpath," + directory_);
  void* first = open("first");
  const IntFunction next = function(first, "next"), any = function(first, "any");
  ASSERT_EQ(next(1), 201);
  ASSERT_EQ(any(1), 101);
  elf_patch::refresh();
  EXPECT_EQ(next(1), 201);
  EXPECT_EQ(any(1), 101);
}

// What a failed look-up leaves for dlerror() is about that look-up.
TEST_F(ElfPatchTest, DlerrorTellsOfTheCallersLookUp) {
  build("asker",
        "#include <dlfcn.h>\n#include <string.h>\n"
        "int ask(int x) {\n"
        "  dlsym(RTLD_DEFAULT, \"memscope_test_no_such\");\n"
        "  const char* error = dlerror();\n"
        "  return error && strstr(error, \"memscope_test_no_such\") ? x : -1; }\n");
  const IntFunction ask = function(open("asker"), "ask");
  elf_patch::refresh();
  EXPECT_EQ(ask(7), 7);
}

// --- many at once -----------------------------------------------------------------------------

// Three threads call all the time while the slots change 500 times: every call gives the right
// answer.
TEST_F(ElfPatchTest, SlotsChangeUnderCallingThreads) {
  const IntFunction call = build_pair("-Wl,-z,now -Wl,-z,relro");
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int x = 0; !stop; ++x) {
        if (call(x) != x + 1) ++wrong;
      }
    });
  }
  for (int round = 0; round < 500; ++round) {
    elf_patch::refresh();
    elf_patch::restore();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  expect_counted(call, 0);
}

// Two threads open, call and close a library of their own through the hooked dlsym while a third
// refreshes: objects appear and vanish at any moment of a pass.
TEST_F(ElfPatchTest, ObjectsComeAndGoDuringRefresh) {
  build("definer", kDefiner);
  open("definer");
  build("importer",
        "#include <dlfcn.h>\n"
        "int once(int which) {\n"
        "  extern char memscope_test_paths[2][256];\n"
        "  void* handle = dlopen(memscope_test_paths[which], RTLD_NOW | RTLD_LOCAL);\n"
        "  if (!handle) return -1;\n"
        "  int (*call)(int) = (int (*)(int))dlsym(handle, \"call\");\n"
        "  int result = call ? call(1) : -2;\n"
        "  dlclose(handle);\n"
        "  return result; }\n"
        "char memscope_test_paths[2][256];\n");
  void* importer = open("importer");
  auto* paths = static_cast<char(*)[256]>(dlsym(importer, "memscope_test_paths"));
  for (int i = 0; i < 2; ++i) {
    const std::string name = "caller" + std::to_string(i);
    build(name, kCaller, "-ldefiner -Wl,-z,now -Wl,-z,relro -Wl,-rpath," + directory_);
    snprintf(paths[i], 256, "%s", path("lib" + name + ".so").c_str());
  }
  elf_patch::refresh();
  const IntFunction once = function(importer, "once");
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 1000; ++n) {
        if (once(i) != 2) ++wrong;
      }
      stop = true;
    });
  }
  threads.emplace_back([&] {
    while (!stop) elf_patch::refresh();
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  elf_patch::refresh();
  expect_counted(function(handles_[0], "call_self"), 1);
}

// The child of a fork in the middle of a refresh finds nobody who holds the lock.
TEST_F(ElfPatchTest, AForkedChildKeepsItsHooks) {
  const IntFunction call = build_pair("");
  elf_patch::refresh();
  std::atomic<bool> stop{false};
  std::thread refresher([&] {
    while (!stop) elf_patch::refresh();
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      elf_patch::reset_lock_after_fork();
      calls = 0;
      const bool counted = call(1) == 2 && calls == 1;
      _exit(counted ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  refresher.join();
}

}  // namespace
}  // namespace memscope::capture::elf_patch_test
