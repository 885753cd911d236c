#include "capture/elf_patch.h"

#include <cerrno>

#include "capture/elf_patch_fixture.h"

namespace memscope::capture::elf_patch_test {
namespace {

class ElfPatchLinked : public ElfPatchTest, public testing::WithParamInterface<const char*> {};

// However an object was linked, its calls reach the replacement between refresh and restore, and
// only then.
TEST_P(ElfPatchLinked, CallsReachTheReplacementBetweenRefreshAndRestore) {
  const IntFunction call = build_pair(GetParam());
  elf_patch::refresh();
  expect_counted(call, 1);
  expect_counted(call, 1);  // a lazy slot is not bound over the hook by its first call
  elf_patch::restore();
  expect_counted(call, 0);
  elf_patch::refresh();
  expect_counted(call, 1);
}

// The same, where the slot was bound by a call before.
TEST_P(ElfPatchLinked, SlotsBoundEarlierArePatchedToo) {
  const IntFunction call = build_pair(GetParam());
  expect_counted(call, 0);
  elf_patch::refresh();
  expect_counted(call, 1);
}

INSTANTIATE_TEST_SUITE_P(Linking, ElfPatchLinked,
                         testing::Values("-Wl,-z,lazy",  // a stub in the slot until the first call
                                         "-Wl,-z,now",   // bound at load
                                         "-Wl,-z,now -Wl,-z,relro",  // and the slots read-only
                                         "-fno-plt",               // GLOB_DAT instead of JUMP_SLOT
                                         "-Wl,--hash-style=sysv",  // DT_HASH only
                                         "-Wl,--hash-style=sysv -Wl,-z,now -Wl,-z,relro",
                                         "-Wl,-z,lazy -Wl,-z,norelro",
                                         // Exports nothing but `call`.
                                         "-Wl,--hash-style=gnu"));

TEST_F(ElfPatchTest, AnObjectThatCallsItselfIsPatched) {
  build("definer", kDefiner, "-Wl,-z,lazy");
  const IntFunction call = function(open("definer"), "call_self");
  elf_patch::refresh();
  expect_counted(call, 1);
  expect_counted(call, 1);
}

TEST_F(ElfPatchTest, ADefinerWithDtHashOnlyIsFound) {
  build("definer", kDefiner, "-Wl,--hash-style=sysv");
  const IntFunction call = function(open("definer"), "call_self");
  elf_patch::refresh();
  expect_counted(call, 1);
}

// GNU ld writes an empty hash table with a first symbol index of 1 into an object without exports,
// which then says nothing about how many imports there are. The caller is reached through a
// constructor that hands its address to the test.
TEST_F(ElfPatchTest, AnObjectWithoutExportsIsPatched) {
  build("definer", kDefiner);
  build("caller",
        "int memscope_test_hooked(int);\n"
        "extern int (**memscope_test_out)(int);\n"
        "static int call(int x) { return memscope_test_hooked(x); }\n"
        "#include <stdlib.h>\n#include <stdio.h>\n"
        "__attribute__((constructor)) static void tell(void) {\n"
        "  void* out; sscanf(getenv(\"MEMSCOPE_TEST_OUT\"), \"%p\", &out);\n"
        "  *(int (**)(int))out = call; }\n",
        "-ldefiner -Wl,--hash-style=gnu -Wl,-rpath," + directory_);
  IntFunction call = nullptr;
  char address[32];
  snprintf(address, sizeof address, "%p", static_cast<void*>(&call));
  setenv("MEMSCOPE_TEST_OUT", address, 1);
  open("caller");
  ASSERT_NE(call, nullptr);
  elf_patch::refresh();
  expect_counted(call, 1);
}

// A function pointer in initialised data is an absolute relocation.
TEST_F(ElfPatchTest, FunctionPointersInDataArePatched) {
  build("definer", kDefiner);
  build("caller",
        "int memscope_test_hooked(int);\n"
        "int (*const table[])(int) = {memscope_test_hooked};\n"  // in the read-only part
        "int (*variable)(int) = memscope_test_hooked;\n"
        "int call_table(int x) { return table[x - 1](x); }\n"
        "int call_variable(int x) { return variable(x); }\n",
        "-ldefiner -Wl,-rpath," + directory_);
  void* caller = open("caller");
  elf_patch::refresh();
  expect_counted(function(caller, "call_table"), 1);
  expect_counted(function(caller, "call_variable"), 1);
  elf_patch::restore();
  expect_counted(function(caller, "call_table"), 0);
  expect_counted(function(caller, "call_variable"), 0);
}

// The variable was set to another function by the program: it is none of our business.
TEST_F(ElfPatchTest, APointerThatTheProgramChangedIsLeft) {
  build("definer", kDefiner);
  build("caller",
        "int memscope_test_hooked(int);\n"
        "static int other(int x) { return x + 1; }\n"
        "int (*variable)(int) = memscope_test_hooked;\n"
        "int call(int x) { return variable(x); }\n"
        "int change(int x) { variable = other; return x; }\n",
        "-ldefiner -Wl,-rpath," + directory_);
  void* caller = open("caller");
  function(caller, "change")(0);
  elf_patch::refresh();
  expect_counted(function(caller, "call"), 0);
}

TEST_F(ElfPatchTest, RestoreLeavesWhatTheProgramChangedSince) {
  build("definer", kDefiner);
  build("caller",
        "int memscope_test_hooked(int);\n"
        "static int other(int x) { return x + 10; }\n"
        "int (*variable)(int) = memscope_test_hooked;\n"
        "int call(int x) { return variable(x); }\n"
        "int change(int x) { variable = other; return x; }\n",
        "-ldefiner -Wl,-rpath," + directory_);
  void* caller = open("caller");
  elf_patch::refresh();
  const PatchCounts before = elf_patch::counts();
  function(caller, "change")(0);
  elf_patch::restore();
  EXPECT_EQ(function(caller, "call")(1), 11);
  EXPECT_EQ(elf_patch::counts().slots_left, before.slots_left + 1);
}

// A weak import that nobody defines stays null: programs test it.
TEST_F(ElfPatchTest, AnAbsentWeakImportStaysNull) {
  build("weak",
        "__attribute__((weak)) int memscope_test_hooked(int);\n"
        "int call(int x) { return memscope_test_hooked ? 100 : x + 1; }\n");
  const IntFunction call = function(open("weak"), "call");
  build("definer", kDefiner);
  open("definer");
  elf_patch::refresh();
  expect_counted(call, 0);
}

// Two libraries with a `hooked` of their own each: only the one that `defined_in` names is ours.
// The other would else call on to the wrong original.
TEST_F(ElfPatchTest, AnotherDefinitionKeepsItsCalls) {
  build("definer", kDefiner);
  build("another",
        "int memscope_test_hooked(int x) { return x + 1000; }\n"
        "int call(int x) { return memscope_test_hooked(x); }\n",
        "-Wl,-z,lazy");
  open("definer");
  const IntFunction call = function(open("another"), "call");
  elf_patch::refresh();
  calls = 0;
  EXPECT_EQ(call(1), 1001);
  EXPECT_EQ(calls, 0);
}

TEST_F(ElfPatchTest, StateTellsWhereASymbolWasFound) {
  EXPECT_FALSE(elf_patch::state(kHooks[0]).found);
  build_pair("");
  changes = 0;
  elf_patch::refresh();
  EXPECT_GE(changes, 1);
  const HookState state = elf_patch::state(kHooks[0]);
  EXPECT_TRUE(state.found);
  EXPECT_EQ(state.file, path("libdefiner.so"));
  EXPECT_EQ(state.slots, 2u);  // the caller's and the definer's own
  // A symbol that was not added has no state.
  EXPECT_FALSE(elf_patch::state({"other", nullptr, nullptr, nullptr}).found);
}

TEST_F(ElfPatchTest, ObjectsThatComeLaterArePatchedByTheNextRefresh) {
  build("definer", kDefiner);
  open("definer");
  elf_patch::refresh();
  build("caller", kCaller, "-ldefiner -Wl,-rpath," + directory_);
  const IntFunction call = function(open("caller"), "call");
  elf_patch::refresh();
  expect_counted(call, 1);
}

// The definer may come after an object that already imports it.
TEST_F(ElfPatchTest, ADefinerThatComesLaterIsPatchedEverywhere) {
  build("definer", kDefiner);
  build("caller", kCaller, "-Wl,-z,lazy");  // not linked with the definer: resolved when called
  const IntFunction call = function(open("caller"), "call");
  elf_patch::refresh();
  open("definer", RTLD_LAZY | RTLD_GLOBAL);
  elf_patch::refresh();
  expect_counted(call, 1);
}

TEST_F(ElfPatchTest, UnloadedObjectsAreForgotten) {
  build_pair("");
  elf_patch::refresh();
  const PatchCounts with = elf_patch::counts();
  close(handles_[0]);  // the caller, and with it the definer
  elf_patch::refresh();
  EXPECT_EQ(elf_patch::counts().objects_seen, with.objects_seen - 2);
  EXPECT_EQ(elf_patch::counts().slots_patched, with.slots_patched - 2);
  EXPECT_FALSE(elf_patch::state(kHooks[0]).found);
}

TEST_F(ElfPatchTest, RestoreAfterAnUnloadTouchesNothing) {
  build_pair("");
  elf_patch::refresh();
  close(handles_[0]);
  elf_patch::restore();  // would fault on the unmapped slots
}

// Loaded again, most likely at the same address: its slots are fresh ones.
TEST_F(ElfPatchTest, AnObjectLoadedAgainIsPatchedAgain) {
  build_pair("-Wl,-z,now");
  for (int round = 0; round < 20; ++round) {
    elf_patch::refresh();
    expect_counted(function(handles_[0], "call"), 1);
    close(handles_[0]);
    open("caller");
  }
}

TEST_F(ElfPatchTest, ErrnoIsKept) {
  build_pair("");
  errno = 1234;
  elf_patch::refresh();
  EXPECT_EQ(errno, 1234);
  elf_patch::restore();
  EXPECT_EQ(errno, 1234);
}

// Slots made read-only by the loader are read-only again after patching and after restoring.
TEST_F(ElfPatchTest, RelroPagesAreReadOnlyAgain) {
  build_pair("-Wl,-z,now -Wl,-z,relro");
  const auto writable = [&] {
    std::ifstream maps("/proc/self/maps");
    std::vector<std::string> modes;
    for (std::string line; std::getline(maps, line);) {
      if (line.find(path("libcaller.so")) == std::string::npos) continue;
      modes.push_back(line.substr(line.find(' ') + 1, 4));
    }
    return modes;
  };
  const std::vector<std::string> before = writable();
  elf_patch::refresh();
  EXPECT_EQ(writable(), before);
  elf_patch::restore();
  EXPECT_EQ(writable(), before);
}

}  // namespace
}  // namespace memscope::capture::elf_patch_test
