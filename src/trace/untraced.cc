#include "trace/untraced.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace memscope {
namespace {

constexpr off_t kMaxBytes = off_t{64} << 10;

bool holds(int fd, size_t size, std::string_view text) {
  if (size == 0) return false;
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return false;
  const bool found = memmem(bytes, size, text.data(), text.size()) != nullptr;
  munmap(bytes, size);
  return found;
}

bool add_to(int fd, std::string_view line, std::string_view once) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  const off_t size = status.st_size < kMaxBytes ? status.st_size : kMaxBytes;
  if (holds(fd, static_cast<size_t>(size), once)) return true;
  if (size + static_cast<off_t>(line.size()) > kMaxBytes) return false;
  // One write with O_APPEND: lines of several processes do not mix.
  return write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

bool add_untraced(const char* run_directory, std::string_view line,
                  std::string_view once) noexcept {
  const int saved_errno = errno;
  char path[4096];
  const int length = std::snprintf(path, sizeof(path), "%s/%s", run_directory, kUntracedName);
  bool added = false;
  if (length > 0 && static_cast<size_t>(length) < sizeof(path)) {
    const int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
      added = add_to(fd, line, once);
      close(fd);
    }
  }
  errno = saved_errno;
  return added;
}

std::string_view untraced_key(std::string_view line) noexcept {
  return line.substr(0, line.rfind("\"pid\":"));
}

}  // namespace memscope
