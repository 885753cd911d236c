// What the agent was told: by configure(), else by the environment. Read when a trace is made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memscope::capture {

struct Settings {
  static constexpr size_t kPathMax = 4096;
  char output_path[kPathMax] = {};  // absolute; where run-<id>/ goes
  char run_id[128] = {};            // "" until one is decided on
  char slab_dir[kPathMax] = {};     // "" = in the process's directory, unless that is remote
  size_t slab_bytes = 0;            // 0 = the default for this kind of process
  size_t source_bytes = size_t{32} << 20;
  uint64_t max_trace_bytes = 0;  // 0 = the default (disk_budget.h)
  char command[kPathMax] = {};   // msmemscope's own file; "" = not known
  bool host = false;             // the host source is wanted
  uint64_t host_sample = 0;      // bytes between two of its samples, 0 = every block
  uint32_t native_frames = 0;    // innermost ones kept of each stack ("call_stack")
  int64_t rank = -1;             // -1 = from the environment, else none
  bool has_launcher = false;     // it stays as the parent, and ends the run
  char launcher[100] = {};       // where it listens, see launcher_line.h
};

extern Settings settings;

namespace settings_io {

// nullptr, or a static line saying what is wrong. Keys as in agent_api.h.
const char* set(const char* key, const char* value);
// Defaults from MSMEMSCOPE_RUN_ID, MSMEMSCOPE_SLAB_DIR, MSMEMSCOPE_SOURCE,
// MSMEMSCOPE_MAX_TRACE_SIZE and, where
// MSMEMSCOPE_CONFIG holds {"mode":"command", ...} or {"mode":"exec", ...}, the launcher's settings.
// True in that last case.
bool from_environment();
// RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID; -1 if none is a number.
int64_t rank_from_environment();

}  // namespace settings_io
}  // namespace memscope::capture
