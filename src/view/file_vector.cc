#include "view/file_vector.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

// Linux 5.14; older kernels answer EINVAL, which is as good as nothing.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace memscope::view {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFirst = 64 << 10;
constexpr size_t kPopulate = 8 << 20;  // pages made at once, cheaper than one fault each

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// Space in the file up to `bytes`, so that no store can meet a full disk (that is a SIGBUS).
bool reserve(int fd, size_t from, size_t to) {
  if (fallocate(fd, 0, static_cast<off_t>(from), static_cast<off_t>(to - from)) == 0) return true;
  // Not every file system can: there the ftruncate alone must do.
  return errno == EOPNOTSUPP && ftruncate(fd, static_cast<off_t>(to)) == 0;
}

}  // namespace

FileMemory::FileMemory(const std::filesystem::path& path) {
  if (path.empty()) return;
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  named_ = fd_ >= 0;
}

Result<FileMemory> FileMemory::map(const std::filesystem::path& path, size_t bytes) {
  FileMemory memory;
  memory.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat status {};
  if (memory.fd_ < 0 || fstat(memory.fd_, &status) != 0) {
    return Error{path.string() + ": " + std::strerror(errno)};
  }
  if (static_cast<size_t>(status.st_size) != bytes) {
    return Error{path.string() + ": not as long as its index says"};
  }
  void* at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, memory.fd_, 0);
  if (at == MAP_FAILED) return Error{path.string() + ": " + std::strerror(errno)};
  memory.data_ = static_cast<std::byte*>(at);
  memory.capacity_ = bytes;
  memory.named_ = true;
  return memory;
}

void FileMemory::grow(size_t bytes) {
  if (bytes <= capacity_) return;
  const size_t wanted = whole_pages(std::max({bytes, capacity_ + capacity_ / 2, kFirst}));
  if (fd_ >= 0 && !reserve(fd_, capacity_, wanted)) leave_file();
  void* at = nullptr;
  if (data_ != nullptr) {
    at = mremap(data_, capacity_, wanted, MREMAP_MAYMOVE);
  } else {
    at = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
              fd_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd_, 0);
  }
  if (at == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(at);
  if (fd_ >= 0 && wanted >= kPopulate) {
    const size_t from = std::max(bytes / kPage * kPage, capacity_ / kPage * kPage);
    madvise(data_ + from, std::min(wanted - from, kPopulate), MADV_POPULATE_WRITE);
  } else if (fd_ < 0) {
    madvise(data_, wanted, MADV_HUGEPAGE);
  }
  capacity_ = wanted;
}

// The disk is full: what is there moves to memory.
void FileMemory::leave_file() {
  std::byte* from = data_;
  if (from != nullptr) {
    void* at = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    std::memcpy(at, from, capacity_);
    munmap(from, capacity_);
    data_ = static_cast<std::byte*>(at);
  }
  if (ftruncate(fd_, 0) != 0) named_ = false;  // it is to be deleted anyway
  ::close(fd_);
  fd_ = -1;
  named_ = false;
}

void FileMemory::touch(size_t bytes) const {
  if (data_ != nullptr && bytes != 0) {
    madvise(data_, whole_pages(bytes), MADV_POPULATE_READ);  // a hint: nothing is lost without it
  }
}

void FileMemory::trim(size_t bytes) {
  const size_t wanted = whole_pages(bytes);
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) != 0) leave_file();
  if (data_ != nullptr && wanted < capacity_) {
    if (wanted == 0) {
      munmap(data_, capacity_);
      data_ = nullptr;
    } else {
      munmap(data_ + wanted, capacity_ - wanted);
    }
    capacity_ = wanted;
  }
  if (fd_ >= 0) {
    ::close(fd_);  // the mapping keeps it
    fd_ = -1;
  }
}

void FileMemory::close() {
  if (data_ != nullptr) munmap(data_, capacity_);
  if (fd_ >= 0) ::close(fd_);
  data_ = nullptr;
  fd_ = -1;
  capacity_ = 0;
}

}  // namespace memscope::view
