// Where the records of a process lie: pieces of slots, in the log or in the slab, each byte once.
//
//   slot  [ piece in the log | hole | piece in the log | tail            ]
//                              ^ from the slab, if it still has the slot
//
// The slab must be read before the log: what the agent frees in between is then in the log.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/damage.h"
#include "trace/input_file.h"
#include "trace/layout.h"

namespace memscope {

struct Piece {
  uint32_t lane = 0;
  uint32_t from = 0, to = 0;  // bytes of the slot's record area
  uint32_t skip_to = 0;       // what lies before it has been in an earlier piece
  uint64_t lane_seq = 0;
  uint64_t base_ticks = 0, last_ticks = 0;
  uint64_t kinds = 0;
  uint64_t offset = 0;      // of the frame in the log; of the words in SlabCopy::words
  uint32_t compressed = 0;  // 0: in the slab
  uint32_t file = 0;        // which of the log's files
  bool before = false;      // stands for all that the lane had before its start, up to last_ticks
  bool in_slab() const { return compressed == 0; }
};

// The used parts of every slot, copied once.
struct SlabCopy {
  struct Slot {
    uint32_t lane = 0;
    uint64_t lane_seq = 0, base_ticks = 0, mono_ns = 0, real_ns = 0, kinds = 0;
    size_t first_word = 0, word_count = 0;
  };
  std::vector<Slot> slots;  // sorted by (lane, lane_seq)
  std::vector<uint64_t> words;
  uint64_t pid = 0;
  const Slot* find(uint32_t lane, uint64_t lane_seq) const;
};

inline constexpr uint64_t kNoPid = 0;

// `pid` is the log's, kNoPid where there is no log: another process's slab is refused.
SlabCopy read_slab(const InputFile& file, uint64_t pid, DamageLog& damage);

struct LogIndex {
  std::vector<Piece> pieces;  // as they lie in the log
  // Of a folded log: what stands for all that a lane had before byte `skip_to` of slot `lane_seq`.
  std::vector<Piece> before;
  // The end of the last whole chunk, and a chunk cut short there, if its header can be read.
  uint64_t end = 0;
  uint64_t tail_bytes = 0;
  bool has_tail_header = false;
  ChunkHeader tail{};
};

LogIndex index_log(const InputFile& file, uint32_t header_bytes, DamageLog& damage);

struct LaneIndex {
  uint32_t lane = 0;
  std::vector<Piece> pieces;  // in the lane's order
};

// A lane is a thread at a time; more than this many at once is damage.
inline constexpr size_t kMaxLanes = 8192;

// Merges the log's files, in their order, and the slab; what none has is noted as damage.
std::vector<LaneIndex> assemble_lanes(std::span<const InputFile> log, std::vector<LogIndex> indexes,
                                      const SlabCopy& slab, DamageLog& damage);

// Words of the record that starts with word 0 `first`, 0 where that cannot be one.
size_t record_words(uint64_t first);

}  // namespace memscope
