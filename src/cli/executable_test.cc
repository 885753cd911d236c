#include "cli/executable.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

class Executable : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        fs::path(testing::TempDir()) /
        ("memscope_executable_test_" + std::to_string(getpid()));  // tests run side by side
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  fs::path file(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
    return directory_ / name;
  }
  // An ELF header with one program header of `type`.
  static std::string elf(Elf64_Word type, unsigned char bits = ELFCLASS64) {
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = bits;
#if defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#else
    header.e_machine = EM_X86_64;
#endif
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = type;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    return bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  }
  fs::path directory_;
};

TEST_F(Executable, DynamicProgramsCanBeTraced) {
  EXPECT_FALSE(why_not_traceable(file("dynamic", elf(PT_INTERP))));
  EXPECT_FALSE(why_not_traceable("/bin/sh"));
}

TEST_F(Executable, StaticAndForeignOnesCannot) {
  EXPECT_EQ(why_not_traceable(file("static", elf(PT_LOAD))), "is statically linked");
  EXPECT_EQ(why_not_traceable(file("small", elf(PT_INTERP, ELFCLASS32))),
            "is no 64-bit program of this machine");
}

TEST_F(Executable, AScriptIsWhatItsInterpreterIs) {
  const fs::path interpreter = file("static", elf(PT_LOAD));
  EXPECT_EQ(why_not_traceable(file("script", "#!" + interpreter.string() + " -x\n")),
            "is statically linked");
  EXPECT_FALSE(why_not_traceable(file("envscript", "#!/usr/bin/env sh\n")));
  const fs::path loop = directory_ / "loop";
  file("loop", "#!" + loop.string() + "\n");
  EXPECT_FALSE(why_not_traceable(loop));
}

TEST_F(Executable, WhatIsNoProgramIsNotJudged) {
  EXPECT_FALSE(why_not_traceable(file("empty", "")));
  EXPECT_FALSE(why_not_traceable(file("short",
                                      "\x7f"
                                      "ELF")));
  EXPECT_FALSE(why_not_traceable(directory_));
  EXPECT_FALSE(why_not_traceable(directory_ / "missing"));
}

TEST_F(Executable, NamesAreFoundAsTheShellFindsThem) {
  EXPECT_TRUE(find_program("sh"));
  EXPECT_FALSE(find_program("no-such-program-here"));
  EXPECT_FALSE(find_program(""));
  EXPECT_TRUE(find_program("/bin/sh"));
}

}  // namespace
}  // namespace memscope::cli
