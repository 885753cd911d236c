// What is loaded where: which object an address of code belongs to, and where its call frame
// information is. Renewed from the loader's list; read without a lock. HOT PATH: find().
//
//   modules  [ a | - | b | c ]      an object keeps its place from load to unload
//   orders   [ c a b ] [ ... ]      places by address; two, in force by turns: version % 2
//
// An update writes new objects into free places and the order not in force, and then adds 1 to the
// version. find() copies an entry out and checks that the version is still the one it began with.
//
// Guarantees
//  * An object has a serial of its own while it is loaded. What comes later at the same address has
//    another one, unless it is the same file at the same place again.
//  * find() calls nothing and takes no lock; overtaken by an update it says "none".
//  * At most kMaxModules are known at once, more are counted. A name is kept once and for good,
//    kNameBytes of them in all.
//  * errno is kept; malloc is not called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "capture/unwind_cfi.h"

struct dl_phdr_info;

namespace memscope::capture {

struct Module {
  static constexpr size_t kMaxBuildId = 20;  // a SHA-1; longer ones are cut

  uint64_t begin = 0, end = 0;  // all its segments lie in between
  uint64_t bias = 0;            // run-time address minus the address in the file
  uint64_t serial = 0;          // 1, 2, ...; 0 = a free place
  uint64_t identity = 0;        // of what is loaded: name, program headers, build-id
  const char* path = "";        // kept for good
  CfiSection cfi;
  uint32_t build_id_size = 0;
  uint8_t build_id[kMaxBuildId] = {};
};
static_assert(std::is_trivially_copyable_v<Module> && sizeof(Module) % sizeof(uint64_t) == 0);

class ModuleMap {
 public:
  static constexpr size_t kMaxModules = 2048;
  static constexpr size_t kNameBytes = size_t{112} << 10;
  struct Place {
    uint64_t begin, module;
  };
  static constexpr size_t kBytes = kMaxModules * (sizeof(Module) + 3 * sizeof(Place)) + kNameBytes;

  // Zeroed memory of kBytes, kept for good, touched as far as it is needed.
  void attach(void* memory) noexcept;
  bool attached() const { return modules_ != nullptr; }

  // Takes over what the loader has now. True where something is gone that was there: what was
  // concluded from addresses before this returned holds no longer. In a signal handler that came
  // into another update it does nothing, and that one starts again.
  bool update() noexcept;

  // The loader has loaded or unloaded something since the last update. Takes the loader's lock.
  bool loader_changed() const noexcept;

  // Object that `pc` lies in.
  bool find(uint64_t pc, Module* out) const noexcept;

  // Calls visit(module) for all that is known now; false where an update came in between. Not for
  // the hot path.
  template <typename Visit>
  bool for_each(Visit visit) const {
    const uint64_t version = version_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count_of(version); ++i) {
      Module module;
      if (!copy(version, i, &module)) return false;
      visit(module);
    }
    return true;
  }

  // Objects that found no place at the last update.
  size_t left_out() const { return left_out_.load(std::memory_order_relaxed); }
  // In a forked child: a thread that was updating is not there. True where there was one; then
  // nothing is known until the next update.
  bool reset_after_fork() noexcept;

 private:
  struct Pass;

  bool lock();
  bool build();
  void note(const dl_phdr_info& info, Pass& pass);
  const char* keep_name(const char* name);
  size_t count_of(uint64_t version) const {
    return counts_[version % 2].load(std::memory_order_acquire);
  }
  const Place* order_of(uint64_t version) const { return orders_[version % 2]; }
  bool copy(uint64_t version, size_t index, Module* out) const;

  Module* modules_ = nullptr;
  Place* orders_[2] = {};
  Place* sorting_ = nullptr;  // under the lock
  std::atomic<size_t> counts_[2] = {};
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> locked_{false}, asked_again_{false};
  std::atomic<size_t> left_out_{0};
  std::atomic<uint64_t> loads_{0};  // what the loader's counters said last, added up
  uint64_t next_serial_ = 1;
  size_t places_used_ = 0;  // all modules are among the first so many
  char* names_ = nullptr;
  size_t names_used_ = 0;
  const char* program_ = "";
};

}  // namespace memscope::capture
