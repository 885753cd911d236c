// Memory that is not the program's heap, zeroed, kept for good.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace memscope::capture {

// nullptr where there is none to be had.
template <typename T>
T* own_pages(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

}  // namespace memscope::capture
