#include "capture/lane.h"

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

Lane* take_lane() noexcept {
  if (state.lanes_ready.load(std::memory_order_acquire) == 0) return nullptr;
  const auto tid = static_cast<int32_t>(syscall(SYS_gettid));
  for (uint32_t i = 0; i < kLanes; ++i) {
    Lane& lane = state.lanes[i];
    int32_t nobody = 0;
    if (lane.tid.load(std::memory_order_relaxed) != 0 ||
        !lane.tid.compare_exchange_strong(nobody, tid, std::memory_order_acquire)) {
      continue;
    }
    lane.index = i + 1;
    lane.depth = 0;
    lane.announced = false;
    lane.end = nullptr;  // the next reserve() must announce the new owner first
    give_tables(lane);
    return &lane;
  }
  state.lane_wanted.store(1, std::memory_order_relaxed);
  return nullptr;
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

}  // namespace lanes

}  // namespace memscope::capture
