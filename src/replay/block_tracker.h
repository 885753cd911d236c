// Which block an event begins or ends: said once, for replay, the viewer's index and the dumps
// alike.
//
//   event                             what the sink is told
//   alloc                             begins(block)
//   alloc on a live address           ends(old, kReplaced), then begins(block): the old one's free
//                                     was lost, or follows within the clocks' skew from another
//                                     thread and is then swallowed (order.h)
//   free                              ends(block, kFreed)
//   free of an unknown address        unknown_free(event)
//   the free just told is undone      returns(block): as if it had never ended
//   seed of an unknown address        begins(block), the event being the seed
//   seed of a live block, told again  nothing: it lived on
//   seed of another one there         ends(old, kReseeded), then begins(block)
//   block of a folded past            as a seed, but with a stack, and its history is known
//   first alloc or free after stop()  ends(block, kUnseeded) of all that was alive at stop() and
//   and start()                       was not seeded: freed in between
//
// What a user keeps for a block is a type derived from BlockLife; begins() fills it. Where begins()
// says false the block is not kept. Memory is bounded by the live blocks. No event is an error.
// HOT PATH: alloc(), free().
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/event.h"
#include "replay/live_blocks.h"
#include "replay/order.h"
#include "replay/recording_windows.h"
#include "trace/records.h"

namespace memscope {

enum class BlockEnding : uint8_t { kFreed, kReplaced, kReseeded, kUnseeded };

struct BlockEnd {
  BlockEnding how;
  uint64_t key;        // block_key()
  uint64_t time;       // ns since the epoch; of the window's beginning for kUnseeded
  ThreadId thread;     // that of the event; none for kUnseeded
  const Event* event;  // null for kUnseeded
};

template <typename Sink, typename Kept>
concept BlockSink = std::derived_from<Kept, BlockLife> &&
    requires(Sink& sink, Kept& block, const Event& event, const BlockEnd& end) {
  { sink.begins(block, event) } -> std::same_as<bool>;
  sink.ends(std::as_const(block), end);
  sink.returns(block, event);
  sink.unknown_free(event);
};

template <typename Kept>
class BlockTracker {
 public:
  using Map = BlockMap<Kept>;

  explicit BlockTracker(uint64_t skew_ns = kClockSkewNs) : order_(skew_ns) {}

  // Any event; a window's and a record's too.
  template <BlockSink<Kept> Sink>
  void feed(const Event& event, Sink& sink) {
    switch (event.kind) {
      case EventKind::kAlloc:
        alloc(event, sink);
        break;
      case EventKind::kFree:
        free(event, sink);
        break;
      case EventKind::kSeed:
        seed(event, sink);
        break;
      case EventKind::kWindow:
        window(event, sink);
        break;
      case EventKind::kRecord:
        if (event.record_kind == static_cast<uint8_t>(Kind::kUndo)) undo(event, sink);
        break;
    }
  }

  template <BlockSink<Kept> Sink>
  void alloc(const Event& event, Sink& sink) {
    if (event.size == 0) return;
    if (forget_pending_) [[unlikely]]
      forget_unseeded(sink);
    const uint64_t key = block_key(event.addr, event.where);
    const auto [at, fresh] = live_.try_emplace(key);
    Kept& block = at.value();
    bool fate_unknown = false;
    if (!fresh) [[unlikely]] {
      sink.ends(std::as_const(block), end_by(event, key, BlockEnding::kReplaced));
      order_.displaced(key, event.thread, event.time);
      block = {};
    } else if (order_.unknown_near(event.time)) [[unlikely]] {
      fate_unknown = order_.maybe_freed(key, event.thread, event.time);
    }
    begin(block, event, event.time, fate_unknown);
    if (!sink.begins(block, event)) [[unlikely]]
      live_.erase(key, BlockKeyHash{}(key));
  }

  template <BlockSink<Kept> Sink>
  void free(const Event& event, Sink& sink) {
    if (forget_pending_) [[unlikely]]
      forget_unseeded(sink);
    const uint64_t key = block_key(event.addr, event.where);
    if (!order_.quiet() && order_.takes(key, event.thread, event.time)) [[unlikely]]
      return;
    const auto at = live_.find(key);
    if (at == live_.end()) [[unlikely]] {
      order_.unknown_free(key, event.thread, event.time);
      if (windows_.number != 0 && freed_in_window_.size() < kMaxFreedInWindow) {
        freed_in_window_[key] = event.time;
      }
      sink.unknown_free(event);
      return;
    }
    const Kept block = at->second;
    // Not by iterator: that looks for the next element, far away in a table that was once larger.
    live_.erase(key, BlockKeyHash{}(key));
    freed_[freed_at_++ % kUndoDepth] = {key, block};
    sink.ends(block, end_by(event, key, BlockEnding::kFreed));
  }

  template <BlockSink<Kept> Sink>
  void seed(const Event& event, Sink& sink) {
    if (event.size == 0) return;
    const uint64_t key = block_key(event.addr, event.where);
    // Seeds are written while other threads go on: one that was freed meanwhile is not alive.
    if (!freed_in_window_.empty() && freed_in_window_.erase(key) != 0) return;
    const auto [at, fresh] = live_.try_emplace(key);
    Kept& block = at.value();
    if (!fresh) {
      const uint64_t apart =
          std::max(block.birth, event.birth) - std::min(block.birth, event.birth);
      if (apart <= order_.skew() && block.size == (event.size & kSizeMask)) {
        block.window = windows_.number;
        return;
      }
      // The seed is older than what is there.
      if (block.window == windows_.number && block.birth >= windows_.start) return;
      sink.ends(std::as_const(block), end_by(event, key, BlockEnding::kReseeded));
      block = {};
    }
    bool fate_unknown = event.birth != 0;
    if (event.record_kind == static_cast<uint8_t>(Kind::kFoldedBlock)) {
      // Its history is whole: it was folded.
      const auto folded = decode_record<FoldedBlockRecord>(event.words);
      fate_unknown = folded && (folded->flags & kFoldedFateUnknown) != 0;
    }
    begin(block, event, event.birth, fate_unknown);
    if (!sink.begins(block, event)) live_.erase(key, BlockKeyHash{}(key));
  }

  template <BlockSink<Kept> Sink>
  WindowChange window(const Event& event, Sink& sink) {
    if (forget_pending_) forget_unseeded(sink);
    freed_in_window_.clear();
    const WindowChange change = windows_.change(event);
    forget_pending_ = change.paused_at != 0;
    return change;
  }

  template <BlockSink<Kept> Sink>
  void undo(const Event& event, Sink& sink) {
    const auto record = decode_record<UndoRecord>(event.words);
    if (!record) return;
    const Where where = Where::unpack(static_cast<uint16_t>(record->where));
    const uint64_t key = block_key(record->addr, where);
    for (size_t back = 1; back <= kUndoDepth; ++back) {
      Freed& freed = freed_[(freed_at_ + kUndoDepth - back) % kUndoDepth];
      if (freed.key != key || freed.block.size == 0) continue;
      const auto [at, fresh] = live_.try_emplace(key, freed.block);
      freed = {};
      if (fresh) sink.returns(at.value(), event);
      return;
    }
  }

  // What was alive at stop() and is not seeded at start() was freed in between. alloc() and free()
  // do it before a window's first block; for those who must know earlier.
  template <BlockSink<Kept> Sink>
  void forget_unseeded(Sink& sink) {
    if (!forget_pending_) return;
    forget_pending_ = false;
    std::vector<std::pair<uint64_t, uint64_t>> gone;  // birth, key: in an order of their own
    for (const auto& [key, block] : live_) {
      if (block.window < windows_.number && block.birth <= windows_.stop) {
        gone.emplace_back(block.birth, key);
      }
    }
    std::sort(gone.begin(), gone.end());
    for (const auto& [birth, key] : gone) {
      const Kept block = live_.find(key)->second;
      live_.erase(key, BlockKeyHash{}(key));
      sink.ends(block, {BlockEnding::kUnseeded, key, windows_.start, ThreadId(), nullptr});
    }
  }

  bool forget_pending() const { return forget_pending_; }
  const RecordingWindows& windows() const { return windows_; }
  Map& live() { return live_; }
  const Map& live() const { return live_; }
  uint64_t skew() const { return order_.skew(); }
  // Blocks whose real end was never seen.
  uint64_t ambiguous() const { return order_.ambiguous(); }

 private:
  // Frees of unknown addresses remembered in a window, against seeds that arrive after them.
  static constexpr size_t kMaxFreedInWindow = size_t{1} << 16;
  static constexpr size_t kUndoDepth = 64;

  static BlockEnd end_by(const Event& event, uint64_t key, BlockEnding how) {
    return {how, key, event.time, event.thread, &event};
  }
  void begin(Kept& block, const Event& event, uint64_t birth, bool fate_unknown) {
    // In one piece: a bit field at a time would be read, masked and written.
    static_cast<BlockLife&>(block) = BlockLife{.size = event.size & kSizeMask,
                                               .where = event.where.packed(),
                                               .birth = birth,
                                               .window = windows_.number & 0x7fffffffu,
                                               .fate_unknown = fate_unknown ? 1u : 0u};
  }

  struct Freed {
    uint64_t key = 0;
    Kept block;
  };

  AddressOrder order_;
  Map live_;
  RecordingWindows windows_;
  bool forget_pending_ = false;
  BlockMap<uint64_t> freed_in_window_;  // of addresses unknown to us -> time
  std::array<Freed, kUndoDepth> freed_{};
  size_t freed_at_ = 0;
};

}  // namespace memscope
