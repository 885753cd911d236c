#include "capture/agent.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/agent_state.h"
#include "capture/agent_thread.h"
#include "capture/elf_patch.h"
#include "capture/memory_counters.h"
#include "capture/native_modules.h"
#include "capture/native_stack.h"
#include "capture/python_stack.h"
#include "capture/recorder.h"
#include "capture/run_directory.h"
#include "capture/settings.h"
#include "capture/siblings.h"
#include "capture/sources/host.h"
#include "capture/sources/torch.h"
#include "capture/trace_file.h"

namespace memscope::capture {

// All zero, so that it takes no room in the file and needs no constructor.
constinit AgentState state{};

namespace {

class Locked {
 public:
  explicit Locked(pthread_mutex_t& lock) : lock_(lock) { pthread_mutex_lock(&lock_); }
  ~Locked() { pthread_mutex_unlock(&lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t& lock_;
};

// A full barrier on every thread of the process, so that their side needs none (membarrier(2)).
bool barrier_everywhere() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return true;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool make_memory() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* fork_page = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const size_t tables = kLargeLanes * StackTables::bytes_for(StackTables::kLarge) +
                        (kLanes - kLargeLanes) * StackTables::bytes_for(StackTables::kSmall);
  void* memory = mmap(nullptr, tables, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fork_page == MAP_FAILED || memory == MAP_FAILED) return false;
  // Without it a fork that Python does not make would go unnoticed (Linux 4.14 has it).
  madvise(fork_page, page, MADV_WIPEONFORK);
  state.tables_memory = static_cast<char*>(memory);
  state.fork_page = static_cast<ForkPage*>(fork_page);
  state.fork_page->alive.store(1, std::memory_order_relaxed);
  state.pid.store(getpid(), std::memory_order_relaxed);
  state.lanes_ready.store(1, std::memory_order_release);
  return true;
}

// As the settings say. Hooks that are in stay in: they keep the maps of what is alive.
void switch_host_source() {
  state.host_on.store(settings.host ? 1 : 0, std::memory_order_relaxed);
  static bool added = false;
  if (settings.host && added && settings.host_sample != state.host_sample.load()) {
    notice("host_sample", "it stays as it was at the first start() with host memory");
  }
  if (!settings.host || added) return;
  added = true;
  state.host_sample.store(settings.host_sample, std::memory_order_relaxed);
  // Its making of the trace may be in any call of malloc, libc's under its time zone lock too: the
  // run gets its name, with the time in it, now.
  run_directory::id();
  elf_patch::add(host_source::hooks(), host_source::changed);
}

// Stops recording and waits for the hooks in flight. Both locks held.
void stop_recording() {
  state.recording.store(0, std::memory_order_seq_cst);
  wait_for_hooks_in_flight();
}

const char* end_trace(WindowAction action) {
  const Locked control(state.control_lock);
  {
    const Locked trace(state.trace_lock);
    stop_recording();
    memory_counters::write_last();
    trace_file::close_window(action);
  }
  agent_thread::join();
  {
    const Locked trace(state.trace_lock);
    trace_file::close();
  }
  siblings::sweep_at_end();
  return nullptr;
}

}  // namespace

void wait_for_hooks_in_flight() {
  const bool fenced = barrier_everywhere();
  timespec pause{0, fenced ? 20'000 : 10'000'000};
  if (!fenced) nanosleep(&pause, nullptr);
  const uint64_t deadline = clock_detail::monotonic_ns() + 2'000'000'000u;
  for (Lane& lane : state.lanes) {
    for (int spins = 0; lane.busy.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 1000) continue;
      if (clock_detail::monotonic_ns() > deadline) return;
      nanosleep(&pause, nullptr);
    }
  }
}

void become_forked_child() noexcept {
  state.fork_page->alive.store(1, std::memory_order_relaxed);
  state.pid.store(getpid(), std::memory_order_relaxed);
  state.forks.store(0, std::memory_order_relaxed);
  lanes::forget_this_threads();
  state.control_lock = PTHREAD_MUTEX_INITIALIZER;
  state.trace_lock = PTHREAD_MUTEX_INITIALIZER;
  elf_patch::reset_lock_after_fork();
  native_stack::reset_after_fork();
  native_modules::begin();
  agent_thread::forget_after_fork();
  trace_file::forget_after_fork();
  siblings::forget_after_fork();
  memory_counters::forget_after_fork();
  for (Lane& lane : state.lanes) {
    lane.cursor = nullptr;
    lane.lane_seq = 0;
    lane.drops_used = 0;
    lane.hook = 0;
    lane.announced = lane.numbered = false;
    if (lane.stacks.walked != nullptr) lane.stacks.forget();
    lane.busy.store(0, std::memory_order_relaxed);
    lane.dropped.store(0, std::memory_order_relaxed);
    lane.host_bytes.store(0, std::memory_order_relaxed);
    lane.host_told = 0;
    for (auto& events : lane.events) events.store(0, std::memory_order_relaxed);
    lane.tid.store(0, std::memory_order_relaxed);
  }
  state.unplaced_drops = 0;
  state.unplaced_written = 0;
  state.window_ticks = ticks_now();
}

namespace agent {

const char* install() {
  const Locked control(state.control_lock);
  if (state.fork_page == nullptr && !make_memory()) return "no memory for the agent's tables";
  if (state.finished.load(std::memory_order_relaxed) != 0)
    return "tracing has ended in this process";
  static bool added = false;
  if (!added) elf_patch::add(torch_source::hooks(), torch_source::changed);
  added = true;
  elf_patch::refresh();
  state.installed.store(1, std::memory_order_release);
  return nullptr;
}

const char* start() {
  if (state.installed.load(std::memory_order_acquire) == 0) {
    if (const char* why = install()) return why;
  }
  {
    const Locked control(state.control_lock);
    switch_host_source();
  }
  elf_patch::refresh();
  if (const char* why = native_stack::prepare(settings.native_frames)) {
    notice("native stacks are off", why);
  }
  const Locked control(state.control_lock);
  if (state.finished.load(std::memory_order_relaxed) != 0)
    return "tracing has ended in this process";
  const Locked trace(state.trace_lock);
  if (state.recording.load(std::memory_order_relaxed) != 0) return nullptr;
  state.window_ticks = ticks_now();
  state.recording.store(1, std::memory_order_seq_cst);
  // From here on every hook sees a recording: a block freed later has an event, one freed earlier
  // is out of the shadow map.
  wait_for_hooks_in_flight();
  if (trace_file::is_open()) trace_file::open_window();
  return nullptr;
}

namespace {

const char* end_window(WindowAction action) {
  const Locked control(state.control_lock);
  const Locked trace(state.trace_lock);
  if (state.recording.load(std::memory_order_relaxed) == 0) return nullptr;
  stop_recording();
  memory_counters::write_last();
  trace_file::close_window(action);
  return nullptr;
}

}  // namespace

const char* stop() {
  return end_window(WindowAction::kStop);
}

const char* stop_at_exit() {
  return end_window(WindowAction::kExit);
}

const char* shutdown() {
  elf_patch::restore();
  const char* why = end_trace(WindowAction::kShutdown);
  state.installed.store(0, std::memory_order_release);
  state.shadow.clear();
  state.host.clear();
  state.mappings.clear();
  return why;
}

const char* exiting() {
  const char* why = end_trace(WindowAction::kExit);
  state.finished.store(1, std::memory_order_release);
  return why;
}

// No lock is held from here to after the fork: other call-backs of Python's run in between, of this
// thread and of any that gets the GIL, and their first tensor needs the trace. A child that was
// forked under somebody's lock makes its locks anew anyway.
void fork_before() {
  if (state.fork_page == nullptr) return;
  siblings::forked();
  const Locked control(state.control_lock);
  {
    const Locked trace(state.trace_lock);  // who starts the thread holds it, and looks at `forks`
    state.forks.fetch_add(1, std::memory_order_relaxed);
  }
  agent_thread::join();
}

void fork_after_parent() {
  if (state.fork_page == nullptr) return;
  const Locked trace(state.trace_lock);
  const int32_t forks = state.forks.load(std::memory_order_relaxed);
  if (forks == 0) return;  // installed by a call-back between the two
  state.forks.store(forks - 1, std::memory_order_relaxed);
  if (forks > 1) return;  // another thread forks
  if (trace_file::is_open() && state.finished.load(std::memory_order_relaxed) == 0) {
    agent_thread::want_again();
  }
}

void fork_after_child() {
  if (state.fork_page == nullptr) return;
  // A call-back before this one may have had a tensor: then the child knows, and has its trace.
  if (state.pid.load(std::memory_order_relaxed) != getpid()) become_forked_child();
}

}  // namespace agent
}  // namespace memscope::capture
