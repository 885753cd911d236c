#include "trace/chunk_index.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "trace/chunk_check.h"
#include "trace/record_table.h"

namespace memscope {
namespace {

std::string at(const InputFile& file, uint64_t offset) {
  return file.path().string() + " at offset " + std::to_string(offset);
}

// The next offset from `from` on where a sound header lies, or the file's size.
uint64_t resynchronise(const InputFile& file, uint64_t from) {
  constexpr size_t kWindow = 1 << 20;
  std::vector<char> window(kWindow);
  char magic[sizeof(kChunkMagic)];
  std::memcpy(magic, &kChunkMagic, sizeof(magic));
  while (from + sizeof(ChunkHeader) <= file.size()) {
    // A crash may leave terabytes of nothing behind the last chunk.
    from = std::max(from, file.next_data(from));
    const size_t got = file.read_at(from, window.data(), window.size());
    if (got < sizeof(ChunkHeader)) break;
    size_t i = 0;
    while (i + sizeof(ChunkHeader) <= got) {
      const void* found = memmem(window.data() + i, got - i, magic, sizeof(magic));
      if (found == nullptr) {
        i = got;
        break;
      }
      i = static_cast<size_t>(static_cast<const char*>(found) - window.data());
      if (i + sizeof(ChunkHeader) > got) break;
      ChunkHeader header;
      std::memcpy(&header, window.data() + i, sizeof(header));
      if (fault_of(header) == nullptr) return from + i;
      ++i;
    }
    if (got < window.size()) break;
    from += std::min(i, got - sizeof(ChunkHeader) + 1);
  }
  return file.size();
}

auto slot_key(uint32_t lane, uint64_t lane_seq) {
  return std::tuple(lane, lane_seq);
}

uint32_t bytes_of(const SlabCopy::Slot* slot) {
  return slot == nullptr ? 0 : static_cast<uint32_t>(slot->word_count * sizeof(uint64_t));
}

Piece slab_piece(const SlabCopy::Slot& slot, uint32_t from, uint32_t to, uint64_t base_ticks) {
  Piece piece;
  piece.lane = slot.lane;
  piece.from = from;
  piece.to = to;
  piece.lane_seq = slot.lane_seq;
  piece.base_ticks = base_ticks;
  piece.last_ticks = base_ticks;
  piece.kinds = slot.kinds;
  piece.offset = slot.first_word + from / sizeof(uint64_t);
  return piece;
}

// Lays the pieces of one slot end to end. `pieces` is sorted by from, the longest first.
// What comes before `covered` has been told of otherwise.
void assemble_slot(std::span<const InputFile> log, std::span<const Piece> pieces,
                   const SlabCopy::Slot* slot, uint32_t covered, uint64_t clock_there,
                   std::vector<Piece>& out, DamageLog& damage) {
  uint64_t ticks = covered != 0 ? clock_there : slot != nullptr ? slot->base_ticks : 0;
  for (const Piece& piece : pieces) {
    if (piece.to <= covered) continue;  // written twice
    if (piece.from > covered && piece.lane != 0) {
      const uint32_t have = std::min(piece.from, bytes_of(slot));
      if (have > covered) out.push_back(slab_piece(*slot, covered, have, ticks));
      if (have < piece.from) {
        damage.add(at(log[piece.file], piece.offset) + ": " + std::to_string(piece.from - covered) +
                       " bytes of thread lane " + std::to_string(piece.lane) +
                       " before this chunk are missing; what they held is lost",
                   piece.from - std::max(have, covered));
      }
    }
    out.push_back(piece);
    out.back().skip_to = std::max(covered, piece.from);
    covered = piece.to;
    ticks = piece.last_ticks;
  }
  if (bytes_of(slot) > covered) out.push_back(slab_piece(*slot, covered, bytes_of(slot), ticks));
}

void note_tail(const InputFile& log, const LogIndex& index, const SlabCopy& slab,
               DamageLog& damage) {
  if (index.tail_bytes == 0) return;
  if (index.has_tail_header) {
    const SlabCopy::Slot* slot = slab.find(index.tail.lane, index.tail.lane_seq);
    if (bytes_of(slot) >= index.tail.to) return;
  } else if (!slab.slots.empty() && index.tail_bytes < sizeof(ChunkHeader)) {
    return;  // killed in the middle of an append: the slot it came from is still in the slab
  }
  damage.add(at(log, index.end) + ": the last chunk is cut short after " +
                 std::to_string(index.tail_bytes) +
                 " bytes (an incomplete copy or a full disk?); what it held is lost",
             index.tail_bytes, DamageLog::Lost::kAtTheEnd);
}

}  // namespace

size_t record_words(uint64_t first) {
  const auto kind = static_cast<uint8_t>(first & 0xff);
  if (kind < kFirstColdKind) return static_cast<size_t>(hot_words(kind));
  return kind < kKindLimit ? first >> 8 & kArgMask : 0;
}

LogIndex index_log(const InputFile& file, uint32_t header_bytes, DamageLog& damage) {
  LogIndex index;
  uint64_t offset = header_bytes;
  while (offset < file.size()) {
    ChunkHeader header{};
    const uint64_t left = file.size() - offset;
    const size_t got = file.read_at(offset, &header, sizeof(header));
    const char* fault = got < sizeof(header) ? nullptr : fault_of(header);
    if (fault != nullptr) {
      const uint64_t next = resynchronise(file, offset + 1);
      damage.add(at(file, offset) + ": " + fault + "; skipped " + std::to_string(next - offset) +
                     " bytes" + (next < file.size() ? " to the next sound chunk" : ", the rest"),
                 next - offset,
                 next < file.size() ? DamageLog::Lost::kInTheMiddle : DamageLog::Lost::kAtTheEnd);
      offset = next;
      continue;
    }
    index.end = offset;
    if (got < sizeof(header) || header.compressed_bytes > left - sizeof(header)) {
      index.tail_bytes = left;
      index.has_tail_header = got == sizeof(header);
      index.tail = header;
      return index;
    }
    Piece piece;
    piece.lane = header.lane;
    piece.from = header.from;
    piece.to = header.to;
    piece.before = is_mark_before(header.slot_index);
    if (piece.before) piece.skip_to = static_cast<uint32_t>(header.slot_index);
    piece.lane_seq = header.lane_seq;
    piece.base_ticks = header.base_ticks;
    piece.last_ticks = header.last_ticks;
    piece.kinds = header.kinds;
    piece.offset = offset + sizeof(header);
    piece.compressed = header.compressed_bytes;
    (piece.before ? index.before : index.pieces).push_back(piece);
    offset += sizeof(header) + header.compressed_bytes;
  }
  index.end = offset;
  return index;
}

const SlabCopy::Slot* SlabCopy::find(uint32_t lane, uint64_t lane_seq) const {
  const auto found = std::lower_bound(
      slots.begin(), slots.end(), slot_key(lane, lane_seq),
      [](const Slot& s, const auto& key) { return slot_key(s.lane, s.lane_seq) < key; });
  const bool hit = found != slots.end() && found->lane == lane && found->lane_seq == lane_seq;
  return hit ? &*found : nullptr;
}

SlabCopy read_slab(const InputFile& file, uint64_t pid, DamageLog& damage) {
  SlabCopy copy;
  const std::string name = file.path().string();
  SlabHeader header{};
  if (file.read_at(0, &header, sizeof(header)) < sizeof(header) || header.magic != kSlabMagic) {
    damage.add(name + " at offset 0: not a slab of MemScope; it was left aside");
    return copy;
  }
  if (header.major != kFormatMajor || header.slot_bytes != kSlotBytes) {
    damage.add(name + " at offset 8: a slab of format " + std::to_string(header.major) + "." +
               std::to_string(header.minor) + "; it was left aside");
    return copy;
  }
  if (pid != kNoPid && header.pid != pid) {
    damage.add(name + " at offset 16: the slab of process " + std::to_string(header.pid) +
               ", not of the log's process " + std::to_string(pid) + "; it was left aside");
    return copy;
  }
  copy.pid = header.pid;
  std::vector<uint64_t> slot(kSlotBytes / sizeof(uint64_t));
  constexpr size_t kHeaderWords = sizeof(SlotHeader) / sizeof(uint64_t);
  for (uint32_t i = 0; i < header.slot_count; ++i) {
    const uint64_t offset = kSlabHeaderBytes + uint64_t{i} * kSlotBytes;
    if (offset >= file.size()) break;
    SlabCopy::Slot entry;
    size_t words = 0;
    // A slot may change hands while it is copied; what it held before is then in the log.
    for (int attempt = 0; attempt < 3; ++attempt) {
      const size_t got = file.read_at(offset, slot.data(), kSlotBytes) / sizeof(uint64_t);
      uint64_t again[kHeaderWords] = {};
      words = 0;
      if (got <= kHeaderWords) break;
      if (file.read_at(offset, again, sizeof(again)) != sizeof(again)) break;
      // All but the kinds (word 5), which grow.
      if (std::memcmp(again, slot.data(), 5 * sizeof(uint64_t)) != 0) continue;
      entry.lane = static_cast<uint32_t>(slot[0] >> 32);
      entry.lane_seq = slot[1];
      entry.base_ticks = slot[2];
      entry.mono_ns = slot[3];
      entry.real_ns = slot[4];
      entry.kinds = 0;
      for (words = kHeaderWords; words < got && slot[words] != 0;) {
        const size_t length = record_words(slot[words]);
        if (length == 0 || length > got - words) {
          damage.add(at(file, offset + words * sizeof(uint64_t)) +
                         ": not a record; the rest of this slot is lost",
                     (got - words) * sizeof(uint64_t));
          break;
        }
        entry.kinds |= uint64_t{1} << (slot[words] & 63);  // kinds from 64 on: a bit too many
        words += length;
      }
      words -= kHeaderWords;
      break;
    }
    if (words == 0) continue;
    entry.first_word = copy.words.size();
    entry.word_count = words;
    copy.words.insert(copy.words.end(), slot.begin() + kHeaderWords,
                      slot.begin() + static_cast<ptrdiff_t>(kHeaderWords + words));
    copy.slots.push_back(entry);
  }
  // The same slot of a lane twice cannot be; if it is, the longer copy counts.
  std::sort(copy.slots.begin(), copy.slots.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.lane, a.lane_seq, b.word_count) <
           std::tuple(b.lane, b.lane_seq, a.word_count);
  });
  const auto twice = [](const auto& a, const auto& b) {
    return a.lane == b.lane && a.lane_seq == b.lane_seq;
  };
  copy.slots.erase(std::unique(copy.slots.begin(), copy.slots.end(), twice), copy.slots.end());
  return copy;
}

namespace {

// From where on a lane is read, where a folded log stands for what was before.
struct LaneStart {
  uint64_t lane_seq = 0, clock = 0;
  uint32_t at = 0;
};

class LaneAssembly {
 public:
  LaneAssembly(std::span<const InputFile> log, DamageLog& damage) : log_(log), damage_(damage) {}

  // The pieces before a lane's start, as they lie in the log. Before any slot.
  void begin(const std::vector<Piece>& before) {
    for (const Piece& piece : before) {
      LaneIndex* lane = lane_for(piece.lane);
      if (lane == nullptr) continue;
      lane->pieces.push_back(piece);
      lane->pieces.back().skip_to = 0;
      starts_[piece.lane] = {piece.lane_seq, piece.base_ticks, piece.skip_to};
    }
  }

  void slot(uint32_t number, uint64_t lane_seq, std::span<const Piece> pieces,
            const SlabCopy::Slot* in_slab) {
    uint32_t covered = 0;
    uint64_t clock = 0;
    if (const auto start = starts_.find(number); start != starts_.end()) {
      if (lane_seq < start->second.lane_seq) return;
      if (lane_seq == start->second.lane_seq) {
        covered = start->second.at;
        clock = start->second.clock;
      }
    }
    if (LaneIndex* lane = lane_for(number); lane != nullptr) {
      assemble_slot(log_, pieces, in_slab, covered, clock, lane->pieces, damage_);
    } else {
      ++refused_;
    }
  }

  std::vector<LaneIndex> finish() {
    if (refused_ != 0) {
      damage_.add(log_.front().path().string() + ": more than " + std::to_string(kMaxLanes) +
                  " thread lanes; " + std::to_string(refused_) + " slots were left aside");
    }
    std::vector<LaneIndex> list;
    for (auto& [number, lane] : lanes_) list.push_back(std::move(lane));
    return list;
  }

 private:
  LaneIndex* lane_for(uint32_t number) {
    const auto found = lanes_.find(number);
    if (found != lanes_.end()) return &found->second;
    if (lanes_.size() == kMaxLanes) return nullptr;
    return &(lanes_[number] = {number, {}});
  }

  std::span<const InputFile> log_;
  DamageLog& damage_;
  std::map<uint32_t, LaneIndex> lanes_;
  std::map<uint32_t, LaneStart> starts_;
  size_t refused_ = 0;
};

}  // namespace

std::vector<LaneIndex> assemble_lanes(std::span<const InputFile> log, std::vector<LogIndex> indexes,
                                      const SlabCopy& slab, DamageLog& damage) {
  std::vector<Piece> pieces;
  LaneAssembly lanes(log, damage);
  for (uint32_t file = 0; file < indexes.size(); ++file) {
    LogIndex& index = indexes[file];
    for (Piece& piece : index.pieces) piece.file = file;
    for (Piece& piece : index.before) piece.file = file;
    lanes.begin(index.before);
    if (pieces.empty()) {
      pieces = std::move(index.pieces);
    } else {
      pieces.insert(pieces.end(), index.pieces.begin(), index.pieces.end());
      index.pieces = {};
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tuple(a.lane, a.lane_seq, a.from, b.to) <
           std::tuple(b.lane, b.lane_seq, b.from, a.to);
  });
  size_t next = 0;
  auto slot = slab.slots.begin();
  while (next < pieces.size() || slot != slab.slots.end()) {
    const bool take_log =
        next < pieces.size() &&
        (slot == slab.slots.end() || slot_key(pieces[next].lane, pieces[next].lane_seq) <=
                                         slot_key(slot->lane, slot->lane_seq));
    const auto key = take_log ? slot_key(pieces[next].lane, pieces[next].lane_seq)
                              : slot_key(slot->lane, slot->lane_seq);
    const size_t first = next;
    while (next < pieces.size() && slot_key(pieces[next].lane, pieces[next].lane_seq) == key) {
      ++next;
    }
    const SlabCopy::Slot* in_slab = nullptr;
    if (slot != slab.slots.end() && slot_key(slot->lane, slot->lane_seq) == key) {
      in_slab = &*slot++;
    }
    lanes.slot(std::get<0>(key), std::get<1>(key), std::span(pieces).subspan(first, next - first),
               in_slab);
  }
  for (size_t file = 0; file < indexes.size(); ++file) {
    note_tail(log[file], indexes[file], slab, damage);
  }
  return lanes.finish();
}

}  // namespace memscope
