#include "capture/lane.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/agent_state.h"
#include "capture/agent_thread.h"
#include "capture/recorder.h"
#include "capture/trace_file.h"

namespace memscope::capture {
namespace {

// Where this thread's lane is. By TLSDESC (-mtls-dialect=gnu2): initial-exec TLS of a library that
// is loaded late can fail to load once the loader's surplus is gone.
thread_local Lane* t_lane = nullptr;

void give_tables(Lane& lane) {
  if (lane.stacks.walked != nullptr) return;  // the last owner's: its numbering goes on
  const size_t i = lane.index - 1;
  const size_t large = StackTables::bytes_for(StackTables::kLarge);
  const size_t small = StackTables::bytes_for(StackTables::kSmall);
  if (i < kLargeLanes) {
    lane.stacks.attach(state.tables_memory + i * large, StackTables::kLarge);
  } else {
    lane.stacks.attach(state.tables_memory + kLargeLanes * large + (i - kLargeLanes) * small,
                       StackTables::kSmall);
  }
}

// Where all lanes are taken by living threads, nobody looks again before this time.
constexpr uint64_t kLookAgainNs = 10'000'000;
std::atomic<uint64_t> no_lane_until_ns = 0;

bool has_ended(pid_t pid, int32_t tid) noexcept {
  return syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH;
}

// Makes the lane `tid`'s if its owner is still `from`: 0, or a thread that has ended.
bool change_hands(Lane& lane, int32_t from, int32_t tid) noexcept {
  return lane.tid.compare_exchange_strong(from, tid, std::memory_order_acq_rel);
}

Lane* begin(uint32_t i) noexcept {
  Lane& lane = state.lanes[i];
  note_lane_taken(lane);
  lane.index = i + 1;
  lane.hook = 0;
  lane.announced = false;
  lane.own_stack = {};
  lane.own_stack_tries = 0;
  lane.end = nullptr;  // the next reserve() must announce the new owner first
  give_tables(lane);
  return &lane;
}

Lane* take_lane() noexcept {
  if (state.lanes_ready.load(std::memory_order_acquire) == 0) return nullptr;
  const uint64_t now = clock_detail::monotonic_ns();
  if (now < no_lane_until_ns.load(std::memory_order_relaxed)) return nullptr;
  // A child of vfork() has this thread's memory, its thread-local pointer too, and will be gone.
  if (getpid() != state.pid.load(std::memory_order_relaxed)) return nullptr;
  const auto tid = static_cast<int32_t>(syscall(SYS_gettid));
  for (uint32_t i = 0; i < kLanes; ++i) {
    if (state.lanes[i].tid.load(std::memory_order_relaxed) == 0 &&
        change_hands(state.lanes[i], 0, tid)) {
      return begin(i);
    }
  }
  // The agent's thread frees the lanes of the dead every second, and only while there is a trace;
  // threads can come and go by the hundred meanwhile.
  const int saved_errno = errno;
  const pid_t pid = getpid();
  Lane* taken = nullptr;
  for (uint32_t i = 0; i < kLanes && taken == nullptr; ++i) {
    const int32_t owner = state.lanes[i].tid.load(std::memory_order_acquire);
    if (owner != 0 && !has_ended(pid, owner)) continue;
    if (change_hands(state.lanes[i], owner, tid)) taken = begin(i);
  }
  errno = saved_errno;
  if (taken == nullptr) no_lane_until_ns.store(now + kLookAgainNs, std::memory_order_relaxed);
  return taken;
}

// Tells how many events found no slot, now that there is one.
void report_drops(Lane& lane) {
  for (size_t i = 0; i < lane.drops_used; ++i) {
    const DropCount& drop = lane.drops[i];
    const DropRecord record{
        .kind = drop.kind, .stack = drop.stack, .count = drop.count, .bytes = drop.bytes};
    if (!write_cold(lane, record)) return;
  }
  lane.drops_used = 0;
}

}  // namespace

void lanes::reap() noexcept {
  const pid_t pid = getpid();
  for (Lane& lane : state.lanes) {
    const int32_t owner = lane.tid.load(std::memory_order_acquire);
    if (owner != 0 && has_ended(pid, owner)) change_hands(lane, owner, 0);
  }
}

Lane* lane_of_this_thread() noexcept {
  if (__builtin_expect(t_lane == nullptr, 0)) t_lane = take_lane();
  return t_lane;
}

bool announce(Lane& lane) noexcept {
  if (lane.announced) return true;
  lane.announced = true;  // before writing, which comes back here
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  const LaneRecord record{.tid = static_cast<uint64_t>(lane.tid.load(std::memory_order_relaxed)),
                          .thread_name = name,
                          .keeps_ids = lane.numbered ? 1u : 0u};
  lane.announced = write_cold(lane, record);
  lane.numbered |= lane.announced;
  return lane.announced;
}

uint64_t* reserve_slow(Lane& lane, size_t words) noexcept {
  if (words + 1 > kSlotRecordBytes / sizeof(uint64_t)) return nullptr;
  if (!state.slab.mapped()) {
    if (!trace_file::make_for_first_event(lane)) return nullptr;
  }
  if (lane.cursor != nullptr && !lane.announced) {  // the last owner's slot goes on
    lane.end = lane.slot.records + kSlotRecordBytes / sizeof(uint64_t);
    if (announce(lane) && lane.cursor != nullptr && lane.cursor + words < lane.end) {
      return lane.cursor;
    }
  }
  if (lane.cursor != nullptr) {
    lane.cursor = nullptr;
    state.slab.finish(lane.slot.index);
  }
  agent_thread::start_if_wanted();
  const Slot slot = state.slab.acquire(lane.index, lane.lane_seq);
  if (slot.records == nullptr) return nullptr;
  ++lane.lane_seq;
  lane.slot = slot;
  lane.cursor = slot.records;
  lane.end = slot.records + kSlotRecordBytes / sizeof(uint64_t);
  lane.last_ticks = slot.header->base_ticks;
  // A numbering outlives a slot: only a new owner, or forgotten tables, start another one.
  if (!announce(lane)) return nullptr;
  if (lane.drops_used != 0) report_drops(lane);
  return lane.cursor + words < lane.end ? lane.cursor : nullptr;
}

namespace lanes {

void forget_this_threads() {
  t_lane = nullptr;
}

void exclude_this_thread() noexcept {
  static Lane own;         // one thread at a time
  own.hook = UINTPTR_MAX;  // as if inside one, for good
  t_lane = &own;
}

}  // namespace lanes

}  // namespace memscope::capture
