// An ELF file opened for reading, and what it says of itself: build-id and links to debug files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace memscope {

// A file descriptor that is closed with the object; release() hands it on.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// A regular file, never a device or a pipe; none where there is none or it may not be read.
FileHandle open_regular(const std::string& path);

struct ElfIdentity {
  std::string build_id;  // hex; "" none
  std::string debug_link;
  uint32_t debug_link_crc = 0;
  std::string alt_link, alt_build_id;  // of a file with what several debug files share (dwz)
};
// None where it is no ELF file.
std::optional<ElfIdentity> identify_elf(int fd);

// The checksum that .gnu_debuglink carries, of the whole file.
uint32_t debug_link_crc(int fd);

uint64_t modified_ns(int fd);

}  // namespace memscope
