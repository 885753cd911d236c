// When a process was recorded: from each start() to the stop() after it.
#pragma once

#include <cstdint>

#include "core/event.h"
#include "trace/record_table.h"

namespace memscope {

// What a kWindow event changes of the recording before it.
struct WindowChange {
  bool was_recording = false;
  uint64_t paused_at = 0;  // the stop that a start follows, ns since the epoch; 0 = none
};

// The recording windows of a process.
struct RecordingWindows {
  uint32_t number = 0;  // 1, 2, ...; 0 before the first
  bool recording = false;
  uint64_t start = 0;  // of the latest, ns since the epoch
  uint64_t stop = 0;   // the latest stop, 0 = none

  WindowChange change(const Event& event) {
    WindowChange change{.was_recording = recording};
    if (static_cast<WindowAction>(event.size) == WindowAction::kStart) {
      if (!recording) change.paused_at = stop;
      ++number;
      start = event.time;
      recording = true;
      return change;
    }
    if (recording) stop = event.time;
    recording = false;
    return change;
  }
};

}  // namespace memscope
