#include "trace/lane_cursor.h"

#include <algorithm>
#include <string>

#include "trace/records.h"

namespace memscope {
namespace {

// Leaves two bits of the key for the order at equal ticks. 2^62 ticks are decades.
constexpr uint64_t kMaxTicks = (uint64_t{1} << 62) - 1;

constexpr uint64_t tie_rank(uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kFree:
    case Kind::kPoolFree:
      return 0;
    case Kind::kAlloc:
    case Kind::kPoolAlloc:
      return 2;
    default:
      return 1;
  }
}

constexpr bool is_definition(uint8_t kind) {
  return kind >= static_cast<uint8_t>(Kind::kLane) && kind <= static_cast<uint8_t>(Kind::kStack);
}

// The lane's own stack id in a cold record that has one.
template <typename Record>
StackId stack_of(std::span<const uint64_t> words, const LaneTables& tables) {
  const auto record = decode_record<Record>(words);
  return record ? tables.stack(record->stack) : StackId{};
}

}  // namespace

LaneCursor::LaneCursor(TraceSource& source, std::span<const Piece> pieces, uint64_t kinds,
                       uint64_t load_kinds)
    : source_(&source),
      kinds_(kinds),
      all_kinds_(load_kinds == kAllKinds),
      hot_kinds_((kinds & kHotKinds) == kHotKinds),
      own_time_((kinds & kOwnTimeKinds) != 0) {
  for (const Piece& piece : pieces) {
    if (all_kinds_ || (piece.kinds & load_kinds) != 0) pieces_.push_back(piece);
  }
  before_next_piece();
}

bool LaneCursor::wanted(uint8_t kind) const {
  if (kind >= 64) return all_kinds_;
  return (kinds_ >> kind & 1) != 0;
}

void LaneCursor::before_next_piece() {
  words_ = nullptr;
  if (next_piece_ == pieces_.size()) {
    state_ = State::kDone;
    buffer_ = {};
    return;
  }
  state_ = State::kBeforePiece;
  const Piece& next = pieces_[next_piece_];
  if (next_piece_ != 0 && pieces_[next_piece_ - 1].before && !next.before) {
    // Behind what stands for the folded past: that clock was another, and its time is over.
    floor_ = std::min(pieces_[next_piece_ - 1].last_ticks, kMaxTicks - 1) + 1;
    ticks_ = 0;
  }
  ticks_ = std::min(std::max(ticks_, next.base_ticks), kMaxTicks);
  if (!own_time_) key_ = ticks_ << 2;
}

void LaneCursor::load() {
  const Piece& piece = pieces_[next_piece_++];
  if (!read_piece(piece)) {
    before_next_piece();
    return;
  }
  at_ = 0;
  skip_ = (piece.skip_to > piece.from ? piece.skip_to - piece.from : 0) / sizeof(uint64_t);
  settle();
}

bool LaneCursor::read_piece(const Piece& piece) {
  if (piece.in_slab()) {
    words_ = source_->slab.words.data() + piece.offset;
    end_ = (piece.to - piece.from) / sizeof(uint64_t);
    return true;
  }
  if (read_from_log(piece)) return true;
  // The slab may still have what the log has lost.
  const SlabCopy::Slot* slot = source_->slab.find(piece.lane, piece.lane_seq);
  if (slot != nullptr && slot->word_count * sizeof(uint64_t) >= piece.to) {
    words_ = source_->slab.words.data() + slot->first_word + piece.from / sizeof(uint64_t);
    end_ = (piece.to - piece.from) / sizeof(uint64_t);
    return true;
  }
  source_->damage.add(source_->log[piece.file].path().string() + " at offset " +
                          std::to_string(piece.offset) +
                          ": this chunk cannot be decompressed; its " +
                          std::to_string(piece.to - piece.from) + " bytes are lost",
                      piece.to - piece.from);
  return false;
}

bool LaneCursor::read_from_log(const Piece& piece) {
  ZstdContext& zstd = source_->zstd;
  const size_t size = piece.to - piece.from;  // checked by the index: at most kMaxChunkBytes
  zstd.compressed.resize(piece.compressed);
  if (source_->log[piece.file].read_at(piece.offset, zstd.compressed.data(), piece.compressed) !=
      piece.compressed) {
    return false;
  }
  if (ZSTD_getFrameContentSize(zstd.compressed.data(), piece.compressed) != size) return false;
  buffer_.resize(size / sizeof(uint64_t));
  const size_t got = ZSTD_decompressDCtx(zstd.context, buffer_.data(), size, zstd.compressed.data(),
                                         piece.compressed);
  if (got != size) return false;
  words_ = buffer_.data();
  end_ = buffer_.size();
  return true;
}

void LaneCursor::damaged(const char* reason) {
  const Piece& piece = pieces_[next_piece_ - 1];
  const std::string where =
      piece.in_slab() ? "the slab" : "the chunk at offset " + std::to_string(piece.offset) + " of ";
  source_->damage.add((piece.in_slab() ? where : where + source_->log[piece.file].path().string()) +
                          ", byte " + std::to_string(piece.from + at_ * sizeof(uint64_t)) +
                          " of the slot: " + reason + "; the rest of the slot is lost",
                      (end_ - at_) * sizeof(uint64_t));
  at_ = end_;
}

void LaneCursor::set_key(uint8_t kind) {
  uint64_t ticks = ticks_ + (words_[at_] >> 32);
  if (own_time_) {
    const std::span words(words_ + at_, length_);
    const uint64_t own = kind == static_cast<uint8_t>(Kind::kSeed)
                             ? decode_record<SeedRecord>(words)->window_ticks
                             : decode_record<WindowRecord>(words)->ticks;
    ticks = std::max(own != 0 ? own : ticks, key_ >> 2);
  }
  key_ = std::min(std::max(ticks, floor_), kMaxTicks) << 2 | tie_rank(kind);
}

// Goes on to the next record that is an event, taking in times and definitions on the way.
void LaneCursor::settle() {
  while (at_ < end_) {
    const uint64_t first = words_[at_];
    const auto kind = static_cast<uint8_t>(first & 0xff);
    length_ = record_words(first);
    if (length_ == 0 || length_ > end_ - at_) {
      damaged(first == 0 ? "empty" : "not a record");
      break;
    }
    const bool is_event = !is_definition(kind) && kind != static_cast<uint8_t>(Kind::kTime);
    if (is_event && at_ >= skip_ && wanted(kind)) {
      state_ = State::kAtEvent;
      set_key(kind);
      return;
    }
    if (kind == static_cast<uint8_t>(Kind::kTime)) {
      ticks_ = std::min(std::max(ticks_, words_[at_ + 1]), kMaxTicks);
    } else {
      ticks_ = std::min(ticks_ + (first >> 32), kMaxTicks);
      if (is_definition(kind) && !tables_.define({words_ + at_, length_}, source_->tables)) {
        damaged("a definition runs past its end");
        break;
      }
    }
    at_ += length_;
  }
  before_next_piece();
}

size_t LaneCursor::fill(std::span<Event> out, uint64_t limit) {
  size_t count = 0;
  while (count < out.size() && state_ == State::kAtEvent && key_ < limit) {
    deliver(out[count++]);
    at_ += length_;
    // The common case of settle(): another hot event, wanted, whole.
    if (at_ < end_ && hot_kinds_) {
      const auto kind = static_cast<uint8_t>(words_[at_] & 0xff);
      if (kind >= static_cast<uint8_t>(Kind::kAlloc) &&
          kind <= static_cast<uint8_t>(Kind::kPoolFree)) {
        length_ = static_cast<size_t>(hot_words(kind));
        if (length_ <= end_ - at_ && at_ >= skip_) {
          set_key(kind);
          continue;
        }
      }
    }
    settle();
  }
  return count;
}

void LaneCursor::deliver(Event& event) {
  const uint64_t* words = words_ + at_;
  const auto argument = static_cast<uint32_t>(words[0] >> 8 & kArgMask);
  ticks_ = std::min(ticks_ + (words[0] >> 32), kMaxTicks);
  event = Event{};
  event.thread = tables_.thread();
  event.time = source_->clock.real_ns(key_ >> 2, clock_hint_);
  switch (static_cast<Kind>(words[0] & 0xff)) {
    case Kind::kPoolAlloc:
      event.has_totals = true;
      event.allocated = words[3];
      event.reserved = words[4];
      [[fallthrough]];
    case Kind::kAlloc:
      event.kind = EventKind::kAlloc;
      event.addr = words[1];
      event.size = sized_size(words[2]);
      event.where = Where::unpack(sized_where(words[2]));
      event.stack = tables_.stack(argument);
      if (source_->host_sampling.on()) [[unlikely]]
        scale(event);
      break;
    case Kind::kPoolFree:
      event.has_totals = true;
      event.allocated = words[2];
      event.reserved = words[3];
      [[fallthrough]];
    case Kind::kFree:
      event.kind = EventKind::kFree;
      event.addr = words[1];
      event.where = Where::unpack(static_cast<uint16_t>(argument));
      break;
    default:
      deliver_cold(event, {words, length_});
  }
}

// The one place where a sampled block gets the size that it stands for.
void LaneCursor::scale(Event& event) const {
  if (event.where.layer != Layer::kHost) return;
  event.sampled_size = event.size;
  event.size = source_->host_sampling.stands_for(event.size);
}

void LaneCursor::deliver_cold(Event& event, std::span<const uint64_t> words) {
  const auto kind = static_cast<uint8_t>(words[0] & 0xff);
  event.record_kind = kind;
  event.words = words;
  const auto seed = [&](const auto& block) {
    event.kind = EventKind::kSeed;
    event.addr = block.addr;
    event.size = sized_size(block.sized);
    event.where = Where::unpack(sized_where(block.sized));
    event.birth = block.birth == 0 ? 0 : source_->clock.real_ns(std::min(block.birth, kMaxTicks));
  };
  switch (static_cast<Kind>(kind)) {
    case Kind::kSeed:
      seed(*decode_record<SeedRecord>(words));
      if (source_->host_sampling.on()) scale(event);
      break;
    case Kind::kWindow: {
      const auto window = decode_record<WindowRecord>(words);
      event.kind = EventKind::kWindow;
      event.size = window->action;
      break;
    }
    case Kind::kFoldedBlock: {
      const auto block = decode_record<FoldedBlockRecord>(words);
      seed(*block);
      event.sampled_size = block->sampled_size;  // scaled before it was folded
      event.stack = tables_.stack(block->stack);
      break;
    }
    case Kind::kOom:
      event.stack = stack_of<OomRecord>(words, tables_);
      break;
    case Kind::kDrop:
      event.stack = stack_of<DropRecord>(words, tables_);
      break;
    case Kind::kFold:
      event.stack = stack_of<FoldRecord>(words, tables_);
      break;
    default:
      break;
  }
}

}  // namespace memscope
