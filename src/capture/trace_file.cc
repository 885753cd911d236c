#include "capture/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "capture/agent_thread.h"
#include "capture/fixed_text.h"
#include "capture/held_signal.h"
#include "capture/notices.h"
#include "capture/recorder.h"
#include "capture/run_directory.h"
#include "capture/settings.h"
#include "capture/source_files.h"
#include "trace/log_writer.h"

namespace memscope::capture::trace_file {
namespace {

constexpr size_t kDefaultSlab = size_t{64} << 20, kChildSlab = size_t{8} << 20;
// Lane 0 holds one source file (1 MiB) and some.
constexpr size_t kLane0Bytes = size_t{5} << 18;
static_assert(kLane0Bytes <= kMaxChunkBytes);
constexpr size_t kLane0FlushBytes = size_t{1} << 17;

struct Lane0 {
  uint64_t* words = nullptr;
  size_t used = 0;
  uint64_t base_ticks = 0, last_ticks = 0, kinds = 0, seq = 0;
};

int log_fd = -1;
bool log_incomplete;       // a chunk could not be written: the slab has what the log lacks
struct stat log_identity;  // st_dev and st_ino of the log
char process_directory[kPathMax];
char slab_path[kPathMax + 64];
Lane0 lane0_state;
size_t source_budget;
uint64_t started_ns;
Parent parent_trace;
alignas(LogWriter) std::byte writer_memory[sizeof(LogWriter)];
LogWriter* writer;
std::byte* writer_buffer;

// Memory that is not the program's heap, kept for good.
template <typename T>
T* pages(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

void give_up(const char* doing, const char* path, int error) {
  state.recording.store(0, std::memory_order_release);
  state.finished.store(1, std::memory_order_release);
  char reason[128];
  char why[kPathMax + 256];
  std::snprintf(why, sizeof(why), "cannot %s %s: %s; the program goes on untraced", doing, path,
                strerror_r(error, reason, sizeof(reason)));
  notice("recording", why);
}

bool is_log(int fd) {
  struct stat now;
  return fstat(fd, &now) == 0 && now.st_dev == log_identity.st_dev &&
         now.st_ino == log_identity.st_ino;
}

void log_path(char (&path)[kPathMax + 16]) {
  std::snprintf(path, sizeof(path), "%s/%s", process_directory, kLogName);
}

// Out of the way of programs that count on low numbers, if the limit allows it.
int moved_up(int fd) {
  constexpr int kLowest = 100;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, kLowest);
  if (moved < 0 && fd <= STDERR_FILENO) moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved < 0) return fd;
  ::close(fd);
  return moved;
}

// Programs close descriptors that they did not open (close_range, a daemon's first lines), and the
// number may be a file of theirs by now: neither write to it nor close it.
bool have_log() {
  if (is_log(log_fd)) return true;
  char path[kPathMax + 16];
  log_path(path);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  if (!is_log(fd)) {
    ::close(fd);
    errno = ESTALE;
    return false;
  }
  log_fd = moved_up(fd);
  writer->reopened(log_fd);
  return true;
}

void close_log() {
  if (log_fd >= 0 && is_log(log_fd)) ::close(log_fd);
  log_fd = -1;
}

bool append(const ChunkMeta& meta, const void* records, size_t bytes) {
  const SizeSignalHeld held;
  if (have_log() && writer->append(meta, {static_cast<const std::byte*>(records), bytes}))
    return true;
  log_incomplete = true;
  if (state.finished.load(std::memory_order_relaxed) == 0)
    give_up("write to", process_directory, errno);
  return false;
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

bool make_log() {
  char path[kPathMax + 16];
  log_path(path);
  log_incomplete = false;
  log_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (log_fd >= 0) log_fd = moved_up(log_fd);
  if (log_fd >= 0 && fstat(log_fd, &log_identity) == 0) {
    const Anchor anchor = take_anchor();
    LogHeader header{};
    header.major = kFormatMajor;
    header.minor = kFormatMinor;
    header.tick_source = static_cast<uint32_t>(tick_source());
    header.pid = static_cast<uint64_t>(getpid());
    header.ticks = anchor.ticks;
    header.mono_ns = anchor.mono_ns;
    header.real_ns = anchor.real_ns;
    if (writer->open(log_fd, header)) return true;
  }
  give_up("make", path, errno);
  return false;
}

// A trace without a slab has no events and never will: no report shall be made of it.
void unmake() {
  close_log();
  char path[kPathMax + 16];
  log_path(path);
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
  if (lane0_state.words == nullptr) {
    lane0_state.words = pages<uint64_t>(kLane0Bytes);
    writer_buffer = pages<std::byte>(LogWriter::kBufferBytes);
    if (lane0_state.words == nullptr || writer_buffer == nullptr) {
      give_up("get memory for", "the trace", ENOMEM);
      return false;
    }
  }
  started_ns = run_directory::process_start_ns();
  source_budget = settings.source_bytes;
  if (const int error = run_directory::make(process_directory, sizeof(process_directory));
      error != 0) {
    give_up("make", process_directory, error);
    process_directory[0] = '\0';
    return false;
  }
  writer = new (writer_memory) LogWriter({writer_buffer, LogWriter::kBufferBytes});
  if (!make_log()) {
    unmake();
    return false;
  }
  lane0_state = {.words = lane0_state.words};
  choose_slab_path();
  // The slab comes last: hooks take its being mapped for the sign that the trace is there.
  write_process();
  open_window();
  notices::write_pending();
  if (!make_slab()) {
    unmake();
    return false;
  }
  flush_lane0();
  agent_thread::start();
  return true;
}

// Sends what a slot has beyond what the log has. The words are read as the owner publishes them.
bool drain_slot(uint32_t index) {
  const Slot slot = state.slab.slot(index);
  Slab::Drained& drained = state.slab.drained(index);
  constexpr size_t kLimit = kSlotRecordBytes / sizeof(uint64_t);
  const size_t from = drained.to / sizeof(uint64_t);
  size_t at = from;
  uint64_t ticks = drained.ticks, kinds = 0;
  while (at < kLimit) {
    const uint64_t word = __atomic_load_n(slot.records + at, __ATOMIC_ACQUIRE);
    const auto kind = static_cast<uint8_t>(word);
    if (kind == 0) break;
    const size_t words =
        kind < kFirstColdKind ? static_cast<size_t>(hot_words(kind)) : (word >> 8 & kArgMask);
    if (words == 0 || words > kLimit - at) break;
    ticks = kind == static_cast<uint8_t>(Kind::kTime) ? slot.records[at + 1] : ticks + (word >> 32);
    if (kind < 64) kinds |= uint64_t{1} << kind;
    at += words;
  }
  if (at == from) return true;
  const ChunkMeta meta{.lane = slot.header->lane,
                       .from = drained.to,
                       .lane_seq = slot.header->lane_seq,
                       .base_ticks = drained.ticks,
                       .last_ticks = ticks,
                       .kinds = kinds,
                       .slot_index = index};
  if (!append(meta, slot.records + from, (at - from) * sizeof(uint64_t))) return false;
  drained = {static_cast<uint32_t>(at * sizeof(uint64_t)), ticks};
  return true;
}

}  // namespace

bool make_for_first_event(Lane& lane) noexcept {
  if (state.recording.load(std::memory_order_acquire) == 0) return false;
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
  return log_fd >= 0;
}
const char* directory() {
  return process_directory;
}
const Parent& parent() {
  return parent_trace;
}

void open_window() {
  const uint64_t opened = state.window_ticks;
  write_lane0(WindowRecord{.action = static_cast<uint64_t>(WindowAction::kStart), .ticks = opened},
              opened);
  state.shadow.for_each([&](const ShadowMap::Block& block) {
    if (block.birth >= opened) return;  // its alloc is an event of this window
    write_lane0(
        SeedRecord{
            .addr = block.addr, .sized = block.sized, .birth = block.birth, .window_ticks = opened},
        opened);
  });
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
  write_anchor();
  write_lane0(WindowRecord{.action = static_cast<uint64_t>(action), .ticks = ticks_now()});
  flush_lane0();
}

void close() {
  if (!is_open()) return;
  flush_lane0();
  close_log();
  writer->~LogWriter();
  writer = nullptr;
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

void flush_lane0() {
  if (!is_open() || lane0_state.used == 0) return;
  const ChunkMeta meta{.lane = 0,
                       .from = 0,
                       .lane_seq = lane0_state.seq++,
                       .base_ticks = lane0_state.base_ticks,
                       .last_ticks = lane0_state.last_ticks,
                       .kinds = lane0_state.kinds};
  append(meta, lane0_state.words, lane0_state.used * sizeof(uint64_t));
  lane0_state.used = 0;
  lane0_state.kinds = 0;
}

void forget_after_fork() {
  std::snprintf(parent_trace.directory, sizeof(parent_trace.directory), "%s", process_directory);
  parent_trace.pid = getppid();
  parent_trace.ticks = ticks_now();
  close_log();
  process_directory[0] = '\0';
  lane0_state = {.words = lane0_state.words};
  if (writer != nullptr) {
    writer->release();
    writer = nullptr;  // its zstd context is left behind: the heap may be in any state here
  }
  state.slab.forget_after_fork();
  source_files::reset_after_fork();
}

namespace lane0 {

uint64_t* room(size_t words) {
  constexpr size_t kLimit = kLane0Bytes / sizeof(uint64_t);
  if (!is_open() || words > kLimit) return nullptr;
  if (lane0_state.used != 0 && (lane0_state.used + words > kLimit ||
                                lane0_state.used * sizeof(uint64_t) >= kLane0FlushBytes)) {
    flush_lane0();
  }
  return lane0_state.words + lane0_state.used;
}

uint32_t step_clock(uint64_t ticks) {
  if (ticks < lane0_state.last_ticks) ticks = lane0_state.last_ticks;  // lane 0 never goes back
  if (lane0_state.used == 0) {
    lane0_state.base_ticks = lane0_state.last_ticks = ticks;
    return 0;
  }
  const uint64_t delta = ticks - lane0_state.last_ticks;
  lane0_state.last_ticks = ticks;
  return delta < UINT32_MAX ? static_cast<uint32_t>(delta) : UINT32_MAX;
}

void commit(Kind kind, size_t words) {
  lane0_state.used += words;
  lane0_state.kinds |= uint64_t{1} << static_cast<unsigned>(kind);
}

}  // namespace lane0

}  // namespace memscope::capture::trace_file
