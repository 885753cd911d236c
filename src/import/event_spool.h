// Events in whatever order -> events of each process in time order, in bounded memory: an external
// merge sort.
//
//   EventSpool spool;
//   spool.add(entry, words); ...                    // as they are read
//   if (auto done = spool.finish(); !done) ...
//   SpoolReader reader(spool, part, SpoolReader::kAll);
//   while (const SpoolEntry* entry = reader.next()) use(*entry, reader.words());
//
// The original writes a block's rows when the block is freed, or at exit, so its files are in no
// order at all. A run is kRunBytes of entries, sorted by process, time and id:
//
//   run:   | part 0: block block block | part 1: block | ...       a block: up to kBlockBytes, zstd
//
// Allocs and frees are in other runs than records, so that marks and steps are found without
// reading the rest. Runs are kept in memory up to kMemoryBytes, then in a file in the directory for
// temporary files (TMPDIR) that has no name: nothing is left behind, however the process ends.
//
// Memory: 3 * kRunBytes while entries are added, kMemoryBytes of runs, and for each reader one
// block a run, 64 KiB (4 MiB at worst, for a record with a text as long): 3 MiB for 10 M events.
// Disk: about 16 B an event.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"

namespace memscope {

struct SpoolEntry {
  uint64_t time = 0;  // ns since the epoch
  uint64_t id = 0;    // orders what has the same time
  uint64_t addr = 0, size = 0;
  uint64_t allocated = 0, reserved = 0;
  uint32_t stack = 0, thread = 0;
  uint16_t part = 0;   // which process of the file
  uint16_t where = 0;  // Where::packed
  EventKind kind = EventKind::kRecord;
  uint8_t record_kind = 0;  // Kind of a record
  uint8_t flags = 0;        // the spool's user's
  uint8_t order = 0;        // of the events of one row
};
static_assert(sizeof(SpoolEntry) == 64);

class EventSpool {
 public:
  static constexpr size_t kRunBytes = 16 << 20, kMemoryBytes = 32 << 20, kBlockBytes = 64 << 10;
  static constexpr size_t kMaxWords = (4 << 20) / 8;  // of a record

  EventSpool();
  ~EventSpool();
  EventSpool(const EventSpool&) = delete;
  EventSpool& operator=(const EventSpool&) = delete;

  // `words`: a whole encoded record for EventKind::kRecord, else none. Failures show in
  // finish(), and failed() so that one need not read on.
  void add(SpoolEntry entry, std::span<const uint64_t> words = {});
  bool failed() const { return !error_.empty(); }
  Result<void> finish();

  uint64_t bytes() const { return stored_; }  // of compressed runs
  size_t runs() const { return runs_.size(); }

 private:
  friend class SpoolReader;
  struct Part {
    uint16_t part = 0;
    uint64_t begin = 0, end = 0;  // of its blocks in the store
  };
  struct Run {
    bool records = false;
    std::vector<Part> parts;  // ascending
  };
  struct Batch {
    std::vector<SpoolEntry> entries;
    std::vector<uint64_t> words;  // of records: `addr` is where theirs begin, `size` their number
    size_t bytes() const { return entries.size() * sizeof(SpoolEntry) + words.size() * 8; }
  };
  void seal(Batch& batch, bool records);
  void write_block(std::vector<std::byte>& block, Run& run, uint16_t part);
  void store(std::span<const std::byte> bytes);
  bool load(uint64_t at, std::span<std::byte> out) const;

  Batch hot_, cold_;
  std::vector<Run> runs_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> compressed_;
  struct Compressor;
  std::unique_ptr<Compressor> compressor_;
  int file_ = -1;
  uint64_t stored_ = 0;
  std::string error_;
};

class SpoolReader {
 public:
  enum Which : uint8_t { kAll, kRecords };

  SpoolReader(const EventSpool& spool, uint16_t part, Which which);
  ~SpoolReader();
  SpoolReader(SpoolReader&&) noexcept;
  SpoolReader& operator=(SpoolReader&&) noexcept;

  // Null at the end. Valid until the next call, as are words().
  const SpoolEntry* next();
  std::span<const uint64_t> words() const;
  bool damaged() const;  // the file could not be read back

 private:
  struct Cursor;
  struct Decompressor;
  std::unique_ptr<Decompressor> decompressor_;  // of all cursors
  std::vector<std::unique_ptr<Cursor>> cursors_;
  std::vector<Cursor*> heap_;  // by their entries, least first
  Cursor* last_ = nullptr;
  bool damaged_ = false;
};

}  // namespace memscope
