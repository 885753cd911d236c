// What the host source calls from inside its hooks, as recorder.h is for the others. HOT PATH.
//
// Guarantees
//  * Host blocks have maps of their own: a tensor's block and the malloc's under it have one
//  address.
//  * No trace is made for a process before kTraceAtBytes of host memory are alive that it allocated
//    itself (a fork counts from 0), or another source made one; until then only the maps are kept,
//    and what they hold is seeded into the trace when it comes.
//  * With state.host_sample, blocks are recorded by ByteSampler with their own size, and their
//    frees only where the alloc was, other frees are a look-up; readers scale (core/sampling.h).
//    Mappings are sampled alike.
//  * A block of 0 bytes counts as one byte: it has an address, and a free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/recorder.h"
#include "capture/shadow_map.h"
#include "core/where.h"

namespace memscope::capture {

inline constexpr Where kHostMemory{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
inline constexpr int64_t kTraceAtBytes = int64_t{16} << 20;

// The real call returned `addr`.
void record_host_alloc(HookScope& scope, const void* addr, uint64_t size) noexcept;
// The block at `addr` is about to be freed. What the map knew of it; addr 0 where it was unknown.
ShadowMap::Block record_host_free(HookScope& scope, const void* addr) noexcept;
// The real call failed: the block lives on.
void record_host_undo(HookScope& scope, const ShadowMap::Block& block) noexcept;

// A mapping was made.
void record_mapping(HookScope& scope, const void* addr, uint64_t size) noexcept;

// The mappings that lie in a range which is about to be unmapped, whole or in part.
//
//   UnmapScope gone(scope, addr, size);     // their frees are recorded
//   real munmap
//   gone.done() or gone.failed()            // what sticks out of the range is allocated anew,
//                                           // by the caller's stack; or the frees are undone
class UnmapScope {
 public:
  UnmapScope(HookScope& scope, const void* addr, uint64_t size) noexcept;
  void done() noexcept;
  void failed() noexcept;
  bool any() const { return count_ != 0; }

 private:
  // Mappings cut by one call; of those beyond, the parts that stay are lost.
  static constexpr size_t kMax = 64;
  HookScope& scope_;
  uint64_t from_, to_;
  ShadowMap::Block blocks_[kMax];
  size_t count_ = 0;
};

// After the slab is there, trace lock held: a seed for each block of which no event will tell.
void seed_host_blocks() noexcept;
// At the start of another window of a trace, as the other sources' blocks are seeded.
void seed_host_window(uint64_t opened_ticks) noexcept;

}  // namespace memscope::capture
