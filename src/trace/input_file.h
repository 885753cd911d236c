// A file that is read by pread alone: it may grow, be cut short or be overwritten meanwhile without
// harm, which a mapping would answer with SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "core/result.h"

namespace memscope {

class InputFile {
 public:
  // A regular file (never a pipe or a device), or an error that says why not.
  static Result<InputFile> open(const std::filesystem::path& path);

  InputFile() = default;
  InputFile(InputFile&& other) noexcept { *this = std::move(other); }
  InputFile& operator=(InputFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(size_, other.size_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~InputFile();

  // Bytes read: fewer than `size` at the end of the file or after an error.
  size_t read_at(uint64_t offset, void* out, size_t size) const;
  // The first offset from `offset` on that is not in a hole; the size where there is none.
  uint64_t next_data(uint64_t offset) const;
  uint64_t size() const { return size_; }  // when it was opened
  bool is_open() const { return fd_ >= 0; }
  const std::filesystem::path& path() const { return path_; }

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace memscope
