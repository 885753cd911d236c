// Columns of numbers that live in files: grown front to back while an index is built, mapped when
// it is opened again.
//
//   FileVector<uint64_t> times(directory / "time");   // or {} for one without a name
//   times.push_back(7);
//   times[0] = 8;
//
// Guarantees
//  * Pages belong to the file: the kernel may write them out and take them back, so that an index
//    larger than memory works.
//  * A full disk does no harm: the column moves to anonymous memory and says so (`in_file()`).
//  * Only memory that runs out throws (std::bad_alloc). HOT PATH: push_back, operator[].
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <type_traits>
#include <utility>

#include "core/result.h"

namespace memscope::view {

// The untyped part: a mapping that grows.
class FileMemory {
 public:
  FileMemory() = default;
  // A new file; an empty path or one that cannot be made gives memory without a name.
  explicit FileMemory(const std::filesystem::path& path);
  ~FileMemory() { close(); }
  FileMemory(FileMemory&& other) noexcept { swap(other); }
  FileMemory& operator=(FileMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  // A file that exists, to read only. It must have `bytes` bytes.
  static Result<FileMemory> map(const std::filesystem::path& path, size_t bytes);

  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  bool in_file() const { return named_; }
  // At least `bytes`; what was there stays.
  void grow(size_t bytes);
  // Makes the pages of `bytes` ready to be read, as far as the kernel can at once.
  void touch(size_t bytes) const;
  // The file ends after `bytes`; the rest of the mapping is given back.
  void trim(size_t bytes);

 private:
  void swap(FileMemory& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(named_, other.named_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
  }
  void close();
  void leave_file();

  int fd_ = -1;
  bool named_ = false;
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;  // of the mapping
};

template <typename T>
class FileVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  FileVector() = default;
  explicit FileVector(const std::filesystem::path& path) : memory_(path) {}

  static Result<FileVector> map(const std::filesystem::path& path, size_t size) {
    if (size > SIZE_MAX / sizeof(T)) return Error{path.string() + ": impossible size"};
    FileVector result;
    if (size == 0) return result;
    auto memory = FileMemory::map(path, size * sizeof(T));
    if (!memory) return memory.error();
    result.memory_ = std::move(memory).value();
    result.size_ = size;
    return result;
  }

  void push_back(const T& value) {
    if (size_ == limit_) [[unlikely]]
      grow(size_ + 1);
    data()[size_++] = value;
  }
  // New elements are zero.
  void resize(size_t size) {
    if (size > limit_) grow(size);
    size_ = size;
  }
  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  T& operator[](size_t at) { return data()[at]; }
  const T& operator[](size_t at) const { return data()[at]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T& back() const { return data()[size_ - 1]; }
  T& back() { return data()[size_ - 1]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const T> span() const { return {data(), size_}; }
  bool in_file() const { return memory_.in_file(); }
  // Reads its pages in now, so that the first who reads it does not wait for them.
  void touch() const { memory_.touch(size_ * sizeof(T)); }
  void finish() {
    memory_.trim(size_ * sizeof(T));
    limit_ = size_;
  }

 private:
  void grow(size_t size) {
    memory_.grow(size * sizeof(T));
    limit_ = memory_.capacity() / sizeof(T);
  }

  FileMemory memory_;
  size_t size_ = 0, limit_ = 0;
};

}  // namespace memscope::view
