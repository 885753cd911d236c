// A growing array of plain values whose memory comes straight from mmap, for code that runs while
// the host program may be inside its own malloc (the dlsym hook): it never calls malloc.
//
// Guarantees
//  * Constant-initialised and never destroyed: usable before constructors and during exit.
//  * push() writes the element before it counts it, so that a fork() in the middle leaves the child
//    a consistent array.
//  * push() returns false where the kernel has no memory; the array stays as it was.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

namespace memscope::capture {

template <typename T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr MappedArray() = default;
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;

  size_t size() const { return size_; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

  bool push(const T& value) {
    if (size_ == capacity_ && !grow()) return false;
    data_[size_] = value;
    // The compiler must not count the element before it is written (see above).
    __atomic_store_n(&size_, size_ + 1, __ATOMIC_RELEASE);
    return true;
  }
  void pop() { --size_; }
  void clear() { size_ = 0; }
  // Keeps the elements for which `keep` is true, in order.
  template <typename Keep>
  void filter(Keep keep) {
    size_t kept = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (!keep(data_[i])) continue;
      if (kept != i) data_[kept] = data_[i];
      ++kept;
    }
    size_ = kept;
  }

 private:
  static constexpr size_t kFirstBytes = 16384;

  bool grow() {
    const size_t new_bytes = capacity_ == 0 ? kFirstBytes : capacity_bytes_ * 2;
    void* memory = capacity_ == 0 ? mmap(nullptr, new_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                  : mremap(data_, capacity_bytes_, new_bytes, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) return false;
    data_ = static_cast<T*>(memory);
    capacity_bytes_ = new_bytes;
    capacity_ = new_bytes / sizeof(T);
    return true;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  size_t capacity_bytes_ = 0;
};

}  // namespace memscope::capture
