#include "capture/recorder.h"

#include <signal.h>

#include "capture/agent_state.h"
#include "capture/event_parts.h"
#include "capture/lane.h"
#include "capture/native_stack.h"

namespace memscope::capture {
namespace {

bool wanted(Where where) {
  return (state.devices_off.load(std::memory_order_relaxed) >> where.device.type & 1) == 0;
}

// A signal handler may run on a stack of its own, which lies anywhere.
bool on_signal_stack() {
  stack_t stack;
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

template <typename... Totals>
void alloc_event(HookScope& scope, Kind kind, Where where, const void* addr, uint64_t size,
                 Totals... totals) {
  if (!scope.outermost() || size == 0 || addr == nullptr || !wanted(where)) return;
  const auto address = reinterpret_cast<uint64_t>(addr);
  const uint64_t sized = pack_sized(size, where.packed());
  Lane* lane = scope.lane();
  if (lane == nullptr) {
    if (recording()) __atomic_fetch_add(&state.unplaced_drops, 1, __ATOMIC_RELAXED);
    state.shadow.insert(address, sized, ticks_now());
    return;
  }
  BusyScope busy(lane);
  const bool on = recording();   // before the time is read: an event of a window is not timed
  uint64_t ticks = ticks_now();  // before the window begins
  if (on) {
    uint32_t stack = 0;
    if (ready(*lane, 3 + sizeof...(Totals))) {
      stack = stack_node(*lane, scope.caller());
      if (write_hot(*lane, kind, stack, ticks, address, sized, totals...)) {
        ticks = lane->last_ticks;
      } else {
        count_drop(*lane, kind, stack, size);
      }
    } else if (recording()) {
      count_drop(*lane, kind, stack, size);
    }
  }
  state.shadow.insert(address, sized, ticks);
}

template <typename... Totals>
void free_event(HookScope& scope, Kind kind, Where where, const void* addr, Totals... totals) {
  if (!scope.outermost() || addr == nullptr || !wanted(where)) return;
  const auto address = reinterpret_cast<uint64_t>(addr);
  Lane* lane = scope.lane();
  if (lane == nullptr) {
    if (recording()) __atomic_fetch_add(&state.unplaced_drops, 1, __ATOMIC_RELAXED);
    state.shadow.erase(address);
    return;
  }
  BusyScope busy(lane);
  if (!recording()) {
    state.shadow.erase(address);
    return;
  }
  const bool can_write = ready(*lane, 2 + sizeof...(Totals));
  state.shadow.erase(address);
  if (can_write && write_hot(*lane, kind, where.packed(), ticks_now(), address, totals...)) {
    return;
  }
  if (recording()) count_drop(*lane, kind, 0, 0);
}

}  // namespace

void count_drop(Lane& lane, Kind kind, uint32_t stack, uint64_t bytes) {
  lane.dropped.store(lane.dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < lane.drops_used; ++i) {
    DropCount& drop = lane.drops[i];
    const bool last = i + 1 == Lane::kDropCounts;
    if (drop.kind == static_cast<uint32_t>(kind) && (drop.stack == stack || last)) {
      if (drop.stack != stack) drop.stack = 0;
      ++drop.count;
      drop.bytes += bytes;
      return;
    }
  }
  if (lane.drops_used < Lane::kDropCounts) {
    lane.drops[lane.drops_used++] = {static_cast<uint32_t>(kind), stack, 1, bytes};
    return;
  }
  // A kind the full list does not have: under the last entry's kind it would be a lie, so under
  // none, for all of them.
  DropCount& last = lane.drops[Lane::kDropCounts - 1];
  last.kind = 0;
  last.stack = 0;
  ++last.count;
  last.bytes += bytes;
}

HookScope::HookScope(const CallerState& caller) noexcept
    : lane_(nullptr), outermost_(true), caller_(caller) {
  if (__builtin_expect(state.fork_page == nullptr, 0)) {
    outermost_ = false;  // not installed, or stood down
    return;
  }
  if (__builtin_expect(state.fork_page->alive.load(std::memory_order_relaxed) == 0, 0)) {
    become_forked_child();
  }
  lane_ = lane_of_this_thread();
  if (__builtin_expect(lane_ != nullptr, 1)) outermost_ = enter();
}

// Stacks grow downwards: a scope inside another one lies below it.
bool HookScope::enter() noexcept {
  const auto self = reinterpret_cast<uintptr_t>(this);
  if (__builtin_expect(lane_->hook != 0, 0)) {
    if (self < lane_->hook || on_signal_stack()) return false;
    // The one above us is gone, and nobody told us: a longjmp.
    lane_->busy.store(0, std::memory_order_release);
  }
  lane_->hook = self;
  return true;
}

HookScope::~HookScope() noexcept {
  if (__builtin_expect(lane_ != nullptr, 1)) {
    if (outermost_) lane_->hook = 0;
    note_lane_used(*lane_);
  }
}

void record_alloc(HookScope& scope, Where where, const void* addr, uint64_t size) noexcept {
  alloc_event(scope, Kind::kAlloc, where, addr, size);
}

void record_free(HookScope& scope, Where where, const void* addr) noexcept {
  free_event(scope, Kind::kFree, where, addr);
}

void record_pool_alloc(HookScope& scope, Where where, const void* addr, uint64_t size,
                       uint64_t allocated, uint64_t reserved) noexcept {
  alloc_event(scope, Kind::kPoolAlloc, where, addr, size, allocated, reserved);
}

void record_pool_free(HookScope& scope, Where where, const void* addr, uint64_t allocated,
                      uint64_t reserved) noexcept {
  free_event(scope, Kind::kPoolFree, where, addr, allocated, reserved);
}

void record_oom(HookScope& scope, Where where, uint64_t size, uint64_t allocated,
                uint64_t reserved) noexcept {
  Lane* lane = scope.lane();
  if (!scope.outermost() || lane == nullptr || !wanted(where)) return;
  BusyScope busy(lane);
  if (!recording() || !ready(*lane, 0)) return;
  const uint32_t stack = stack_node(*lane, scope.caller());
  write_cold(*lane, OomRecord{.where = where.packed(),
                              .size = size,
                              .allocated = allocated,
                              .reserved = reserved,
                              .stack = stack});
}

}  // namespace memscope::capture
