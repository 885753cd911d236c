#include "cli/executable.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

#if defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_X86_64;
#endif
constexpr int kMaxInterpreters = 4;  // as binfmt_script allows
constexpr size_t kMaxHeaders = 128;

bool runs_with_other_rights(const fs::path& program) {
  struct stat status {};
  if (::stat(program.c_str(), &status) != 0) return false;
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid();
  return other_user || other_group ||
         ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

std::optional<std::string> judge_elf(std::ifstream& file) {
  Elf64_Ehdr header{};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return "is no 64-bit program of this machine";
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxHeaders) return std::nullopt;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return std::nullopt;
    if (segment.p_type == PT_INTERP) return std::nullopt;
  }
  return "is statically linked";
}

// "#!/usr/bin/env python3" names python3.
std::optional<fs::path> interpreter_of(std::ifstream& file) {
  file.seekg(2);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(0, 255));
  std::string interpreter;
  words >> interpreter;
  if (interpreter.empty()) return std::nullopt;
  if (fs::path(interpreter).filename() == "env") {
    std::string name;
    while (words >> name && (name.starts_with('-') || name.find('=') != std::string::npos)) {
    }
    if (!name.empty()) return find_program(name);
  }
  return fs::path(interpreter);
}

}  // namespace

fs::path own_executable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

std::optional<fs::path> find_program(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), F_OK) == 0 ? std::optional<fs::path>(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path candidate = fs::path(directory.empty() ? "." : directory) / name;
    std::error_code error;
    if (::access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error)) {
      return candidate;
    }
  }
  return std::nullopt;
}

std::optional<std::string> why_not_traceable(const fs::path& program) {
  fs::path current = program;
  for (int i = 0; i < kMaxInterpreters; ++i) {
    std::error_code error;
    if (!fs::is_regular_file(current, error)) return std::nullopt;
    std::ifstream file(current, std::ios::binary);
    std::array<char, 4> magic{};
    if (!file.read(magic.data(), magic.size())) return std::nullopt;
    if (magic[0] == '#' && magic[1] == '!') {
      const auto interpreter = interpreter_of(file);
      if (!interpreter) return std::nullopt;
      current = *interpreter;
      continue;
    }
    if (std::memcmp(magic.data(), ELFMAG, SELFMAG) != 0) return std::nullopt;
    // Secure-execution mode: ld.so then ignores LD_PRELOAD (ld.so(8)). Scripts never get it.
    if (runs_with_other_rights(current)) return "runs with other rights than the user's";
    return judge_elf(file);
  }
  return std::nullopt;
}

}  // namespace memscope::cli
