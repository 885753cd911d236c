#include "capture/host_events.h"

#include <unistd.h>

#include "capture/agent_state.h"
#include "capture/event_parts.h"
#include "capture/lane.h"
#include "capture/lane0.h"
#include "capture/native_stack.h"

namespace memscope::capture {
namespace {

// Births of blocks of which the trace has no event have this bit, all others not. A tick more or
// less is within what replay takes for the same time.
constexpr uint64_t kUntold = 1;
// A lane's change after which all lanes' are added up.
constexpr int64_t kTellAtBytes = int64_t{64} << 10;

bool host_recording() {
  return recording() && state.host_on.load(std::memory_order_relaxed) != 0;
}

uint64_t page_end(uint64_t addr) {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (addr + page - 1) & ~(page - 1);
}

// What a block adds to them: where they are sampled about what it stands for, here and at its free.
int64_t host_bytes_of(uint64_t size, uint64_t rate) {
  return static_cast<int64_t>(size > rate ? size : rate);
}

void count_host_bytes(Lane& lane, int64_t change) {
  lane.host_bytes.store(lane.host_bytes.load(std::memory_order_relaxed) + change,
                        std::memory_order_relaxed);
}

// Whether there is enough to make a trace for.
bool enough_lives(Lane& lane) {
  const int64_t own = lane.host_bytes.load(std::memory_order_relaxed);
  if (own - lane.host_told < kTellAtBytes) return false;
  lane.host_told = own;
  int64_t sum = 0;
  for (const Lane& each : state.lanes) sum += each.host_bytes.load(std::memory_order_relaxed);
  return sum >= kTraceAtBytes;
}

void alloc_event(HookScope& scope, ShadowMap& map, const void* addr, uint64_t size) {
  if (!scope.outermost() || addr == nullptr) return;
  if (size == 0) size = 1;
  const auto address = reinterpret_cast<uint64_t>(addr);
  const uint64_t sized = pack_sized(size, kHostMemory.packed());
  const uint64_t rate = state.host_sample.load(std::memory_order_relaxed);
  Lane* lane = scope.lane();
  if (lane == nullptr) {
    if (host_recording()) __atomic_fetch_add(&state.unplaced_drops, 1, __ATOMIC_RELAXED);
    if (rate == 0) map.insert_fresh(address, sized, ticks_now() | kUntold);
    return;
  }
  if (rate != 0 && !lane->sampler.take(size, rate)) return;
  BusyScope busy(lane);
  const bool on = host_recording();
  bool told = on && state.slab.mapped();
  uint64_t ticks = ticks_now();
  if (on && !told) {
    count_host_bytes(*lane, host_bytes_of(size, rate));
    told = enough_lives(*lane);
  }
  if (told) {
    uint32_t stack = 0;
    if (ready(*lane, 3)) {
      stack = stack_node(*lane, scope.caller());
      if (write_hot(*lane, Kind::kAlloc, stack, ticks, address, sized)) {
        ticks = lane->last_ticks;
      } else {
        count_drop(*lane, Kind::kAlloc, stack, size);
      }
    } else if (recording()) {
      count_drop(*lane, Kind::kAlloc, stack, size);
    }
  }
  map.insert_fresh(address, sized, told ? ticks & ~kUntold : ticks | kUntold);
}

ShadowMap::Block free_event(HookScope& scope, ShadowMap& map, const void* addr) {
  ShadowMap::Block gone{};
  if (!scope.outermost() || addr == nullptr) return gone;
  const auto address = reinterpret_cast<uint64_t>(addr);
  const uint64_t rate = state.host_sample.load(std::memory_order_relaxed);
  // Of one that was not sampled nothing is known: not told of, not counted.
  if (rate != 0 && !map.contains(address)) return gone;
  Lane* lane = scope.lane();
  if (lane == nullptr) {
    map.erase(address, &gone);
    if (host_recording()) {
      __atomic_fetch_add(&state.unplaced_drops, 1, __ATOMIC_RELAXED);
    }
    return gone;
  }
  BusyScope busy(lane);
  const bool on = host_recording();
  const bool told = on && state.slab.mapped();
  const bool can_write = told && ready(*lane, 2);
  const bool known = map.erase(address, &gone);
  if (!told) {
    if (on && known) count_host_bytes(*lane, -host_bytes_of(sized_size(gone.sized), rate));
    return gone;
  }
  if (can_write && write_hot(*lane, Kind::kFree, kHostMemory.packed(), ticks_now(), address)) {
    return gone;
  }
  if (recording()) count_drop(*lane, Kind::kFree, 0, 0);
  return gone;
}

void undo_event(HookScope& scope, ShadowMap& map, const ShadowMap::Block& block) {
  Lane* lane = scope.lane();
  if (!scope.outermost() || block.addr == 0) return;
  map.insert_fresh(block.addr, block.sized, block.birth);
  if (lane == nullptr) return;
  BusyScope busy(lane);
  if (!host_recording()) return;
  if (!state.slab.mapped()) {
    count_host_bytes(*lane, host_bytes_of(sized_size(block.sized),
                                          state.host_sample.load(std::memory_order_relaxed)));
  } else if (ready(*lane, encoded_words(UndoRecord{}))) {
    write_cold(*lane, UndoRecord{.addr = block.addr, .where = kHostMemory.packed()});
  }
}

void seed(const ShadowMap::Block& block) {
  write_lane0(SeedRecord{.addr = block.addr,
                         .sized = block.sized,
                         .birth = block.birth,
                         .window_ticks = state.window_ticks},
              state.window_ticks);
}

template <typename Wanted>
void seed_where(Wanted wanted) {
  for (ShadowMap* map : {&state.host, &state.mappings}) {
    map->for_each([&](const ShadowMap::Block& block) {
      if (wanted(block)) seed(block);
    });
  }
  flush_lane0();
}

}  // namespace

void record_host_alloc(HookScope& scope, const void* addr, uint64_t size) noexcept {
  alloc_event(scope, state.host, addr, size);
}

ShadowMap::Block record_host_free(HookScope& scope, const void* addr) noexcept {
  return free_event(scope, state.host, addr);
}

void record_host_undo(HookScope& scope, const ShadowMap::Block& block) noexcept {
  undo_event(scope, state.host, block);
}

void record_mapping(HookScope& scope, const void* addr, uint64_t size) noexcept {
  alloc_event(scope, state.mappings, addr, size);
}

UnmapScope::UnmapScope(HookScope& scope, const void* addr, uint64_t size) noexcept
    : scope_(scope),
      from_(reinterpret_cast<uint64_t>(addr)),
      to_(page_end(reinterpret_cast<uint64_t>(addr) + size)) {
  if (!scope.outermost() || size == 0 || to_ <= from_) return;
  const auto end_of = [](const ShadowMap::Block& block) {
    return page_end(block.addr + sized_size(block.sized));
  };
  // Nearly always the range is one mapping, whole.
  ShadowMap::Block block{};
  if (state.mappings.contains(from_)) {
    block = free_event(scope, state.mappings, addr);
    if (block.addr != 0) blocks_[count_++] = block;
    if (block.addr != 0 && end_of(block) >= to_) return;
  }
  state.mappings.for_each([&](const ShadowMap::Block& other) {
    if (count_ == kMax || other.addr >= to_ || end_of(other) <= from_) return;
    block = free_event(scope, state.mappings, reinterpret_cast<const void*>(other.addr));
    if (block.addr != 0) blocks_[count_++] = block;
  });
}

void UnmapScope::done() noexcept {
  const uint64_t rate = state.host_sample.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count_; ++i) {
    const uint64_t size = sized_size(blocks_[i].sized);
    const uint64_t begin = blocks_[i].addr, end = page_end(begin + size);
    const auto keep = [&](uint64_t from, uint64_t to) {
      if (from >= to) return;
      Lane* lane = scope_.lane();
      if (rate != 0) {
        if (lane == nullptr || !lane->sampler.keep(to - from, end - begin, rate)) return;
        // Taken already: the alloc below must not draw again.
        lane->sampler.take_next();
      }
      alloc_event(scope_, state.mappings, reinterpret_cast<const void*>(from), to - from);
    };
    keep(begin, from_);
    keep(to_, end);
  }
}

void UnmapScope::failed() noexcept {
  for (size_t i = count_; i-- > 0;) undo_event(scope_, state.mappings, blocks_[i]);
}

void seed_host_blocks() noexcept {
  if (state.host_on.load(std::memory_order_relaxed) == 0) return;
  // Whoever did not see the slab has put his block into a map by the end of this; all others write
  // events.
  wait_for_hooks_in_flight();
  const uint64_t opened = state.window_ticks;
  seed_where([&](const ShadowMap::Block& block) {
    return block.birth < opened || (block.birth & kUntold) != 0;
  });
}

void seed_host_window(uint64_t opened_ticks) noexcept {
  if (state.host_on.load(std::memory_order_relaxed) == 0) return;
  seed_where([&](const ShadowMap::Block& block) { return block.birth < opened_ticks; });
}

}  // namespace memscope::capture
