// Reads one lane of a trace, piece by piece, as events in the lane's own order. HOT PATH of
// reading.
//
// A cursor stands before its next event. Its key orders the cursors of a process: time first, at
// equal ticks frees before anything else and allocs last. Before a piece is loaded the key is the
// least that its first event can have, so a lane costs memory only once its turn has come.
//
// Windows and seeds say themselves when they happened, which is before they were written: events of
// other threads may lie in between. A cursor of their own (kOwnTimeKinds) reads them by that time.
#pragma once

#include <zstd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/event.h"
#include "core/sampling.h"
#include "trace/chunk_index.h"
#include "trace/clock_map.h"
#include "trace/lane_tables.h"
#include "trace/record_table.h"

namespace memscope {

struct ZstdContext {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<std::byte> compressed;  // one frame, as it lies in the log
  ZstdContext() = default;
  ZstdContext(const ZstdContext&) = delete;
  ZstdContext& operator=(const ZstdContext&) = delete;
  ~ZstdContext() { ZSTD_freeDCtx(context); }
};

// What all cursors of a reader share.
struct TraceSource {
  std::vector<InputFile> log;  // its segments
  SlabCopy slab;
  ClockMap clock;
  ProcessTables tables;
  DamageLog damage;
  ByteSampling host_sampling;  // of the host layer's blocks
  ZstdContext zstd;
};

inline constexpr uint64_t kAllKinds = ~uint64_t{0};
constexpr uint64_t kind_bit(Kind kind) {
  return uint64_t{1} << (static_cast<unsigned>(kind) & 63u);
}
inline constexpr uint64_t kDefinitionKinds = kind_bit(Kind::kLane) | kind_bit(Kind::kString) |
                                             kind_bit(Kind::kFrame) | kind_bit(Kind::kStack);

inline constexpr uint64_t kOwnTimeKinds = kind_bit(Kind::kWindow) | kind_bit(Kind::kSeed);
inline constexpr uint64_t kHotKinds = kind_bit(Kind::kAlloc) | kind_bit(Kind::kFree) |
                                      kind_bit(Kind::kPoolAlloc) | kind_bit(Kind::kPoolFree);

class LaneCursor {
 public:
  // Delivers the events of `kinds` and reads no piece without one of `load_kinds`. Kinds from 64 on
  // come where `load_kinds` is kAllKinds. `kinds` has either none but kOwnTimeKinds or none of
  // them.
  LaneCursor(TraceSource& source, std::span<const Piece> pieces, uint64_t kinds,
             uint64_t load_kinds);

  bool done() const { return state_ == State::kDone; }
  // The next event is in a piece that is not loaded yet: load() before fill(). Loading ends the
  // life of the words of this lane's events.
  bool needs_load() const { return state_ == State::kBeforePiece; }
  uint64_t key() const { return key_; }

  void load();
  // Fills `out` while events are at hand and their key is below `limit`; returns how many.
  size_t fill(std::span<Event> out, uint64_t limit);

 private:
  enum class State { kBeforePiece, kAtEvent, kDone };

  bool read_piece(const Piece& piece);
  bool read_from_log(const Piece& piece);
  void before_next_piece();
  void settle();
  void damaged(const char* reason);
  bool wanted(uint8_t kind) const;
  void set_key(uint8_t kind);
  void deliver(Event& event);
  void scale(Event& event) const;
  void deliver_cold(Event& event, std::span<const uint64_t> words);

  TraceSource* source_;
  std::vector<Piece> pieces_;
  size_t next_piece_ = 0;
  uint64_t kinds_;
  bool all_kinds_, hot_kinds_, own_time_;
  LaneTables tables_;
  State state_ = State::kDone;

  // The loaded piece: its words, where it stands, and the clock before the record at `at_`.
  std::vector<uint64_t> buffer_;
  const uint64_t* words_ = nullptr;
  size_t at_ = 0, end_ = 0, skip_ = 0;
  size_t length_ = 0;  // words of the record at at_
  uint64_t ticks_ = 0;
  uint64_t key_ = 0;
  uint64_t floor_ = 0;  // no event is earlier: what was folded is over
  size_t clock_hint_ = 0;
};

}  // namespace memscope
