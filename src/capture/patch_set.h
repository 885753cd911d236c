// The book-keeping of elf_patch: which hooks there are, which objects were looked at, which slots
// hold our pointers. Not thread-safe: elf_patch's lock guards it, but for what is atomic.
//
// Guarantees
//  * No malloc, no loader call: everything here may run inside a dl_iterate_phdr call-back, which
//    holds a loader lock.
//  * Memory of an object is read or written only between begin_pass() and end of that call-back,
//    for objects that the loader is just then showing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/elf_object.h"
#include "capture/elf_patch.h"
#include "capture/mapped_array.h"

namespace memscope::capture {

class PatchSet {
 public:
  static constexpr size_t kMaxHooks = 256;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Hook {
    const SymbolHook* spec = nullptr;
    uint32_t hash = 0;
    std::atomic<bool> found{false};
    bool fresh = false;          // found since the last patching pass: look at every object for it
    uint32_t definer = kNone;    // object that defines it
    uint32_t candidate = kNone;  // object just seen to define it; its path is in `paths`
    size_t path = 0;
    std::atomic<size_t> slots{0};
    std::atomic<const char*> file{""};
  };

  bool add(const SymbolHook& spec);
  size_t hook_count() const { return hook_count_.load(std::memory_order_acquire); }
  Hook& hook(size_t index) { return hooks_[index]; }

  // First pass over the loader's list: note_object for each, then forget_absent.
  void begin_pass();
  // Registers the object and notes the hooks still without an original that it defines; looks into
  // objects known already only if `look_again`.
  void note_object(const dl_phdr_info& info, bool look_again);
  // Drops what is no longer loaded. True where a hook lost the object that defined it.
  bool forget_absent();
  const char* candidate_path(const Hook& hook) const { return &paths_[hook.path]; }

  // Second pass. Slots that no longer hold our pointer (a lazy look-up that overtook us, an object
  // loaded again at its old place) make their object be looked at anew. True if there is work.
  bool verify();
  void patch_object(const dl_phdr_info& info);
  void end_patching();  // brings the counters up to date

  // Writes the originals back into the slots of this object that hold our pointers.
  void restore_object(const dl_phdr_info& info);
  void forget_everything();
  void look_at_everything_again();

  PatchCounts counts() const;

 private:
  struct Object {
    uintptr_t base;
    uint64_t identity;
    bool alive, present, scanned, skipped;
  };
  struct Slot {
    uintptr_t address;
    uint32_t hook, object;
    bool relro;
  };
  struct Match {
    uint32_t symbol, hook;
  };
  // The first eight bytes of a name, its end included, and which of them it has.
  struct NamePrefix {
    uint64_t bytes, mask;
    friend bool operator==(const NamePrefix&, const NamePrefix&) = default;
  };
  class PageWriter;

  uint32_t find_object(const dl_phdr_info& info, bool insert);
  bool should_skip(const dl_phdr_info& info) const;
  size_t find_matches(const ElfObject& object, bool fresh_only);
  static uint64_t first_bytes(const char* name);
  bool may_be_hooked(const char* name) const;
  bool may_replace(const ElfObject& object, uint32_t object_index, const Match& match,
                   uintptr_t value, bool jump_slot) const;

  Hook hooks_[kMaxHooks];
  std::atomic<size_t> hook_count_{0};
  NamePrefix prefixes_[kMaxHooks] = {};  // each once; the first test of an import's name
  size_t prefix_count_ = 0;
  bool any_fresh_ = false;  // in the pass under way
  MappedArray<Object> objects_;
  MappedArray<Slot> slots_;
  MappedArray<Match> matches_;
  MappedArray<char> paths_;
  uint32_t next_object_ = 0;  // where the loader's next object is expected: it keeps its order
  std::atomic<size_t> objects_seen_{0}, objects_patched_{0}, slots_patched_{0}, slots_refused_{0},
      slots_restored_{0}, slots_left_{0};
};

}  // namespace memscope::capture
