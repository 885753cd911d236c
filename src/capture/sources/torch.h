// The torch source: tensors of torch's CPU allocator, and the blocks of the pools of its other
// devices. No compile-time dependence on torch: 1.10 to the newest, by the mangled names of libc10.
//
//   what                              watched through                              recorded as
//   CPU tensors                       ProfiledCPUMemoryReporter::New / Delete      layer tensor
//   CPU storages outside the          reportMemoryUsageToProfiler(cpu), called     layer tensor
//   allocator (shared memory, files)  outside New and Delete
//   CUDA, XPU, NPU, ...               reportMemoryUsageToProfiler(device)          layer pool,
//   totals failures                          OutOfMemory, reportOutOfMemoryToProfiler     oom
//
// Guarantees
//  * CPU tensors are recorded only where New and Delete were both found and both have a slot:
//    else blocks would never die, or never be born. What is off is said in one notice.
//  * torch's exceptions pass through; the real function is always called, with what came in.
//
// Not seen (no torch function tells of it): from_numpy, frombuffer, from_dlpack, mmapped
// checkpoints, cudaMallocAsync, pluggable allocators, pinned memory.
#pragma once

#include <span>

#include "capture/elf_patch.h"

namespace memscope::capture::torch_source {

// For elf_patch::add(hooks(), changed).
std::span<const SymbolHook> hooks();
// To be called after each refresh that changed something: switches CPU tensors off, with a notice,
// where a loaded libc10 cannot be watched.
void changed() noexcept;

struct Found {
  const char* libc10 = "";  // path of the libc10 that is watched; "" before torch is loaded
  bool loaded = false;      // a libc10 is in the process, watched or not
  bool cpu = false;         // CPU tensors are being watched
  bool devices = false;     // other devices' pools are (if torch has any)
};
Found found() noexcept;

}  // namespace memscope::capture::torch_source
