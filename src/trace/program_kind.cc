#include "trace/program_kind.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace memscope {
namespace {

#if defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_X86_64;
#endif
constexpr size_t kMaxHeaders = 128;
constexpr size_t kScriptLine = 256;  // as much of it as the kernel reads (BINPRM_BUF_SIZE)

bool read_at(int fd, void* bytes, size_t count, off_t offset) {
  return pread(fd, bytes, count, offset) == static_cast<ssize_t>(count);
}

bool has_other_rights(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  return other_user || other_group || fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// glibc's are ld-linux-x86-64.so.2 and ld-linux-aarch64.so.1; musl's is ld-musl-x86_64.so.1.
bool is_glibc_loader(const char* path) {
  return std::strncmp(base_name(path), "ld-linux", std::strlen("ld-linux")) == 0;
}

ProgramKind kind_of_loaded_by(int fd, const Elf64_Phdr& segment) {
  char path[kScriptLine] = {};
  const size_t length = std::min<size_t>(segment.p_filesz, sizeof(path) - 1);
  if (pread(fd, path, length, static_cast<off_t>(segment.p_offset)) <= 0 || path[0] == '\0') {
    return ProgramKind::kOrdinary;
  }
  return is_glibc_loader(path) ? ProgramKind::kOrdinary : ProgramKind::kOtherLibc;
}

ProgramKind kind_of_elf(int fd) {
  Elf64_Ehdr header{};
  if (!read_at(fd, &header, sizeof(header), 0)) return ProgramKind::kOrdinary;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return ProgramKind::kOtherMachine;
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxHeaders) {
    return ProgramKind::kOrdinary;
  }
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto offset = static_cast<off_t>(header.e_phoff + i * sizeof(segment));
    if (!read_at(fd, &segment, sizeof(segment), offset)) return ProgramKind::kOrdinary;
    if (segment.p_type == PT_INTERP) return kind_of_loaded_by(fd, segment);
  }
  return ProgramKind::kStatic;
}

ProgramKind kind_of_open_file(int fd, char* interpreter, size_t size) {
  char start[kScriptLine + 1] = {};
  const ssize_t got = pread(fd, start, kScriptLine, 0);
  if (got < 4) return ProgramKind::kOrdinary;
  if (start[0] == '#' && start[1] == '!') {
    const char* path = start + 2 + std::strspn(start + 2, " \t");
    const size_t length = std::strcspn(path, " \t\r\n");
    if (length == 0 || length >= size) return ProgramKind::kOrdinary;
    std::memcpy(interpreter, path, length);
    interpreter[length] = '\0';
    return ProgramKind::kScript;
  }
  if (std::memcmp(start, ELFMAG, SELFMAG) != 0) return ProgramKind::kOrdinary;
  // Secure-execution mode is for programs only: scripts never get other rights.
  return has_other_rights(fd) ? ProgramKind::kOtherRights : kind_of_elf(fd);
}

}  // namespace

ProgramKind program_kind(const char* path, char* interpreter, size_t size) noexcept {
  const int saved_errno = errno;
  ProgramKind kind = ProgramKind::kOrdinary;
  // A pipe must not be waited for.
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (fd >= 0) {
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
      kind = kind_of_open_file(fd, interpreter, size);
    }
    close(fd);
    // The loader itself, run with a program's name: it preloads.
    if (kind == ProgramKind::kStatic && is_glibc_loader(path)) kind = ProgramKind::kOrdinary;
  } else if (stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
             (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    kind = ProgramKind::kOtherRights;  // may be run but not read, as sudo is on some systems
  }
  errno = saved_errno;
  return kind;
}

const char* why_untraced(ProgramKind kind) noexcept {
  switch (kind) {
    case ProgramKind::kStatic:
      return "is statically linked";
    case ProgramKind::kOtherRights:
      return "runs with other rights than the user's";
    case ProgramKind::kOtherMachine:
      return "is no 64-bit program of this machine";
    case ProgramKind::kOtherLibc:
      return "is linked with another C library than glibc";
    case ProgramKind::kOrdinary:
    case ProgramKind::kScript:
      break;
  }
  return nullptr;
}

}  // namespace memscope
