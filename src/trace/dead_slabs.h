// The slabs of processes that are gone: what every process does at its clean end (its slots go into
// the log, then the slab is deleted), done for those that could not: os._exit(), a signal.
//
//   run-<id>/<process>/  trace.msm + hot.slab  -->  trace.msm (sealed)
//
// Guarantees
//  * Nothing is lost, whenever this is killed: chunks are appended first, then the header is
//  marked,
//    then the slab is deleted; until then a reader finds every byte in the log, the slab or both,
//    and the next call goes on from there.
//  * Only where the process is certainly gone (process_identity.h), by one at a time (a lock on the
//    log), and only where log and slab are sound: damage is left as it is, for the reader to tell.
//  * No allocation but zstd's and the C library's for reading a directory, no exceptions: the agent
//    uses it too.
#pragma once

#include <atomic>
#include <cstdint>

namespace memscope {

enum class SealResult : uint8_t {
  kSealed,  // the slab is in the log, and deleted
  kNoSlab,
  kAlive,  // or not certainly gone
  kLeft,   // another is at it, the disk is full, or something is damaged
};

// One process's directory. `elsewhere`: also looks where meta.json says that the slab is.
SealResult seal_dead_slab(const char* process_directory, bool elsewhere) noexcept;

struct SealCounts {
  uint32_t sealed = 0;
  uint32_t alive = 0;  // slabs that are still in use, or may be
  uint32_t left = 0;
};

// Every process of a run. Ends early where `stop` becomes other than 0; what is not done then is
// counted as left.
SealCounts seal_dead_slabs(const char* run_directory, bool elsewhere,
                           const std::atomic<uint32_t>* stop = nullptr) noexcept;

}  // namespace memscope
