#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <memory>

namespace memscope {
namespace {

constexpr size_t kMaxBuildId = 64;  // bytes

std::string hex(const void* bytes, size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (size_t i = 0; i < std::min(size, kMaxBuildId); ++i) {
    text += kDigits[at[i] >> 4];
    text += kDigits[at[i] & 15];
  }
  return text;
}

// A name with its zero, then the build-id (elfutils, dwelf_dwarf_gnu_debugaltlink.c).
void read_alt_link(Elf* elf, ElfIdentity& identity) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) return;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || std::strcmp(name, ".gnu_debugaltlink") != 0) continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return;
    const auto* text = static_cast<const char*>(data->d_buf);
    const size_t length = ::strnlen(text, data->d_size);
    if (length == data->d_size) return;
    identity.alt_link.assign(text, length);
    identity.alt_build_id = hex(text + length + 1, data->d_size - length - 1);
    return;
  }
}

}  // namespace

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

FileHandle open_regular(const std::string& path) {
  // O_NONBLOCK: opening a pipe nobody writes to must not wait.
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

std::optional<ElfIdentity> identify_elf(int fd) {
  if (elf_version(EV_CURRENT) == EV_NONE) return std::nullopt;
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ_MMAP, nullptr), elf_end);
  GElf_Ehdr header;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr) {
    return std::nullopt;
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return std::nullopt;
  ElfIdentity identity;
  const void* id = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf.get(), &id);
  if (size > 0) identity.build_id = hex(id, static_cast<size_t>(size));
  GElf_Word crc = 0;
  if (const char* link = dwelf_elf_gnu_debuglink(elf.get(), &crc); link != nullptr) {
    identity.debug_link = link;
    identity.debug_link_crc = crc;
  }
  read_alt_link(elf.get(), identity);
  return identity;
}

uint32_t debug_link_crc(int fd) {
  std::array<unsigned char, 1 << 16> buffer;
  uLong crc = ::crc32(0, nullptr, 0);
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got <= 0) return static_cast<uint32_t>(crc);
    crc = ::crc32(crc, buffer.data(), static_cast<uInt>(got));
    at += got;
  }
}

uint64_t modified_ns(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace memscope
