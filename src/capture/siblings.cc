#include "capture/siblings.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "capture/agent_state.h"
#include "capture/clock.h"
#include "capture/held_signal.h"
#include "capture/run_directory.h"
#include "capture/settings.h"
#include "capture/trace_file.h"
#include "trace/dead_slabs.h"

namespace memscope::capture::siblings {
namespace {

constexpr uint64_t kSecond = 1'000'000'000u;
constexpr uint64_t kSoonest = 5 * kSecond, kLatest = 60 * kSecond;

constexpr uint64_t kLookEvery = kSecond / 10;
// New processes' directories, whose slabs are 8 MiB each: so many are looked at before their time,
// so many at once, whatever it costs.
constexpr uint64_t kMany = 8, kTooMany = 64;

// A directory that something was made in: `links` counts the directories in it where the file
// system does (ext4, XFS, tmpfs do; Btrfs and overlays have 1).
struct Entries {
  int64_t changed_ns = 0;
  uint64_t links = 0;
  bool operator==(const Entries&) const = default;
};

std::atomic<uint64_t> forks_seen = 0;
uint64_t forks_at_last_sweep;
Entries at_last_sweep;
uint64_t next_look, next_sweep, next_of_many, interval = kSoonest;
bool others_left;  // slabs of others were there the last time
char run[kPathMax];

// The run's directory is remembered: the trace may be closed by the time it is asked for.
bool have_run() {
  pthread_mutex_lock(&state.trace_lock);
  const char* process = trace_file::directory();
  if (process[0] != '\0') {
    std::snprintf(run, sizeof(run), "%s", process);
    char* end = std::strrchr(run, '/');
    if (end != nullptr) *end = '\0';
  }
  pthread_mutex_unlock(&state.trace_lock);
  return run[0] != '\0';
}

Entries entries_of(const char* directory) {
  struct stat status {};
  if (stat(directory, &status) != 0) return {};
  constexpr int64_t kNs = kSecond;
  return {status.st_mtim.tv_sec * kNs + status.st_mtim.tv_nsec, status.st_nlink};
}

SealCounts sweep(const std::atomic<uint32_t>* stop) {
  const SizeSignalHeld held;
  const bool elsewhere = settings.slab_dir[0] != '\0' || run_directory::is_remote(run);
  const SealCounts counts = seal_dead_slabs(run, elsewhere, stop);
  const uint32_t own = state.slab.mapped() ? 1 : 0;
  others_left = counts.left != 0 || counts.alive > own;
  return counts;
}

}  // namespace

void forked() {
  forks_seen.fetch_add(1, std::memory_order_relaxed);
}

void sweep_if_due(uint64_t now, const std::atomic<uint32_t>& stop) {
  if (now < next_look) return;
  next_look = now + kLookEvery;
  if (!have_run()) return;
  const uint64_t forks = forks_seen.load(std::memory_order_relaxed);
  const Entries entries = trace_file::parent().pid == 0 ? entries_of(run) : Entries{};
  const uint64_t made = entries.links - std::min(entries.links, at_last_sweep.links);
  const bool many = made >= kTooMany || (made >= kMany && now >= next_of_many);
  const bool any = forks != forks_at_last_sweep || entries != at_last_sweep || others_left;
  if (!many && (!any || now < next_sweep)) return;
  const SealCounts counts = sweep(&stop);
  if (stop.load(std::memory_order_relaxed) != 0) return;  // not done: again when the thread is back
  forks_at_last_sweep = forks;
  at_last_sweep = entries;
  const uint64_t took = clock_detail::monotonic_ns() - now;
  next_of_many = now + 20 * took;
  interval = counts.sealed != 0 ? kSoonest : std::min(2 * interval, kLatest);
  next_sweep = now + std::max(interval, 100 * took);
}

void sweep_at_end() {
  const bool has_children = forks_seen.load(std::memory_order_relaxed) != 0;
  const bool ends_the_run = !settings.has_launcher && trace_file::parent().pid == 0;
  if ((has_children || ends_the_run) && have_run()) sweep(nullptr);
}

void sweep_last() {
  if (others_left && run[0] != '\0') sweep(nullptr);
}

void forget_after_fork() {
  forks_seen.store(0, std::memory_order_relaxed);
  forks_at_last_sweep = 0;
  at_last_sweep = {};
  next_look = next_sweep = next_of_many = 0;
  interval = kSoonest;
  others_left = false;
  run[0] = '\0';
}

}  // namespace memscope::capture::siblings
