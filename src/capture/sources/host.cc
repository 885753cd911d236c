#include "capture/sources/host.h"

#include <errno.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdarg>
#include <new>

#include "capture/host_events.h"
#include "capture/recorder.h"

namespace memscope::capture::host_source {
namespace {

// -- the real functions ---------------------------------------------------------------------------

template <typename Function>
Function* real(void*& original) {
  return reinterpret_cast<Function*>(__atomic_load_n(&original, __ATOMIC_RELAXED));
}

void *real_malloc, *real_calloc, *real_realloc, *real_reallocarray, *real_posix_memalign,
    *real_aligned_alloc, *real_memalign, *real_valloc, *real_pvalloc, *real_free, *real_cfree,
    *real_free_sized, *real_free_aligned_sized, *real_mmap, *real_mmap64, *real_munmap,
    *real_mremap;

class ErrnoKept {
 public:
  ErrnoKept() : saved_(errno) {}
  ~ErrnoKept() { errno = saved_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  int saved_;
};

// A hook's scope; taking a thread's first lane must not be seen in errno.
class Entered {
 public:
  explicit Entered(const CallerState& caller = {}) : hook(caller) { errno = before_; }

 private:
  const int before_ = errno;

 public:
  HookScope hook;
};

// -- malloc and its kin ---------------------------------------------------------------------------

void note_alloc(Entered& scope, const void* block, size_t size) {
  const ErrnoKept kept;
  record_host_alloc(scope.hook, block, size);
}

ShadowMap::Block note_free(Entered& scope, const void* block) {
  const ErrnoKept kept;
  return record_host_free(scope.hook, block);
}

void* on_malloc(size_t size) {
  Entered scope(MEMSCOPE_CALLER());
  void* block = real<void*(size_t)>(real_malloc)(size);
  note_alloc(scope, block, size);
  return block;
}

void* on_calloc(size_t count, size_t size) {
  Entered scope(MEMSCOPE_CALLER());
  void* block = real<void*(size_t, size_t)>(real_calloc)(count, size);
  note_alloc(scope, block, count * size);  // does not overflow where there is a block
  return block;
}

// `size` is 0 where the block is to be freed: glibc, jemalloc and tcmalloc then return null, which
// is no failure.
template <typename Call>
void* resize(const CallerState& caller, void* old, size_t size, Call call) {
  Entered scope(caller);
  const ShadowMap::Block gone = note_free(scope, old);
  void* block = call();
  if (block != nullptr) {
    note_alloc(scope, block, size);
  } else if (size != 0) {
    const ErrnoKept kept;
    record_host_undo(scope.hook, gone);
  }
  return block;
}

void* on_realloc(void* old, size_t size) {
  return resize(MEMSCOPE_CALLER(), old, size,
                [&] { return real<void*(void*, size_t)>(real_realloc)(old, size); });
}

void* on_reallocarray(void* old, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;  // will be refused
  return resize(MEMSCOPE_CALLER(), old, bytes, [&] {
    return real<void*(void*, size_t, size_t)>(real_reallocarray)(old, count, size);
  });
}

int on_posix_memalign(void** out, size_t alignment, size_t size) {
  Entered scope(MEMSCOPE_CALLER());
  const int error = real<int(void**, size_t, size_t)>(real_posix_memalign)(out, alignment, size);
  if (error == 0) note_alloc(scope, *out, size);
  return error;
}

template <void*& original>
void* on_aligned(size_t alignment, size_t size) {
  Entered scope(MEMSCOPE_CALLER());
  void* block = real<void*(size_t, size_t)>(original)(alignment, size);
  note_alloc(scope, block, size);
  return block;
}

template <void*& original>
void* on_paged(size_t size) {
  Entered scope(MEMSCOPE_CALLER());
  void* block = real<void*(size_t)>(original)(size);
  note_alloc(scope, block, size);
  return block;
}

template <void*& original, typename... Rest>
void on_free(void* block, Rest... rest) {
  if (block == nullptr) return real<void(void*, Rest...)>(original)(block, rest...);
  const ErrnoKept kept;  // free() keeps it since glibc 2.33: so must we
  Entered scope;
  record_host_free(scope.hook, block);
  real<void(void*, Rest...)>(original)(block, rest...);
}

// -- operator new and delete ----------------------------------------------------------------------
// Where the program's allocator brings its own (jemalloc, tcmalloc, mimalloc), they do not call
// malloc. They may throw: the scope is left on the way.

template <void*& original, typename... Rest>
void* on_new(size_t size, Rest... rest) {
  Entered scope(MEMSCOPE_CALLER());
  void* block = real<void*(size_t, Rest...)>(original)(size, rest...);
  note_alloc(scope, block, size);
  return block;
}

// -- mappings -------------------------------------------------------------------------------------

// Where the allocator's own code lies, unless that is the program itself: its calls of mmap are not
// the program's. They may come from inside the loader, before this thread's TLS is there, so
// nothing of ours is touched for them.
std::atomic<uintptr_t> allocator_begin{0}, allocator_end{0};

bool by_allocator(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return at - allocator_begin.load(std::memory_order_relaxed) <
         allocator_end.load(std::memory_order_relaxed) -
             allocator_begin.load(std::memory_order_relaxed);
}

bool is_memory(int protection, int flags) {
  return (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_NORESERVE) == 0 && protection != PROT_NONE;
}

// off_t and off64_t are one type on 64-bit machines.
template <void*& original>
void* on_mmap(void* wanted, size_t size, int protection, int flags, int file, off_t offset) {
  const auto call = [&] {
    return real<void*(void*, size_t, int, int, int, off_t)>(original)(wanted, size, protection,
                                                                      flags, file, offset);
  };
  if (by_allocator(__builtin_return_address(0))) return call();
  Entered scope(MEMSCOPE_CALLER());
  const auto note = [&](void* mapping) {
    if (mapping == MAP_FAILED || !is_memory(protection, flags)) return;
    const ErrnoKept kept;
    record_mapping(scope.hook, mapping, size);
  };
  if ((flags & MAP_FIXED) == 0) {
    void* mapping = call();
    note(mapping);
    return mapping;
  }
  const int before = errno;  // it replaces what is there
  UnmapScope replaced(scope.hook, wanted, size);
  errno = before;
  void* mapping = call();
  {
    const ErrnoKept kept;
    if (mapping == MAP_FAILED) {
      replaced.failed();
    } else {
      replaced.done();
    }
  }
  note(mapping);
  return mapping;
}

int on_munmap(void* addr, size_t size) {
  const auto call = [&] { return real<int(void*, size_t)>(real_munmap)(addr, size); };
  if (by_allocator(__builtin_return_address(0))) return call();
  Entered scope(MEMSCOPE_CALLER());
  const int before = errno;
  UnmapScope gone(scope.hook, addr, size);
  errno = before;
  const int result = call();
  const ErrnoKept kept;
  if (result != 0) {
    gone.failed();
  } else {
    gone.done();
  }
  return result;
}

void* on_mremap(void* old, size_t old_size, size_t size, int flags, ...) {
  // The fifth argument is there where the flag says so; reading it where it is not is harmless in
  // both machines' calling conventions, and it is passed on only to be ignored.
  va_list arguments;
  va_start(arguments, flags);
  void* wanted = va_arg(arguments, void*);
  va_end(arguments);
  const auto call = [&] {
    return real<void*(void*, size_t, size_t, int, ...)>(real_mremap)(old, old_size, size, flags,
                                                                     wanted);
  };
  if (by_allocator(__builtin_return_address(0))) return call();
  Entered scope(MEMSCOPE_CALLER());
  const int before = errno;
  UnmapScope gone(scope.hook, old, old_size);
  // At a place that was asked for it replaces what is there.
  UnmapScope replaced(scope.hook, wanted, (flags & MREMAP_FIXED) != 0 ? size : 0);
  errno = before;
  void* mapping = call();
  const ErrnoKept kept;
  if (mapping == MAP_FAILED) {
    replaced.failed();
    gone.failed();
    return mapping;
  }
  // What was no memory of the program's before (a file, a reservation) is none now.
  const bool known = gone.any();
  gone.done();
  replaced.done();
  if (known) record_mapping(scope.hook, mapping, size);
  return mapping;
}

template <typename Function>
void* entry(Function* function) {
  return reinterpret_cast<void*>(function);
}

using Align = std::align_val_t;
using NoThrow = const std::nothrow_t&;

void *new_1, *new_2, *new_3, *new_4, *new_5, *new_6, *new_7, *new_8;
void *delete_1, *delete_2, *delete_3, *delete_4, *delete_5, *delete_6, *delete_7, *delete_8,
    *delete_9, *delete_10, *delete_11, *delete_12;

constexpr size_t kMallocIndex = 0;

// Made at its first use: the agent's constructor asks for it, perhaps before this file's own
// constructors have run.
std::span<const SymbolHook> table() {
  static const SymbolHook kHooks[] = {
      {"malloc", entry(on_malloc), &real_malloc, nullptr},
      {"calloc", entry(on_calloc), &real_calloc, nullptr},
      {"realloc", entry(on_realloc), &real_realloc, nullptr},
      {"reallocarray", entry(on_reallocarray), &real_reallocarray, nullptr},
      {"posix_memalign", entry(on_posix_memalign), &real_posix_memalign, nullptr},
      {"aligned_alloc", entry(on_aligned<real_aligned_alloc>), &real_aligned_alloc, nullptr},
      {"memalign", entry(on_aligned<real_memalign>), &real_memalign, nullptr},
      {"valloc", entry(on_paged<real_valloc>), &real_valloc, nullptr},
      {"pvalloc", entry(on_paged<real_pvalloc>), &real_pvalloc, nullptr},
      {"free", entry(on_free<real_free>), &real_free, nullptr},
      {"cfree", entry(on_free<real_cfree>), &real_cfree, nullptr},
      {"free_sized", entry(on_free<real_free_sized, size_t>), &real_free_sized, nullptr},
      {"free_aligned_sized", entry(on_free<real_free_aligned_sized, size_t, size_t>),
       &real_free_aligned_sized, nullptr},
      {"mmap", entry(on_mmap<real_mmap>), &real_mmap, nullptr},
      {"mmap64", entry(on_mmap<real_mmap64>), &real_mmap64, nullptr},
      {"munmap", entry(on_munmap), &real_munmap, nullptr},
      {"mremap", entry(on_mremap), &real_mremap, nullptr},
      // operator new, new[]; then with nothrow, align_val_t, both
      {"_Znwm", entry(on_new<new_1>), &new_1, nullptr},
      {"_Znam", entry(on_new<new_2>), &new_2, nullptr},
      {"_ZnwmRKSt9nothrow_t", entry(on_new<new_3, NoThrow>), &new_3, nullptr},
      {"_ZnamRKSt9nothrow_t", entry(on_new<new_4, NoThrow>), &new_4, nullptr},
      {"_ZnwmSt11align_val_t", entry(on_new<new_5, Align>), &new_5, nullptr},
      {"_ZnamSt11align_val_t", entry(on_new<new_6, Align>), &new_6, nullptr},
      {"_ZnwmSt11align_val_tRKSt9nothrow_t", entry(on_new<new_7, Align, NoThrow>), &new_7, nullptr},
      {"_ZnamSt11align_val_tRKSt9nothrow_t", entry(on_new<new_8, Align, NoThrow>), &new_8, nullptr},
      // operator delete, delete[]; then with size, nothrow, align_val_t, both of them
      {"_ZdlPv", entry(on_free<delete_1>), &delete_1, nullptr},
      {"_ZdaPv", entry(on_free<delete_2>), &delete_2, nullptr},
      {"_ZdlPvm", entry(on_free<delete_3, size_t>), &delete_3, nullptr},
      {"_ZdaPvm", entry(on_free<delete_4, size_t>), &delete_4, nullptr},
      {"_ZdlPvRKSt9nothrow_t", entry(on_free<delete_5, NoThrow>), &delete_5, nullptr},
      {"_ZdaPvRKSt9nothrow_t", entry(on_free<delete_6, NoThrow>), &delete_6, nullptr},
      {"_ZdlPvSt11align_val_t", entry(on_free<delete_7, Align>), &delete_7, nullptr},
      {"_ZdaPvSt11align_val_t", entry(on_free<delete_8, Align>), &delete_8, nullptr},
      {"_ZdlPvmSt11align_val_t", entry(on_free<delete_9, size_t, Align>), &delete_9, nullptr},
      {"_ZdaPvmSt11align_val_t", entry(on_free<delete_10, size_t, Align>), &delete_10, nullptr},
      {"_ZdlPvSt11align_val_tRKSt9nothrow_t", entry(on_free<delete_11, Align, NoThrow>), &delete_11,
       nullptr},
      {"_ZdaPvSt11align_val_tRKSt9nothrow_t", entry(on_free<delete_12, Align, NoThrow>), &delete_12,
       nullptr},
  };
  return kHooks;
}

}  // namespace

std::span<const SymbolHook> hooks() {
  return table();
}

void changed() noexcept {
  if (!elf_patch::state(table()[kMallocIndex]).found) return;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        const auto code = reinterpret_cast<uintptr_t>(real_malloc);
        uintptr_t begin = UINTPTR_MAX, end = 0;
        for (size_t i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t from = info->dlpi_addr + segment.p_vaddr;
          begin = from < begin ? from : begin;
          end = from + segment.p_memsz > end ? from + segment.p_memsz : end;
        }
        if (code < begin || code >= end) return 0;
        const bool program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
        allocator_begin.store(begin, std::memory_order_relaxed);
        allocator_end.store(program ? begin : end, std::memory_order_relaxed);
        return 1;
      },
      nullptr);
}

}  // namespace memscope::capture::host_source
