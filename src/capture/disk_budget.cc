#include "capture/disk_budget.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "capture/agent_state.h"
#include "capture/clock.h"
#include "capture/helper_process.h"
#include "capture/lane0.h"
#include "capture/recorder.h"
#include "capture/settings.h"
#include "capture/trace_file.h"
#include "capture/trace_log.h"
#include "trace/layout.h"

namespace memscope::capture::disk_budget {
namespace {

constexpr uint64_t kDefaultBytes = 20'000'000'000, kShareOfFree = 10;
constexpr uint64_t kLeastBytes = uint64_t{16} << 20;  // of the default
constexpr uint64_t kSegments = 8;                     // of the budget
constexpr uint64_t kFoldFrom = 2;                     // a half of it
constexpr uint64_t kKept = 4;                         // a quarter stays as it is
constexpr uint64_t kSecond = 1'000'000'000, kLongestPause = 600 * kSecond;
constexpr const char* kDraft = "fold.tmp";  // fold_log.h

enum class Helper { kNone, kDue, kStarting, kRuns };

char directory[kPathMax];
uint64_t budget;
uint64_t closed_bytes;      // of the files before the one that is written
uint64_t folded_bytes;      // of trace.msm after the last fold
uint64_t bytes_after_fold;  // closed_bytes then
uint32_t covered_before;    // covered() when the fold began
Helper helper;
uint32_t failures;    // in a row
uint64_t not_before;  // when the next fold may begin
bool over;            // recording has ended for it
bool told;            // that folding fails

const char* path_of(const char* name) {
  static char path[kPathMax + 64];
  std::snprintf(path, sizeof(path), "%s/%s", directory, name);
  return path;
}

// A tenth of what would be free without this trace: of any number of processes that all do so, each
// takes as much as the others, and all together never the disk.
uint64_t default_bytes() {
  struct statvfs room {};
  uint64_t bytes = kDefaultBytes;
  if (statvfs(directory, &room) == 0 && room.f_frsize != 0) {
    const uint64_t free = room.f_bavail * room.f_frsize + closed_bytes + trace_log::bytes();
    bytes = std::min<uint64_t>(bytes, free / kShareOfFree);
  }
  const char* world = std::getenv("LOCAL_WORLD_SIZE");
  const long processes = world != nullptr ? std::strtol(world, nullptr, 10) : 1;
  return std::max(bytes / static_cast<uint64_t>(std::clamp(processes, 1L, 1024L)), kLeastBytes);
}

void set_budget() {
  budget = settings.max_trace_bytes != 0 ? settings.max_trace_bytes : default_bytes();
}

// The last segment that trace.msm stands for.
uint32_t covered() {
  LogHeader header{};
  const int fd = open(path_of(kLogName), O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : pread(fd, &header, sizeof(header), 0);
  if (fd >= 0) ::close(fd);
  return got == sizeof(header) ? segment_of(header.flags) : 1;
}

// What lies before the file that is written, from the disk; leftovers of a fold that was killed
// after its work was done are removed.
void count_closed() {
  closed_bytes = folded_bytes = 0;
  const uint32_t last = covered(), now = trace_log::segment();
  for (uint32_t number = 1; number < now; ++number) {
    char name[kSegmentNameBytes];
    segment_name(name, number);
    if (number != 1 && number <= last) {
      unlink(path_of(name));
      continue;
    }
    struct stat status {};
    if (stat(path_of(name), &status) != 0) continue;
    closed_bytes += static_cast<uint64_t>(status.st_size);
    if (number == 1 && last > 1) folded_bytes = static_cast<uint64_t>(status.st_size);
  }
}

bool can_fold() {
  return settings.command[0] != '\0' && access(settings.command, X_OK) == 0;
}

// What the trace takes, and what a fold that runs may take beside it.
uint64_t in_use() {
  const bool folds = helper == Helper::kStarting || helper == Helper::kRuns;
  return closed_bytes + trace_log::bytes() + (folds ? budget / kKept + folded_bytes : 0);
}

// How the fold went. One that leaves no room for a segment has not helped either: then what is
// alive and the curves take the budget.
void fold_ended(bool done) {
  helper = Helper::kNone;
  count_closed();
  bytes_after_fold = closed_bytes;
  if (done && closed_bytes + budget / kSegments < budget) {
    failures = 0;
    return;
  }
  ++failures;
  not_before = clock_detail::monotonic_ns() +
               std::min(kSecond << std::min<uint32_t>(failures, 10), kLongestPause);
}

void look_after_helper() {
  if (helper == Helper::kRuns && !helper_runs()) fold_ended(covered() > covered_before);
}

using Line = char[512];
const char* reached(Line& line, const char* and_so) {
  std::snprintf(line, sizeof(line),
                "the trace has reached its budget of %llu MB (max_trace_size) %s",
                static_cast<unsigned long long>(budget / 1'000'000), and_so);
  return line;
}

void give_up() {
  over = true;
  Line why;
  trace_file::recording_over(
      reached(why,
              "and there is no msmemscope command to fold it with; recording has ended, the "
              "program goes on"));
}

void tell_of_failures() {
  if (told) return;
  told = true;
  Line why;
  notice("disk budget", reached(why,
                                "and folding it makes no room; events are dropped and counted "
                                "until it does; give it more"));
}

}  // namespace

void begin(const char* process_directory) {
  std::snprintf(directory, sizeof(directory), "%s", process_directory);
  closed_bytes = folded_bytes = bytes_after_fold = covered_before = not_before = 0;
  helper = Helper::kNone;
  failures = 0;
  over = told = false;
  set_budget();
}

bool may_write() {
  if (over) return false;
  if (in_use() < budget) return true;
  look_after_helper();
  if (in_use() < budget) return true;
  if (helper == Helper::kNone && failures != 0) tell_of_failures();
  if (helper == Helper::kNone && !can_fold()) give_up();
  return false;
}

void poll() {
  look_after_helper();
  if (over || lane0::refused() || helper == Helper::kDue || helper == Helper::kStarting) return;
  const uint64_t segment = budget / kSegments;
  // Not while there is much to write, if that ends soon: the lock is held for all of it.
  if (trace_log::bytes() >= (state.slab.any_full() ? 2 * segment : segment)) {
    // What idle threads have in their slots would hold a fold back: into the file that is closed.
    if (in_use() < budget) trace_file::drain_owned(~uint64_t{0});
    flush_lane0();
    if (lane0::refused() || !trace_log::next_segment()) return;  // the log goes on where it is
    count_closed();
    set_budget();
  }
  if (helper == Helper::kRuns || trace_log::segment() == 1 || closed_bytes < budget / kFoldFrom ||
      clock_detail::monotonic_ns() < not_before || !can_fold()) {
    return;
  }
  if (closed_bytes >= bytes_after_fold + segment / 2 || in_use() >= budget) helper = Helper::kDue;
}

void start_due_fold() {
  static char where[kPathMax], keep[32];
  pthread_mutex_lock(&state.trace_lock);
  const bool due = helper == Helper::kDue && trace_file::is_open();
  if (due) {
    std::snprintf(where, sizeof(where), "%s", directory);
    std::snprintf(keep, sizeof(keep), "%llu", static_cast<unsigned long long>(budget / kKept));
    covered_before = covered();
    helper = Helper::kStarting;
  }
  pthread_mutex_unlock(&state.trace_lock);
  if (!due) return;
  const char* const arguments[] = {settings.command, "offline-fold", where, keep, nullptr};
  const bool runs = start_helper(arguments) != 0;
  pthread_mutex_lock(&state.trace_lock);
  helper = Helper::kRuns;
  if (!runs) fold_ended(false);
  pthread_mutex_unlock(&state.trace_lock);
}

void end() {
  if (directory[0] == '\0') return;
  // Unless a helper still works on it.
  const int draft = open(path_of(kDraft), O_RDWR | O_CLOEXEC);
  if (draft >= 0) {
    if (flock(draft, LOCK_EX | LOCK_NB) == 0) unlink(path_of(kDraft));
    ::close(draft);
  }
  directory[0] = '\0';
  helper = Helper::kNone;
}

void forget_after_fork() {
  directory[0] = '\0';
  helper = Helper::kNone;
  forget_helper_after_fork();
}

}  // namespace memscope::capture::disk_budget
