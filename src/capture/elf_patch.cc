#include "capture/elf_patch.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "capture/dlsym_hook.h"
#include "capture/patch_set.h"
#include "capture/recorder.h"

namespace memscope::capture::elf_patch {

namespace {

// The loader counts what it ever loaded and unloaded.
struct LoaderCounters {
  unsigned long long adds = 0, subs = 0;
  friend bool operator==(const LoaderCounters&, const LoaderCounters&) = default;
};

constexpr size_t kMaxListeners = 16;
// Passes that another thread's dlopen may spoil before we leave it to the next call.
constexpr int kMaxAttempts = 8;

constinit PatchSet patch_set;
std::atomic<bool> locked{false};
std::atomic<bool> asked_again{false};  // somebody came while the lock was held
std::atomic<bool> armed{false};        // between refresh() and restore()
std::atomic<unsigned long long> seen_adds{0};
// Guarded by the lock.
LoaderCounters seen;
bool hooks_added = false;
void (*listeners[kMaxListeners])() noexcept;
std::atomic<size_t> listener_count{0};

const SymbolHook kDlsymHook[] = {
    {"dlsym", reinterpret_cast<void*>(&memscope_dlsym_entry), &memscope_dlsym_original, nullptr}};

class ErrnoKeeper {
 public:
  ErrnoKeeper() = default;
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_ = errno;
};

bool try_lock() {
  return !locked.exchange(true, std::memory_order_acquire);
}
void unlock() {
  locked.store(false, std::memory_order_release);
}
void wait_for_lock() {
  while (!try_lock()) sched_yield();
}

LoaderCounters counters_of(const dl_phdr_info& info) {
  return {info.dlpi_adds, info.dlpi_subs};
}

LoaderCounters loader_counters() {
  LoaderCounters counters;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<LoaderCounters*>(out) = counters_of(*info);
        return 1;
      },
      &counters);
  return counters;
}

// dl_iterate_phdr shows objects that another thread's dlopen has mapped but not yet relocated. A
// dlopen of our own waits for that one to end; what is in the list before it is then ready.
void wait_for_pending_dlopen() {
  if (void* self = dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD)) dlclose(self);
}

// One walk over the loader's list, given up if the list is not the expected one.
struct Pass {
  LoaderCounters expected;
  bool look_again = false;
  bool first = true;
  bool stale = false;
};

bool note_objects(Pass pass) {
  patch_set.begin_pass();
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& p = *static_cast<Pass*>(data);
        p.stale = counters_of(*info) != p.expected;
        if (p.stale) return 1;
        patch_set.note_object(*info, p.look_again);
        return 0;
      },
      &pass);
  return !pass.stale;
}

bool patch_objects(Pass pass) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& p = *static_cast<Pass*>(data);
        p.stale = counters_of(*info) != p.expected;
        if (p.stale) return 1;
        if (p.first && !patch_set.verify()) return 1;
        p.first = false;
        patch_set.patch_object(*info);
        return 0;
      },
      &pass);
  if (!pass.stale) patch_set.end_patching();
  return !pass.stale;
}

// Paths that state() may have handed out: each is kept once, for good.
struct KnownFile {
  KnownFile* next;
  char path[1];  // as long as it is
};
KnownFile* known_files = nullptr;

const char* keep_path(const char* path) {
  for (KnownFile* file = known_files; file != nullptr; file = file->next) {
    if (strcmp(file->path, path) == 0) return file->path;
  }
  const size_t bytes = strlen(path) + 1;
  auto* file = static_cast<KnownFile*>(malloc(offsetof(KnownFile, path) + bytes));
  if (file == nullptr) return "";
  memcpy(file->path, path, bytes);
  file->next = known_files;
  known_files = file;
  return file->path;
}

// Asks the loader for the originals of the hooks whose defining object was just seen. Not inside
// dl_iterate_phdr: that holds a lock which the loader takes last.
void resolve_originals() {
  for (size_t i = 0; i < patch_set.hook_count(); ++i) {
    PatchSet::Hook& hook = patch_set.hook(i);
    if (hook.candidate == PatchSet::kNone) continue;
    const char* path = patch_set.candidate_path(hook);
    void* handle = dlopen(path[0] == '\0' ? nullptr : path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* original = dlsym(handle, hook.spec->symbol);
    dlclose(handle);
    if (original == nullptr || original == hook.spec->replacement) continue;
    __atomic_store_n(hook.spec->original, original, __ATOMIC_RELEASE);
    hook.file = keep_path(path);
    hook.definer = hook.candidate;
    hook.fresh = true;
    hook.found = true;
  }
}

// True if anything may have changed.
bool refresh_locked() {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const LoaderCounters now = loader_counters();
    if (now == seen && !hooks_added) {
      const size_t before = patch_set.counts().slots_patched;
      if (!patch_objects({.expected = now})) continue;
      return patch_set.counts().slots_patched != before;
    }
    wait_for_pending_dlopen();
    if (!note_objects({.expected = now, .look_again = hooks_added})) continue;
    if (patch_set.forget_absent() && !note_objects({.expected = now, .look_again = true})) continue;
    resolve_originals();
    if (!patch_objects({.expected = now})) continue;
    seen = now;
    hooks_added = false;
    seen_adds.store(now.adds, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void refresh_and_tell() {
  const ErrnoKeeper keeper;
  const HookScope own;  // what this allocates is not the program's
  do {
    if (!try_lock()) {
      asked_again = true;
      return;
    }
    asked_again = false;
    const bool changed = armed && refresh_locked();
    unlock();
    for (size_t i = 0; changed && i < listener_count; ++i) listeners[i]();
  } while (asked_again);
}

}  // namespace

bool add(std::span<const SymbolHook> hooks, void (*changed)() noexcept) {
  wait_for_lock();
  bool fits = patch_set.add(kDlsymHook[0]);
  for (const SymbolHook& hook : hooks) fits = patch_set.add(hook) && fits;
  bool known = changed == nullptr;
  for (size_t i = 0; i < listener_count; ++i) known = known || listeners[i] == changed;
  if (!known && listener_count < kMaxListeners) {
    listeners[listener_count] = changed;
    ++listener_count;
  }
  hooks_added = true;
  unlock();
  return fits;
}

void refresh() noexcept {
  armed = true;
  refresh_and_tell();
}

void restore() noexcept {
  const ErrnoKeeper keeper;
  wait_for_lock();
  armed = false;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        patch_set.restore_object(*info);
        return 0;
      },
      nullptr);
  patch_set.forget_everything();
  seen = {};
  seen_adds = 0;
  hooks_added = true;
  unlock();
}

HookState state(const SymbolHook& hook) noexcept {
  for (size_t i = 0; i < patch_set.hook_count(); ++i) {
    const PatchSet::Hook& known = patch_set.hook(i);
    if (known.spec != &hook) continue;
    return {.found = known.found, .slots = known.slots, .file = known.file};
  }
  return {};
}

PatchCounts counts() noexcept {
  return patch_set.counts();
}

void reset_lock_after_fork() noexcept {
  if (!locked) return;
  // The parent's thread that held it was somewhere in the middle: look at everything again. Slots
  // are noted before they are written, so none is forgotten.
  patch_set.look_at_everything_again();
  hooks_added = true;
  unlock();
}

}  // namespace memscope::capture::elf_patch

extern "C" __attribute__((visibility("hidden"))) void memscope_dlsym_check(void* handle) noexcept {
  using namespace memscope::capture::elf_patch;  // NOLINT(google-build-using-namespace)
  // RTLD_NEXT is what interposers ask with, malloc replacements from inside malloc among them.
  if (handle == RTLD_NEXT || !armed.load(std::memory_order_relaxed)) return;
  const ErrnoKeeper keeper;
  if (loader_counters().adds != seen_adds.load(std::memory_order_relaxed)) refresh_and_tell();
}
