#include "capture/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "capture/agent_thread.h"
#include "capture/disk_budget.h"
#include "capture/fixed_text.h"
#include "capture/held_signal.h"
#include "capture/host_events.h"
#include "capture/lane0.h"
#include "capture/launcher_line.h"
#include "capture/native_modules.h"
#include "capture/notices.h"
#include "capture/recorder.h"
#include "capture/run_directory.h"
#include "capture/settings.h"
#include "capture/source_files.h"
#include "capture/trace_log.h"
#include "trace/slot_walk.h"

namespace memscope::capture::trace_file {
namespace {

constexpr size_t kDefaultSlab = size_t{64} << 20, kChildSlab = size_t{8} << 20;
char process_directory[kPathMax];
char slab_path[kPathMax + 64];
size_t source_budget;
uint64_t started_ns;
Parent parent_trace;
bool log_incomplete;  // the slab has what the log lacks
uint64_t over_since;  // recording_over(); 0 = it was not
char over_reason[512];

void give_up(const char* doing, const char* path, int error) {
  state.recording.store(0, std::memory_order_release);
  state.finished.store(1, std::memory_order_release);
  char reason[128];
  char why[kPathMax + 256];
  std::snprintf(why, sizeof(why), "cannot %s %s: %s; the program goes on untraced", doing, path,
                strerror_r(error, reason, sizeof(reason)));
  notice("recording", why);
  tell_launcher(why);
}

// The name the program was started by, and its arguments, from /proc/self/cmdline.
struct CommandLine {
  char text[4096];
  size_t length = 0, first = 0;

  CommandLine() {
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = read(fd, text, sizeof(text));
    ::close(fd);
    if (got <= 0) return;
    length = static_cast<size_t>(got);
    if (text[length - 1] == '\0') --length;
    first = strnlen(text, length);
    for (size_t i = 0; i < length; ++i) {
      if (text[i] == '\0') text[i] = ' ';
    }
  }
};

void write_meta(const char* host, const CommandLine& command, int64_t rank) {
  char path[kPathMax + 16];
  std::snprintf(path, sizeof(path), "%s/%s", process_directory, kMetaName);
  static char text[32 * 1024];
  FixedText json(text, sizeof(text));
  json.add("{\"schema\":1,\"agent\":").add_json(MEMSCOPE_VERSION);
  json.add(",\"pid\":%d,\"host\":", static_cast<int>(getpid())).add_json(host);
  if (rank >= 0) {
    json.add(",\"rank\":%lld", static_cast<long long>(rank));
  } else {
    json.add(",\"rank\":null");
  }
  json.add(",\"start_ns\":%llu", static_cast<unsigned long long>(started_ns));
  json.add(",\"slab\":").add_json(slab_path);
  json.add(",\"command\":").add_json({command.text, command.length}).add("}\n");
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (json.whole()) {
    const ssize_t wrote = write(fd, text, json.length());
    (void)wrote;  // a missing meta.json costs the reader nothing it cannot do without
  }
  ::close(fd);
}

void write_process() {
  char host[65] = {};
  gethostname(host, sizeof(host) - 1);
  const CommandLine command;
  const int64_t rank = settings.rank >= 0 ? settings.rank : settings_io::rank_from_environment();
  write_meta(host, command, rank);
  write_lane0(ProcessRecord{.pid = static_cast<uint64_t>(getpid()),
                            .parent_pid = static_cast<uint64_t>(parent_trace.pid),
                            .parent_trace = parent_trace.directory,
                            .parent_ticks = parent_trace.ticks,
                            .host = host,
                            .argv0 = {command.text, command.first},
                            .command = {command.text, command.length},
                            .rank = rank,
                            .agent = MEMSCOPE_VERSION,
                            .python = python_stack::version(),
                            .start_real_ns = started_ns},
              state.window_ticks);
  if (state.host_on.load(std::memory_order_relaxed) != 0) {
    char rate[24];
    std::snprintf(rate, sizeof(rate), "%llu",
                  static_cast<unsigned long long>(state.host_sample.load()));
    write_lane0(ConfigRecord{.key = kHostSampleKey, .value = rate}, state.window_ticks);
  }
}

// Beside the log, unless that is a remote file system: a mapped file is slow or unsafe there.
void choose_slab_path() {
  if (settings.slab_dir[0] == '\0' && !run_directory::is_remote(process_directory)) {
    std::snprintf(slab_path, sizeof(slab_path), "%s/%s", process_directory, kSlabName);
    return;
  }
  const char* directory = settings.slab_dir;
  if (directory[0] == '\0') directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  std::snprintf(slab_path, sizeof(slab_path), "%s/msmemscope-%d-%llx.slab", directory,
                static_cast<int>(getpid()), static_cast<unsigned long long>(take_anchor().real_ns));
}

bool make_slab() {
  size_t bytes = settings.slab_bytes;
  if (bytes == 0) bytes = parent_trace.pid != 0 ? kChildSlab : kDefaultSlab;
  const int error = state.slab.create(slab_path, bytes);
  if (error != 0) give_up("make", slab_path, error);
  return error == 0;
}

// A trace without a slab has no events and never will: no report shall be made of it.
void unmake() {
  trace_log::close();
  char path[kPathMax + 16];
  std::snprintf(path, sizeof(path), "%s/%s", process_directory, kLogName);
  unlink(path);
  std::snprintf(path, sizeof(path), "%s/%s", process_directory, kMetaName);
  unlink(path);
  rmdir(process_directory);
  char* run_end = std::strrchr(process_directory, '/');
  if (run_end != nullptr) *run_end = '\0';
  rmdir(process_directory);  // unless others of the run are in it
  process_directory[0] = '\0';
}

bool make() {
  const SizeSignalHeld held;
  log_incomplete = false;
  over_since = 0;
  if (!lane0::begin()) {
    give_up("get memory for", "the trace", ENOMEM);
    return false;
  }
  started_ns = run_directory::process_start_ns();
  source_budget = settings.source_bytes;
  if (const int error = run_directory::make(process_directory, sizeof(process_directory));
      error != 0) {
    give_up("make", process_directory, error);
    process_directory[0] = '\0';
    return false;
  }
  char path[kPathMax + 16];
  std::snprintf(path, sizeof(path), "%s/%s", process_directory, kLogName);
  if (!trace_log::make(path)) {
    give_up("make", path, errno);
    unmake();
    return false;
  }
  disk_budget::begin(process_directory);
  choose_slab_path();
  write_process();
  open_window();
  notices::write_pending();
  flush_lane0();
  // The slab comes last: hooks take its being mapped for the sign that the trace is there.
  if (lane0::refused() || !make_slab()) {
    unmake();
    return false;
  }
  seed_host_blocks();
  agent_thread::start();
  return true;
}

// Sends what a slot has beyond what the log has. The words are read as the owner publishes them.
bool drain_slot(uint32_t index) {
  const Slot slot = state.slab.slot(index);
  Slab::Drained& drained = state.slab.drained(index);
  const size_t from = drained.to / sizeof(uint64_t);
  const SlotWalk walk = walk_slot(slot.records, from, drained.ticks);
  if (walk.end == from) return true;
  const ChunkMeta meta{.lane = slot.header->lane,
                       .from = drained.to,
                       .lane_seq = slot.header->lane_seq,
                       .base_ticks = drained.ticks,
                       .last_ticks = walk.ticks,
                       .kinds = walk.kinds,
                       .slot_index = index};
  if (!trace_log::append(meta, slot.records + from, (walk.end - from) * sizeof(uint64_t))) {
    log_failed(errno);
    return false;
  }
  drained = {static_cast<uint32_t>(walk.end * sizeof(uint64_t)), walk.ticks};
  return true;
}

}  // namespace

bool make_for_first_event(Lane& lane) noexcept {
  if (state.recording.load(std::memory_order_acquire) == 0) return false;
  // A child of vfork() makes nothing: file and thread would be the child's, the memory is ours.
  if (getpid() != state.pid.load(std::memory_order_relaxed)) return false;
  // start() may hold the lock and wait until nobody is busy: this thread has not acted yet.
  lane.busy.store(0, std::memory_order_release);
  pthread_mutex_lock(&state.trace_lock);
  const bool wanted = state.recording.load(std::memory_order_relaxed) != 0;
  const bool there = wanted && (is_open() || make());
  pthread_mutex_unlock(&state.trace_lock);
  lane.busy.store(1, std::memory_order_seq_cst);
  return there && state.slab.mapped();
}

bool is_open() {
  return trace_log::is_open();
}
void log_failed(int error) {
  if (log_incomplete) return;
  log_incomplete = true;
  const bool events_missing = state.recording.load(std::memory_order_relaxed) != 0;
  if (state.finished.load(std::memory_order_relaxed) == 0) {
    give_up("write to", process_directory, error);
  }
  char reason[128];
  char why[kPathMax + 256];
  std::snprintf(why, sizeof(why), "recording ended: cannot write to %s: %s", process_directory,
                strerror_r(error, reason, sizeof(reason)));
  lane0::log_refused(why, events_missing);
  notices::write_pending();
  flush_lane0();
}
void recording_over(const char* why) {
  if (state.finished.load(std::memory_order_relaxed) != 0) return;
  state.recording.store(0, std::memory_order_release);
  state.finished.store(1, std::memory_order_release);
  notice("recording", why);
  tell_launcher(why);
  std::snprintf(over_reason, sizeof(over_reason), "recording ended: %s", why);
  over_since = ticks_now();
  write_lane0(GapRecord{.from_ticks = over_since, .to_ticks = over_since, .reason = over_reason});
  notices::write_pending();
  flush_lane0();
}

const char* directory() {
  return process_directory;
}
const Parent& parent() {
  return parent_trace;
}

void open_window() {
  const uint64_t opened = state.window_ticks;
  write_lane0(window_record(WindowAction::kStart, opened), opened);
  state.shadow.for_each([&](const ShadowMap::Block& block) {
    if (block.birth >= opened) return;  // its alloc is an event of this window
    write_lane0(
        SeedRecord{
            .addr = block.addr, .sized = block.sized, .birth = block.birth, .window_ticks = opened},
        opened);
  });
  if (state.slab.mapped()) seed_host_window(opened);
  flush_lane0();
}

void write_unplaced_drops() {
  const uint64_t total = __atomic_load_n(&state.unplaced_drops, __ATOMIC_RELAXED);
  if (total == state.unplaced_written) return;
  write_lane0(DropRecord{.count = total - state.unplaced_written});
  state.unplaced_written = total;
}

void close_window(WindowAction action) {
  if (!is_open()) return;
  drain_owned(~uint64_t{0});
  while (keep_next_source()) {
  }
  for (Lane& lane : state.lanes) {
    for (size_t i = 0; i < lane.drops_used; ++i) {
      const DropCount& drop = lane.drops[i];
      write_lane0(DropRecord{.kind = drop.kind, .count = drop.count, .bytes = drop.bytes});
    }
    lane.drops_used = 0;
  }
  write_unplaced_drops();
  native_modules::write_new();
  write_anchor();
  write_lane0(window_record(action, ticks_now()));
  flush_lane0();
}

void close() {
  if (!is_open()) return;
  if (over_since != 0) {
    write_lane0(
        GapRecord{.from_ticks = over_since, .to_ticks = ticks_now(), .reason = over_reason});
  }
  flush_lane0();
  lane0::extend_gap();
  trace_log::close();
  disk_budget::end();
  state.slab.destroy(log_incomplete);
  for (Lane& lane : state.lanes) {
    lane.cursor = nullptr;
    lane.lane_seq = 0;
    lane.announced = lane.numbered = false;
    if (lane.stacks.walked != nullptr) lane.stacks.forget();
  }
  source_files::reset_after_fork();
}

bool drain_full(uint32_t limit) {
  if (!is_open()) return false;
  bool any = false;
  for (uint32_t index = state.slab.next_full(0); index != Slab::kMaxSlots && limit-- > 0;
       index = state.slab.next_full(index + 1)) {
    if (!drain_slot(index)) return false;
    state.slab.release(index);
    any = true;
  }
  return any;
}

void drain_owned(uint64_t mono_ns) {
  if (!is_open()) return;
  drain_full(Slab::kMaxSlots);
  for (uint32_t index = 0; index < state.slab.slot_count(); ++index) {
    const SlotHeader* header = state.slab.slot(index).header;
    if (header->state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::kOwned) &&
        header->mono_ns < mono_ns && !drain_slot(index)) {
      return;
    }
  }
}

void populate_slab() {
  state.slab.populate();
}

bool keep_next_source() {
  if (!is_open()) return false;
  const bool any = source_files::take_next(started_ns, &source_budget,
                                           [](const SourceRecord& record) { write_lane0(record); });
  if (any) flush_lane0();
  return any;
}

void write_anchor() {
  const Anchor anchor = take_anchor();
  write_lane0(
      AnchorRecord{.ticks = anchor.ticks, .mono_ns = anchor.mono_ns, .real_ns = anchor.real_ns},
      anchor.ticks);
}

void forget_after_fork() {
  std::snprintf(parent_trace.directory, sizeof(parent_trace.directory), "%s", process_directory);
  parent_trace.pid = getppid();
  parent_trace.ticks = ticks_now();
  trace_log::forget_after_fork();
  disk_budget::forget_after_fork();
  process_directory[0] = '\0';
  lane0::begin();
  state.slab.forget_after_fork();
  source_files::reset_after_fork();
}

}  // namespace memscope::capture::trace_file
