// GOT patching at run time: makes every loaded object's calls of a symbol reach a replacement.
//
// Guarantees
//  * Originals come from dlsym on the object that defines the symbol, never from a GOT slot (with
//    lazy binding a slot may hold a PLT stub that would lose the hook after one call).
//  * RELRO pages are made writable for the store only and made read-only again.
//  * An object is looked at once: names of its imports (the symbols its GNU hash table leaves out)
//    are compared, hash hits are added (objects that call themselves), then its relocations
//    (JUMP_SLOT, GLOB_DAT, absolute) are scanned by symbol index.
//  * A slot is patched only where it holds the original, or a stub of its own object that would
//  look
//    it up (lazy binding): what somebody else put there, another copy of the library, and a weak
//    import that is absent stay as they are.
//  * Objects are touched only while the loader cannot unmap them, and only once it has relocated
//    them.
//  * restore() writes back only slots that still hold our pointer, in objects still mapped.
//  * refresh() and the dlsym hook never call malloc, but for the loader's own look-up when a hook's
//    defining object appears; errno is kept.
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
  size_t objects_seen = 0, objects_patched = 0, slots_patched = 0;  // now
  size_t slots_refused = 0;                   // the kernel would not make the page writable
  size_t slots_restored = 0, slots_left = 0;  // by restore(); left: changed by others since
};

// What became of one hook.
struct HookState {
  bool found = false;     // its original is known
  size_t slots = 0;       // patched now
  const char* file = "";  // path of the object that defines it; "" for the program itself
};

namespace elf_patch {

// Adds hooks (static storage) to the set; refresh() then patches for them. `changed` is called
// after each refresh that patched or forgot something, by the thread that did it, with no lock
// held. False where the set is full.
bool add(std::span<const SymbolHook> hooks, void (*changed)() noexcept = nullptr);
// Patches objects loaded since the last call; returns quickly where the loader's counters say there
// are none. May be called from any thread; a second caller returns at once.
void refresh() noexcept;
// Also stops the dlsym hook from patching new objects, until refresh() is called again.
void restore() noexcept;
// By the hook's symbol and replacement; all empty for a hook not added.
HookState state(const SymbolHook& hook) noexcept;
PatchCounts counts() noexcept;
// After fork() in the child: nobody holds the lock.
void reset_lock_after_fork() noexcept;

}  // namespace elf_patch
}  // namespace memscope::capture
