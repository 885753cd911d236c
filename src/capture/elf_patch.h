// GOT patching at run time: makes every loaded object's calls of a symbol reach a replacement.
//
// Guarantees
//  * Originals come from dlsym on the object that defines the symbol, never from a GOT slot (with
//    lazy binding a slot may hold a PLT stub that would lose the hook after one call).
//  * RELRO pages are made writable for the store only and made read-only again.
//  * An object is looked at once: names of its imports (the symbols its GNU hash table leaves out)
//    are compared, hash hits are added (objects that call themselves), then its relocations
//    (JUMP_SLOT, GLOB_DAT, absolute) are scanned by symbol index.
//  * restore() writes back only slots that still hold our pointer, in objects still mapped.
//  * The agent's own object, the loader and the vdso are never patched. dlopen is not wrapped: that
//    would break its caller's RUNPATH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace memscope::capture {

struct SymbolHook {
  const char* symbol;  // mangled name
  void* replacement;
  void** original;         // set before the first slot is patched; null symbol = not found yet
  const char* defined_in;  // file name prefix of the object that defines it ("libc10.so"), or null
                           // for the first object in load order that does
};

struct PatchCounts {
  size_t objects_seen = 0, objects_patched = 0, slots_patched = 0;
  size_t slots_restored = 0, slots_left = 0;  // left: changed by others, or object unmapped
};

namespace elf_patch {

// Adds hooks (static storage) to the set. Call before refresh().
void add(std::span<const SymbolHook> hooks);
// Patches objects loaded since the last call; returns quickly where the loader's counters say there
// are none. May be called from any thread; a second caller returns at once.
void refresh() noexcept;
void restore() noexcept;
PatchCounts counts() noexcept;
// After fork() in the child: nobody holds the lock.
void reset_lock_after_fork() noexcept;

}  // namespace elf_patch
}  // namespace memscope::capture
