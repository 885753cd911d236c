// What a dump shows of a process: chosen by the user, else by the settings the process ran with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace memscope {

struct DumpSettings {
  bool compat = false;  // spell as msMemScope 26.0 did
  // Frames of a stack column; nullopt: the column stays empty.
  std::optional<uint32_t> python_depth, c_depth;
  bool alloc = true, free = true, launch = true, access = true;  // which rows
  bool decompose = false;                                        // owners of all blocks
  bool inefficient = false;                                      // what is held without need
  std::optional<uint32_t> oom_top;                               // rows of each list at an OOM
  uint32_t first_step = 0, last_step = 0;                        // 0 = no bound
};

inline constexpr uint32_t kDefaultStackDepth = 50;  // msMemScope's

// "c:10,python" -> depths; "none" or "": neither. False where it is no such list.
bool set_call_stack(DumpSettings& settings, std::string_view list);
// "alloc,free", "none", ... as --events takes it.
bool set_events(DumpSettings& settings, std::string_view list);

// What the process was configured with (Config records: call_stack, events, analysis). A process
// that was not configured shows everything, with Python stacks of the default depth: nothing that
// an analysis of the dump may need is lost.
DumpSettings settings_of(const std::map<std::string, std::string>& configs);

}  // namespace memscope
