// The host source (--device=host): what the program takes from malloc and its kin and from mmap.
//
//   watched through                                            recorded as
//   malloc calloc realloc reallocarray posix_memalign          layer host, a block each
//   aligned_alloc memalign valloc pvalloc free free_sized
//   free_aligned_sized cfree
//   operator new and delete, all forms                         the same block: where they call
//                                                              malloc, that call is inside them
//   mmap mmap64 munmap mremap                                  layer host: anonymous mappings that
//                                                              may be touched (not PROT_NONE, not
//                                                              MAP_NORESERVE)
//
// Guarantees
//  * Nothing is patched unless asked for.
//  * Of nested calls the outermost is the event: jemalloc's, tcmalloc's and mimalloc's own mappings
//    are no blocks beside theirs.
//  * A hook calls nothing that allocates. errno is as the real function left it. A signal handler
//    that allocates inside a hook is let through unrecorded.
//  * An alloc is recorded after the real call, a free and realloc's old block before it; what then
//    fails is undone. munmap and mremap of a part leave the rest.
//  * What a hooked function allocates beside its block (the exception of an operator new that
//    fails) is let through unrecorded; its free is one of an unknown address.
//
// Not seen: allocations by a library's constructors while it is being loaded, by libc's and the
// loader's own mappings (thread stacks), through pointers taken before; brk, shmat, files mapped.
#pragma once

#include <span>

#include "capture/elf_patch.h"

namespace memscope::capture::host_source {

// For elf_patch::add(hooks(), changed).
std::span<const SymbolHook> hooks();
// To be called after each refresh that changed something.
void changed() noexcept;

}  // namespace memscope::capture::host_source
