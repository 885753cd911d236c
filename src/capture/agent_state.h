// The agent's one state. It has no constructor to run and no destructor: hooks may come before and
// after everything else in the process.
//
// Locks, always taken in this order, never on the hot path:
//   control_lock   start, stop, shutdown, exit, configure: one at a time
//   trace_lock     the log and lane 0; the agent's thread holds it while it writes. A thread whose
//                  first event must make the trace takes it too, with `busy` down.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/lane.h"
#include "capture/shadow_map.h"
#include "capture/slab.h"

namespace memscope::capture {

inline constexpr size_t kLargeLanes = 8, kLanes = 96;
inline constexpr size_t kPathMax = 4096;

// On a page of its own that fork() wipes in the child: how a fork is noticed that nobody told of.
struct ForkPage {
  std::atomic<uint64_t> alive;
};

struct AgentState {
  // -- read on the hot path --
  ForkPage* fork_page;
  std::atomic<uint32_t> recording;    // 1 between start and stop
  std::atomic<uint32_t> devices_off;  // bit per device type that is not to be recorded
  std::atomic<uint32_t> lanes_ready;
  std::atomic<uint32_t> native_frames;  // kept of each stack; 0 = only Python's are walked
  std::atomic<uint32_t> host_on;        // the host source records
  std::atomic<uint64_t> host_sample;    // bytes between two samples of it, 0 = every block

  ShadowMap shadow;
  ShadowMap host, mappings;  // the host source's: blocks of malloc, anonymous mappings
  Slab slab;
  Lane lanes[kLanes];
  char* tables_memory;  // of all lanes' StackTables

  // -- control --
  pthread_mutex_t control_lock, trace_lock;
  std::atomic<uint32_t> installed;
  std::atomic<uint32_t> finished;  // exit or shutdown: nothing is recorded any more
  std::atomic<int32_t> forks;      // threads between fork_before() and fork_after_parent()
  std::atomic<int32_t> pid;        // of the process that this state is of
  uint64_t window_ticks;           // when the window in force opened
  uint64_t unplaced_drops;         // events of threads without a lane (atomic access)
  uint64_t unplaced_written;       // of these, told to the trace; trace_lock
};

extern AgentState state;

// Threads that are between reading `recording` and acting on it have all finished when this
// returns (or two seconds have passed). The caller is not one of them.
void wait_for_hooks_in_flight();

// A child of fork(): its own trace, its own lanes; the shadow map is inherited.
void become_forked_child() noexcept;

}  // namespace memscope::capture
