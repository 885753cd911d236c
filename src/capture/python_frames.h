// The walk itself, over memory that is read through `Memory`: directly on the hot path, guarded
// while check() still has to find out whether the layout is right. HOT PATH.
//
//   PyThreadState --head--> newest frame --previous--> … --previous--> null
//
// With kEntries, a place where the interpreter's loop was entered from C follows the frames that
// the loop runs: { address on the C stack | kEntryMark, 0 }; the address lies in the loop's own
// native frame, or is 0 where the version keeps none there (up to 3.10).
//
// Guarantees
//  * Frames come out innermost first and equal sys._getframe's chain: C-stack and interpreter shims
//    are dropped, and frames that have not come to their first RESUME (making cells or a generator;
//    CPython's _PyFrame_IsIncomplete).
//  * Over memory that is not trusted it ends after a bounded number of steps, whatever is there.
//  * The hash depends on every frame's code, instruction and epoch, their order, number and on
//    whether frames are missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "capture/python_epochs.h"
#include "capture/python_layout.h"
#include "capture/python_stack.h"

namespace memscope::capture {

struct DirectMemory {
  static constexpr bool kTrusted = true;
  template <class T>
  [[gnu::always_inline]] bool load(uint64_t address, T* value) {
    std::memcpy(value, reinterpret_cast<const void*>(address), sizeof *value);
    return true;
  }
};

// Odd constants of high entropy (digits of pi and e).
inline constexpr uint64_t kHashCode = 0x243f6a8885a308d3;
inline constexpr uint64_t kHashInstruction = 0x13198a2e03707345;
inline constexpr uint64_t kHashPlace = 0xb7e151628aed2a6b;

// A 64 by 64 bit product folded to 64 bits: every bit of both sides reaches every bit.
[[gnu::always_inline]] inline uint64_t folded_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A sum of one product a frame, each with its place in it: the products do not wait for each other
// or for the pointer chase, only the additions are a chain.
class StackHash {
 public:
  [[gnu::always_inline]] void add(uint64_t code, uint64_t instruction, uint64_t epoch) {
    value_ += folded_product(code ^ place_, (instruction + (epoch << 32)) ^ kHashInstruction);
    place_ += kHashPlace;
  }
  [[gnu::always_inline]] uint64_t finish(bool truncated) const {
    return folded_product(value_ ^ kHashInstruction, place_ + (truncated ? 1 : 0));
  }

 private:
  uint64_t value_ = 0;
  uint64_t place_ = kHashCode;
};

// Code objects are aligned to 16 bytes: the mark is in no code's address.
inline constexpr uint64_t kEntryMark = 1;

struct WalkResult {
  size_t count = 0;
  uint64_t hash = 0;
  bool truncated = false;
  bool readable = true;  // false: memory could not be read, the layout is wrong
};

// The frame in `frame`, if it is one that sys._getframe shows. False where memory is unreadable.
template <class Memory>
[[gnu::always_inline]] inline bool read_frame(const PythonLayout& layout, Memory& memory,
                                              uint64_t frame, RawFrame* out, bool* shown) {
  if (layout.frame_objects) {
    int32_t lasti = 0;
    const bool readable = memory.load(frame + layout.frame_code, &out->code) &&
                          memory.load(frame + layout.frame_instruction, &lasti);
    out->instruction = static_cast<uint64_t>(int64_t{lasti} * layout.lasti_bytes);
    *shown = true;
    return readable;
  }
  *shown = false;
  uint8_t owner = 0;
  if (!memory.load(frame + layout.frame_owner, &owner)) return false;
  if (owner >= kFirstOtherOwner) return true;
  uint64_t code = 0, instruction = 0;
  int32_t first_traceable = 0;
  if (!memory.load(frame + layout.frame_code, &code)) return false;
  if (layout.tagged_code) code &= ~kTagBits;
  if (!memory.load(frame + layout.frame_instruction, &instruction) ||
      !memory.load(code + layout.code_first_traceable, &first_traceable)) {
    return false;
  }
  *out = {code, instruction - code - layout.code_bytecode};
  // The count is of code units, two bytes each. A generator's frame is always complete.
  *shown = static_cast<int64_t>(out->instruction) >= int64_t{first_traceable} * 2 ||
           owner == kOwnedByGenerator;
  return true;
}

// Whether `frame`, read just now and shown or not, is the last that its loop runs, and where on the
// C stack that loop keeps something of its own. `*cframe` is 3.11's _PyCFrame, one for each loop:
// { use_tracing, current_frame, previous }; `is_entry` stands just before the frame's owner.
template <class Memory>
[[gnu::always_inline]] inline bool ends_entry(const PythonLayout& layout, Memory& memory,
                                              uint64_t frame, uint64_t* cframe, uint64_t* place) {
  *place = 0;
  if (layout.frame_objects) return true;
  uint8_t flag = 0;
  if (layout.minor > 11) {  // the loop's own shim frame
    *place = frame;
    return memory.load(frame + layout.frame_owner, &flag) && flag >= kFirstOtherOwner;
  }
  if (!memory.load(frame + layout.frame_owner - 1, &flag) || flag == 0) return false;
  *place = *cframe;
  return *cframe == 0 || memory.load(*cframe + layout.cframe_head + 8, cframe);
}

// `thread` is the calling thread's PyThreadState. `kEpochs` false: no known code has died yet.
template <bool kEpochs, bool kEntries = false, class Memory>
[[gnu::always_inline]] inline WalkResult walk_frames(const PythonLayout& layout, Memory& memory,
                                                     uint64_t thread, RawFrame* frames,
                                                     size_t max) {
  StackHash hash;
  WalkResult result;
  uint64_t frame = 0;
  result.readable = memory.load(thread + layout.thread_head, &frame);
  [[maybe_unused]] uint64_t cframe = frame;
  if (layout.head_in_cframe && frame != 0) {
    result.readable = result.readable && memory.load(frame + layout.cframe_head, &frame);
  }
  RawFrame* next = frames;
  RawFrame* const end = frames + max;
  // Garbage may be a ring. At most one shim stands between two frames of a true chain.
  [[maybe_unused]] size_t steps = 2 * max + 64;
  while (result.readable && frame != 0) {
    uint64_t previous = 0;
    RawFrame raw;
    bool shown = false;
    result.readable = memory.load(frame + layout.frame_previous, &previous) &&
                      read_frame(layout, memory, frame, &raw, &shown);
    if constexpr (!Memory::kTrusted) {
      if (steps-- == 0) result.readable = false;
      if (!result.readable) break;
    }
    if (shown) [[likely]] {
      if (next == end) {
        result.truncated = true;
        break;
      }
      *next++ = raw;
      uint64_t epoch = 0;
      if constexpr (kEpochs) epoch = python_epochs::epoch_of(raw.code);
      hash.add(raw.code, raw.instruction, epoch);
    }
    if constexpr (kEntries) {
      uint64_t place = 0;
      if (ends_entry(layout, memory, frame, &cframe, &place)) {
        if (next == end) {
          result.truncated = true;
          break;
        }
        *next++ = {place | kEntryMark, 0};
        hash.add(kEntryMark, 0, 0);
      }
    }
    frame = previous;
  }
  result.count = static_cast<size_t>(next - frames);
  result.hash = hash.finish(result.truncated);
  return result;
}

}  // namespace memscope::capture
