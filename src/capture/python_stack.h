// The calling thread's own Python frames, read raw: no GIL, no reference counts, no allocation.
// HOT PATH (walk, frame_key).
//
// Guarantees
//  * Off until check() has compared the walk with CPython's public API on plain, generator,
//    coroutine and call-back frames; an unknown layout stays off, with one clear line.
//  * Only the thread's own frames are read: nobody else changes them while we are inside C.
//  * After finalizing() nothing of the interpreter is read again.
//  * A code object's address may be reused after it dies. A wrapped PyCode_Type.tp_dealloc moves
//    the address's epoch on, and hash and frame_key contain it, so a cache keyed by them never
//    returns a dead function.
//  * Interpreter shim frames are dropped: what is left equals sys._getframe's chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memscope::capture {

inline constexpr size_t kMaxFrames = 1000;

struct RawFrame {
  uint64_t code;         // PyCodeObject*
  uint64_t instruction;  // offset into the code's bytecode, in bytes
};

namespace python_stack {

// [GIL] Finds the interpreter and checks the walk. Returns nullptr and switches on, or a static
// string saying why it stays off. Idempotent.
const char* check();
bool on();
void finalizing();

// Copies up to `max` frames, innermost first, and hashes them (with their epochs). 0 where the
// thread has no Python frames or the walk is off. `*truncated` where there were more.
size_t walk(RawFrame* frames, size_t max, uint64_t* hash, bool* truncated) noexcept;
// As above, with the places among them where the interpreter's loop was entered, see
// python_frames.h.
size_t walk_with_entries(RawFrame* frames, size_t max, uint64_t* hash, bool* truncated) noexcept;

// Identifies a frame for as long as its code object lives: hash of code, instruction and epoch.
uint64_t frame_key(const RawFrame& frame) noexcept;

// Name and lines of a frame, read raw. The thread must be the one that walked, still in the same
// event, so that the frame keeps its code alive.
struct Resolved {
  std::string_view file;      // co_filename, UTF-8, as the interpreter has it
  std::string_view function;  // co_qualname (3.11+), else co_name
  uint32_t line = 0;          // 1-based; 0 where the instruction has none
  uint32_t end_line = 0;      // of the instruction's source range; = line where unknown
  uint32_t first_line = 0;    // co_firstlineno
};
// `scratch` holds text that had to be converted; the views point there or into the interpreter and
// are valid until the event ends. Text that does not fit is cut at a character.
bool resolve(const RawFrame& frame, char* scratch, size_t scratch_size, Resolved* out) noexcept;
// Marks the frame's code as known, so that its death moves its epoch on. Called on resolving.

// "3.11.2", or "" where no interpreter was found.
const char* version();

// [GIL] Test aid: the calling thread's stack, "file:line:function\n" innermost first, cut and ended
// by a null character where it does not fit; "stale key:" before a frame whose frame_key() named
// another one before. Returns the length of the whole text.
size_t text(char* out, size_t size) noexcept;

}  // namespace python_stack
}  // namespace memscope::capture
