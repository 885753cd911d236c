// The one symbol the agent exports, and what is behind it. Python calls it through ctypes; a second
// copy of the agent finds it and stands down; the launcher only loads it.
//
// The table only grows at its end; `size` tells how much of it there is. No function throws. A
// function that returns int gives 0 for success; otherwise last_error() has one line for the user.
// All may be called from any thread. Those marked [GIL] must be called with the GIL held
// (ctypes.PyDLL); the others are called without it (ctypes.CDLL).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct msmemscope_agent_v1 {
  uint32_t version;  // 1
  uint32_t size;     // bytes of this table
  const char* (*agent_version)(void);
  const char* (*last_error)(void);  // of the last call that failed, by whatever thread

  // Settings, before the trace is made. Keys: output_path, run_id, rank, slab_dir, slab_bytes,
  // device ("auto" or a list as --device; "host" among it switches the host source on), host_sample
  // (bytes, 0 = every block; before the host source is first on), source_bytes (0 = keep no
  // sources), call_stack (as --call-stack; native stacks follow at the next start()),
  // max_trace_size (bytes, or with K, M, G, T; 0 = the default), command (msmemscope's own file,
  // which folds a trace that grows too large). Unknown keys and bad values are errors. Settings
  // made later take effect with the next trace.
  int (*configure)(const char* key, const char* value);
  // Puts the hooks in: seeds the shadow map from now on. Idempotent.
  int (*install)(void);
  // Looks for newly loaded objects and patches them. Cheap when there are none.
  int (*refresh)(void);
  int (*start)(void);     // begin recording: writes a window and seeds. Idempotent.
  int (*stop)(void);      // end recording; returns once the log on disk holds everything
  int (*shutdown)(void);  // stop, restore every slot, delete the slab
  int (*exiting)(void);   // the process ends: write window "exit", drain, delete the slab
  // A step boundary: k ends now. `source` is StepSource; `name` may be null.
  int (*step)(uint32_t source, uint64_t index, uint64_t optimizer, const char* name);
  // Any other cold record of the table: its u64/i64 fields in order, then its strings in order
  // (UTF-8, with lengths). Counts that do not fit the kind are errors.
  int (*record)(uint32_t kind, const uint64_t* numbers, size_t number_count,
                const char* const* strings, const size_t* lengths, size_t string_count);
  // [GIL] Checks the raw frame walk against the public API on the calling thread's stack. Switches
  // Python stacks on where it agrees; else leaves them off with a notice. Returns 0 if on.
  int (*python_stacks_on)(void);
  void (*python_finalizing)(void);  // stop walking, for good
  // [GIL] Test aid: the calling thread's stack by the raw walk, "file:line:function\n" innermost
  // first, into `out`; returns the length needed.
  size_t (*python_stack_text)(char* out, size_t size);
  void (*fork_before)(void);
  void (*fork_after_parent)(void);
  void (*fork_after_child)(void);
  // A block that was alive before the hooks came: seeded once, as preexisting. `where` is
  // Where::packed(). Ignored for an address that is already known.
  int (*preexisting)(uint64_t addr, uint64_t size, uint32_t where);
  // A JSON object: directory of the trace ("" if none yet), recording, hooks patched, live blocks,
  // events by kind, dropped, torch. Returns the length needed.
  size_t (*status)(char* out, size_t size);
  // As stop(), where the program is ending: what ended recording was the exit. What is recorded
  // about the end (holders, settings) may follow, then exiting().
  int (*stop_at_exit)(void);
};

__attribute__((visibility("default"))) const msmemscope_agent_v1* msmemscope_agent(void);
}
