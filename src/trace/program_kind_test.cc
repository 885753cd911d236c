#include "trace/program_kind.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace memscope {
namespace {

namespace fs = std::filesystem;

class ProgramKindTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(directory_); }
  void TearDown() override { fs::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
    return (directory_ / name).string();
  }
  ProgramKind kind(const std::string& path) {
    return program_kind(path.c_str(), interpreter_, sizeof(interpreter_));
  }
  // A header, one program header, and the loader's path behind them; without a loader if it is "".
  static std::string elf(const std::string& loader, unsigned char bits = ELFCLASS64,
                         Elf64_Half machine = own_machine()) {
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = bits;
    header.e_machine = machine;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = loader.empty() ? PT_LOAD : PT_INTERP;
    segment.p_offset = sizeof(header) + sizeof(segment);
    segment.p_filesz = loader.size() + 1;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
    return bytes + loader + '\0';
  }
  static Elf64_Half own_machine() {
#if defined(__aarch64__)
    return EM_AARCH64;
#else
    return EM_X86_64;
#endif
  }

  const fs::path directory_ =
      fs::path(testing::TempDir()) / ("memscope_program_kind_test_" + std::to_string(getpid()));
  char interpreter_[64] = {};
};

TEST_F(ProgramKindTest, ByLoaderMachineAndClass) {
  EXPECT_EQ(kind(file("a", elf("/lib64/ld-linux-x86-64.so.2"))), ProgramKind::kOrdinary);
  EXPECT_EQ(kind(file("b", elf("/opt/x/ld-linux-aarch64.so.1"))), ProgramKind::kOrdinary);
  EXPECT_EQ(kind(file("c", elf("/lib/ld-musl-x86_64.so.1"))), ProgramKind::kOtherLibc);
  EXPECT_EQ(kind(file("d", elf(""))), ProgramKind::kStatic);
  EXPECT_EQ(kind(file("e", elf("", ELFCLASS32))), ProgramKind::kOtherMachine);
  EXPECT_EQ(kind(file("f", elf("", ELFCLASS64, EM_PPC64))), ProgramKind::kOtherMachine);
  EXPECT_EQ(kind(file("ld-linux-x86-64.so.2", elf(""))), ProgramKind::kOrdinary) << "it preloads";
  EXPECT_TRUE(preload_harms(ProgramKind::kOtherLibc));
  EXPECT_FALSE(preload_harms(ProgramKind::kStatic));
  EXPECT_STREQ(why_untraced(ProgramKind::kStatic), "is statically linked");
  EXPECT_EQ(why_untraced(ProgramKind::kScript), nullptr);
}

TEST_F(ProgramKindTest, AScriptNamesItsInterpreter) {
  EXPECT_EQ(kind(file("a", "#! /usr/bin/env  python3 -x\nrest")), ProgramKind::kScript);
  EXPECT_STREQ(interpreter_, "/usr/bin/env");
  EXPECT_EQ(kind(file("b", "#!/bin/sh")), ProgramKind::kScript);
  EXPECT_STREQ(interpreter_, "/bin/sh");
  EXPECT_EQ(kind(file("c", "#!\n/bin/sh")), ProgramKind::kOrdinary) << "the kernel refuses it";
  EXPECT_EQ(kind(file("d", "#!/" + std::string(100, 'x') + "\n")), ProgramKind::kOrdinary)
      << "longer than there is room";
}

TEST_F(ProgramKindTest, RightsOfOthersAreSeenWithoutReadingTheFile) {
  const std::string path = file("a", elf("/lib64/ld-linux-x86-64.so.2"));
  ASSERT_EQ(chmod(path.c_str(), 04755), 0);
  // Its owner's rights are ours: nothing changes for it.
  EXPECT_EQ(kind(path), ProgramKind::kOrdinary);
  if (geteuid() == 0 && chown(path.c_str(), 12345, 12345) == 0) {
    ASSERT_EQ(chmod(path.c_str(), 04711), 0);
    EXPECT_EQ(kind(path), ProgramKind::kOtherRights);
  }
}

TEST_F(ProgramKindTest, WhatIsNoProgramIsOrdinaryAndErrnoIsKept) {
  errno = 42;
  EXPECT_EQ(kind(file("empty", "")), ProgramKind::kOrdinary);
  EXPECT_EQ(kind(file("short",
                      "\x7f"
                      "ELF")),
            ProgramKind::kOrdinary);  // NOLINT
  EXPECT_EQ(kind(file("cut", elf("").substr(0, sizeof(Elf64_Ehdr) + 10))), ProgramKind::kOrdinary);
  EXPECT_EQ(kind(directory_.string()), ProgramKind::kOrdinary);
  EXPECT_EQ(kind((directory_ / "missing").string()), ProgramKind::kOrdinary);
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind((directory_ / "pipe").string()), ProgramKind::kOrdinary) << "and not waited for";
  errno = 42;
  kind((directory_ / "missing").string());
  EXPECT_EQ(errno, 42);
}

}  // namespace
}  // namespace memscope
