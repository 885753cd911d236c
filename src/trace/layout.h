// The bytes of a trace outside its records: the hot slab and the log. Shared by the agent, which
// writes them, and the reader. All integers little-endian.
//
//   hot.slab    [SlabHeader, 4 KiB][slot 0, 64 KiB][slot 1] ...     a thread's lane owns a slot
//   slot        [SlotHeader, 64 B][records ...][0]                  ends at the first zero word
//   trace.msm   [LogHeader, 64 B][ChunkHeader, 64 B][zstd frame][ChunkHeader][zstd frame] ...
//
// A chunk is a piece of a slot: bytes [from, to) of the records of slot number `lane_seq` of lane
// `lane`. The agent appends a chunk to the log first and frees the slot afterwards, so a reader
// that finds both takes the log's bytes and continues in the slab from the largest `to`. Nothing is
// lost and nothing is counted twice, whenever the process is killed. Lane 0 is the agent's own:
// cold records only, in the slab (its last slot) only where the log could take no more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace memscope {

inline constexpr size_t kSlotBytes = 64 * 1024;
inline constexpr size_t kSlabHeaderBytes = 4096;
inline constexpr uint64_t kSlabMagic = 0x3142414C534D534D;  // "MSMSLAB1"
inline constexpr uint64_t kLogMagic = 0x314543415254534D;   // "MSTRACE1"
inline constexpr uint32_t kChunkMagic = 0x4B48434D;         // "MCHK"

enum class TickSource : uint32_t { kTsc = 1, kMonotonic = 2, kArmCounter = 3 };

struct SlabHeader {
  uint64_t magic;
  uint32_t major, minor;
  uint64_t pid;
  uint32_t slot_count, slot_bytes;
  uint64_t start_ticks, place;  // ProcessIdentity of the owner; 0 where it is not known
};

enum class SlotState : uint32_t { kFree = 0, kOwned = 1, kFull = 2 };

struct SlotHeader {
  std::atomic<uint32_t> state;  // SlotState; kFree -> kOwned by a lane, -> kFull by it, -> kFree by
                                // the agent's thread once the log has every byte
  uint32_t lane;
  uint64_t lane_seq;            // 0, 1, 2, ... : this is the lane's lane_seq-th slot
  uint64_t base_ticks;          // clock before the first record
  uint64_t mono_ns, real_ns;    // anchor: both clocks at base_ticks
  std::atomic<uint64_t> kinds;  // bit k: a record of kind k (k < 64) may be in this slot
  uint64_t reserved[2];
};
static_assert(sizeof(SlotHeader) == 64);
inline constexpr size_t kSlotRecordBytes = kSlotBytes - sizeof(SlotHeader);

struct LogHeader {
  uint64_t magic;
  uint32_t major, minor;
  uint32_t tick_source;   // TickSource
  uint32_t header_bytes;  // 64: where the first chunk starts
  uint64_t pid;
  uint64_t ticks, mono_ns, real_ns;  // first anchor
  uint64_t flags;
};
static_assert(sizeof(LogHeader) == 64);
// LogHeader::flags: the process is gone without an end, and the log has what its slab had.
inline constexpr uint64_t kSealedAfterDeath = 1;

// A log that grows large is continued in further files, its segments: trace.msm, trace.2.msm, ...
// The upper half of LogHeader::flags is the number of the last segment that the file stands for:
// its own (0 means 1), or, where trace.msm is a folded one, that of the last segment folded into
// it. The log goes on in the segment after that; files with lower numbers are leftovers.
constexpr uint32_t segment_of(uint64_t flags) {
  const auto number = static_cast<uint32_t>(flags >> 32);
  return number == 0 ? 1 : number;
}
constexpr uint64_t flags_of_segment(uint32_t number) {
  return uint64_t{number} << 32;
}
// Room for a segment's name.
inline constexpr size_t kSegmentNameBytes = 24;
inline void segment_name(char (&name)[kSegmentNameBytes], uint32_t number) {
  if (number <= 1) {
    std::snprintf(name, sizeof(name), "trace.msm");
  } else {
    std::snprintf(name, sizeof(name), "trace.%u.msm", number);
  }
}

struct ChunkHeader {
  uint32_t magic;
  uint32_t compressed_bytes;  // of the zstd frame that follows (its own checksum flag is set)
  uint32_t lane;
  uint32_t from, to;      // bytes of the slot's record area; to - from = uncompressed size
  uint32_t header_check;  // check_of(the header with this field 0)
  uint64_t lane_seq;
  uint64_t base_ticks;  // clock before the chunk's first record
  uint64_t last_ticks;  // clock after its last record
  uint64_t kinds;       // as in SlotHeader: lets a reader look for step records only
  uint64_t slot_index;  // where in the slab it lay, ~0 for lane 0
};
static_assert(sizeof(ChunkHeader) == 64);
// ChunkHeader::slot_index of a chunk that stands for all that the lane had before byte `at` of its
// slot `lane_seq`: the definitions that are still in force (lane 0: records worth keeping).
constexpr uint64_t mark_before(uint32_t at) {
  return uint64_t{1} << 63 | at;
}
constexpr bool is_mark_before(uint64_t slot_index) {
  return slot_index >> 62 == 2;
}
// Lane 0 may carry one large record (a source file), so its chunks may exceed a slot.
inline constexpr uint32_t kMaxChunkBytes = 4u << 20;

// A small mixing check (not cryptographic) over a header with its check field zeroed.
inline uint32_t check_of(const ChunkHeader& header) {
  ChunkHeader copy = header;
  copy.header_check = 0;
  const auto* words = reinterpret_cast<const uint32_t*>(&copy);
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (size_t i = 0; i < sizeof(copy) / sizeof(uint32_t); ++i) {
    hash = (hash ^ words[i]) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash);
}

inline constexpr const char* kLogName = "trace.msm";
inline constexpr const char* kSlabName = "hot.slab";
inline constexpr const char* kMetaName = "meta.json";

}  // namespace memscope
