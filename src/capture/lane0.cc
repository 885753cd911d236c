#include "capture/lane0.h"

#include <errno.h>

#include <cstdio>
#include <cstring>

#include "capture/agent_state.h"
#include "capture/own_pages.h"
#include "capture/trace_file.h"
#include "capture/trace_log.h"

namespace memscope::capture {
namespace {

// Lane 0 holds one source file (1 MiB) and some.
constexpr size_t kBufferBytes = size_t{5} << 18;
static_assert(kBufferBytes <= kMaxChunkBytes);
constexpr size_t kBufferWords = kBufferBytes / sizeof(uint64_t);
constexpr size_t kFlushBytes = size_t{1} << 17;

uint64_t* words;
size_t used;
uint64_t base_ticks, last_ticks, kinds, seq;

bool log_refuses;
char refusal[kPathMax + 256];
size_t reserve_used;  // words of the reserve slot
uint64_t* gap_end;    // GapRecord::to_ticks in the reserve slot

// Words of the reserve slot that large buffers leave to the few records that say what is missing.
constexpr size_t kKeptForLastWords = 1024;

// Moves the buffer into the reserve slot; false where it is lost. Appears there whole or not at
// all: its first word is stored last.
bool move_to_reserve() {
  if (used == 0) return true;
  const size_t count = used;
  used = 0;
  kinds = 0;
  const Slot slot = state.slab.reserve();
  if (slot.records == nullptr) return false;
  const size_t needed = kTimeWords + count + 1;
  const size_t kept = count > kKeptForLastWords ? kKeptForLastWords : 0;
  if (reserve_used + needed + kept > kSlotRecordBytes / sizeof(uint64_t)) return false;
  if (reserve_used == 0) slot.header->lane_seq = seq;
  uint64_t* at = slot.records + reserve_used;
  at[1] = base_ticks;
  std::memcpy(at + kTimeWords, words, count * sizeof(uint64_t));
  at[kTimeWords + count] = 0;
  __atomic_store_n(at, hot_word(Kind::kTime, 0, 0), __ATOMIC_RELEASE);
  reserve_used += kTimeWords + count;
  return true;
}

// Once, straight into the reserve slot, where extend_gap() finds it.
void write_gap(const char* also) {
  if (gap_end != nullptr) return;
  char reason[sizeof(refusal) + 128];
  std::snprintf(reason, sizeof(reason), "%s%s", refusal, also);
  const uint64_t now = ticks_now();
  const size_t before = reserve_used;
  write_lane0(GapRecord{.from_ticks = now, .to_ticks = now, .reason = reason}, now);
  if (move_to_reserve() && reserve_used != before) {
    gap_end = state.slab.reserve().records + before + kTimeWords + 2;  // word 0, from, to
  }
}

constexpr const char* kLost =
    "; of the agent's own records (sources, settings, holders) some are lost";

}  // namespace

void flush_lane0() {
  if (!trace_log::is_open() || used == 0) return;
  if (log_refuses) {
    if (!move_to_reserve()) write_gap(kLost);
    return;
  }
  const ChunkMeta meta{.lane = 0,
                       .from = 0,
                       .lane_seq = seq,
                       .base_ticks = base_ticks,
                       .last_ticks = last_ticks,
                       .kinds = kinds};
  if (!trace_log::append(meta, words, used * sizeof(uint64_t))) {
    trace_file::log_failed(errno);
    return;
  }
  ++seq;
  used = 0;
  kinds = 0;
}

namespace lane0 {

bool begin() {
  if (words == nullptr) words = own_pages<uint64_t>(kBufferBytes);
  used = reserve_used = 0;
  base_ticks = last_ticks = kinds = seq = 0;
  log_refuses = false;
  gap_end = nullptr;
  return words != nullptr;
}

void log_refused(const char* reason, bool events_missing) {
  if (log_refuses) return;
  log_refuses = true;
  std::snprintf(refusal, sizeof(refusal), "%s", reason);
  const bool whole = move_to_reserve();
  if (events_missing || !whole) write_gap(whole ? "" : kLost);
}

bool refused() {
  return log_refuses;
}

void extend_gap() {
  if (gap_end != nullptr && state.slab.mapped()) {
    __atomic_store_n(gap_end, ticks_now(), __ATOMIC_RELAXED);
  }
}

uint64_t* room(size_t count) {
  if (!trace_log::is_open() || words == nullptr || count > kBufferWords) return nullptr;
  if (used != 0 && (used + count > kBufferWords || used * sizeof(uint64_t) >= kFlushBytes)) {
    flush_lane0();
  }
  return words + used;
}

uint32_t step_clock(uint64_t ticks) {
  if (ticks < last_ticks) ticks = last_ticks;  // lane 0 never goes back
  if (used == 0) {
    base_ticks = last_ticks = ticks;
    return 0;
  }
  const uint64_t delta = ticks - last_ticks;
  last_ticks = ticks;
  return delta < UINT32_MAX ? static_cast<uint32_t>(delta) : UINT32_MAX;
}

void commit(Kind kind, size_t count) {
  used += count;
  kinds |= uint64_t{1} << static_cast<unsigned>(kind);
}

}  // namespace lane0
}  // namespace memscope::capture
