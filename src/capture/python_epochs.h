// Tells apart code objects that lived at one address. HOT PATH (epoch_of).
//
// The interpreter frees a code object and gives its memory to the next one, so an address names a
// function only until its tp_dealloc. PyCode_Type's is wrapped: when a code that somebody knows by
// its address (has resolved, may have cached) dies, the address's epoch moves on.
//
//   address --hash--> known: a bit, set on resolving, never cleared
//                     epoch: a counter, one for 1/4096 of all addresses
//
// Guarantees
//  * epoch_of() of two different lives of an address differs, if the first was known.
//  * Two addresses may share a bit or a counter: then a cache misses once more than it had to, and
//    is never wrong.
//  * Until a known code has died (many programs never see that) the counters need not be touched.
//  * No lock. Deaths happen under a GIL, but sub-interpreters may have one each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/python_api.h"

namespace memscope::capture::python_epochs {

inline constexpr size_t kEpochs = 4096;

namespace detail {
extern std::atomic<uint32_t> epochs[kEpochs];
extern std::atomic<bool> any_death;
inline size_t epoch_index(uint64_t code) {
  // malloc's and pymalloc's blocks are aligned to 16 bytes.
  return ((code >> 4) ^ (code >> 16)) % kEpochs;
}
}  // namespace detail

// False: all epochs are 0. Asked once a walk.
inline bool any_death() {
  return detail::any_death.load(std::memory_order_relaxed);
}
inline uint64_t epoch_of(uint64_t code) {
  return detail::epochs[detail::epoch_index(code)].load(std::memory_order_relaxed);
}

// From now on the death of the code at this address moves its epoch on.
void know(uint64_t code) noexcept;
// Whether the code at this address has died since watch(): the proof that the wrapper is called.
void watch(uint64_t code) noexcept;
bool watched_died() noexcept;

// [GIL] Wraps PyCode_Type.tp_dealloc. nullptr, or why it cannot be. Idempotent.
const char* wrap_dealloc(const PythonApi& api, int python_minor);
// Puts the original back if the slot still holds ours. The wrapper itself stays valid for ever, so
// whoever wrapped it in turn may go on calling it.
void unwrap_dealloc() noexcept;

// As if the code at this address died (the wrapper's part of it).
void note_death(uint64_t code) noexcept;

}  // namespace memscope::capture::python_epochs
