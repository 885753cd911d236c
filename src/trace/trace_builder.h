// Writes traces as the agent would, with explicit ticks: for tests of everything that reads traces
// and for the generator of synthetic ones. Not for the agent, whose lanes write into the slab.
//
//   TraceBuilder builder(directory, {.pid = 7});
//   LaneBuilder& lane = builder.lane(1, /*tid=*/7, "python");
//   uint32_t here = lane.stack({{"train.py", "main", 9}, {"train.py", "step", 4}});  // outermost
//   first lane.alloc(100, 0xA0, 512, kWhere, here); lane.record(200, StepRecord{.source = 1, .index
//   = 1}); builder.finish();                                      // trace.msm is complete
//
// Ticks are ns of a monotonic clock that starts kEpochNs after the epoch, unless the options say
// otherwise: TraceReader gives kEpochNs + ticks as the time of an event. A lane's ticks must not
// fall. Lane 0 is the agent's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/mix_hash.h"
#include "core/result.h"
#include "core/stacks.h"
#include "core/where.h"
#include "trace/clock_map.h"
#include "trace/layout.h"
#include "trace/log_writer.h"
#include "trace/records.h"
#include "tsl/robin_map.h"

namespace memscope {

inline constexpr uint64_t kEpochNs = 1'700'000'000'000'000'000;

struct TraceOptions {
  uint64_t pid = 4711;
  int64_t rank = -1;
  std::string host = "synthetic";
  std::string argv0 = "train.py";
  std::string agent = MEMSCOPE_VERSION;
  TickSource ticks = TickSource::kMonotonic;
  ClockAnchor anchor{0, 0, kEpochNs};  // of the log's header
  bool process_record = true;          // lane 0 begins with a Process record made from the above
  int level = LogWriter::kDefaultLevel;
};

struct FrameSpec {
  std::string_view file, function;
  uint32_t line = 0;
  uint32_t end_line = 0;  // 0: the same line
  FrameKind kind = FrameKind::kPython;
  std::string_view module;
  uint32_t first_line = 0;
  uint64_t offset = 0;  // native
  friend bool operator==(const FrameSpec&, const FrameSpec&) = default;
};

class TraceBuilder;

class LaneBuilder {
 public:
  uint32_t number() const { return number_; }

  // -- Definitions: the same thing twice gives the same id. --
  uint64_t string(std::string_view text);
  uint64_t frame(const FrameSpec& spec);
  // Innermost node of the stack, frames from the outermost inwards; 0 for none.
  uint32_t stack(std::span<const FrameSpec> frames);
  uint32_t stack(std::initializer_list<FrameSpec> frames) {
    return stack(std::span(frames.begin(), frames.size()));
  }
  // The lane changes hands: ids start again from 1, stacks must be defined anew; with `keeps_ids`
  // its numbering goes on.
  void change_hands(uint64_t ticks, uint64_t tid, std::string_view thread_name,
                    bool keeps_ids = false);

  // -- Events. --
  void alloc(uint64_t ticks, uint64_t addr, uint64_t size, Where where, uint32_t stack);
  void free(uint64_t ticks, uint64_t addr, Where where);
  void pool_alloc(uint64_t ticks, uint64_t addr, uint64_t size, Where where, uint32_t stack,
                  uint64_t allocated, uint64_t reserved);
  void pool_free(uint64_t ticks, uint64_t addr, Where where, uint64_t allocated, uint64_t reserved);
  // Any record of the table; `argument` is the 24-bit one of hot kinds.
  template <typename Record>
  void record(uint64_t ticks, const Record& record, uint32_t argument = 0) {
    const size_t words = encoded_words(record);
    uint64_t* out = room(ticks, words);
    out[0] = encode_record(record, argument, take_dt(ticks), out);
    commit(static_cast<uint8_t>(Record::kKind), words);
  }
  // A record as raw words, word 0 included (its dt is replaced): unknown kinds, damaged ones.
  void raw(uint64_t ticks, std::span<const uint64_t> words);

  // Writes what the lane holds to the log as a chunk; its slot goes on behind it.
  void seal();
  // Seals, and begins a new slot.
  void next_slot();

 private:
  friend class TraceBuilder;
  LaneBuilder(TraceBuilder& builder, uint32_t number);
  uint64_t* room(uint64_t ticks, size_t words);
  uint32_t take_dt(uint64_t ticks);
  void commit(uint8_t kind, size_t words);

  TraceBuilder* builder_;
  uint32_t number_;
  uint64_t lane_seq_ = 0;
  std::vector<uint64_t> words_;  // the slot's record area
  size_t used_ = 0, sealed_ = 0;
  uint64_t base_ticks_ = 0, piece_ticks_ = 0, ticks_ = 0;
  uint64_t kinds_ = 0, piece_kinds_ = 0;
  bool begun_ = false;

  struct FrameKey {
    uint64_t file, function, module, line, end_line, first_line, kind, offset;
    friend auto operator<=>(const FrameKey&, const FrameKey&) = default;
  };
  std::map<std::string, uint64_t, std::less<>> strings_;
  std::map<FrameKey, uint64_t> frames_;
  tsl::robin_map<uint64_t, uint32_t, MixHash> stacks_;  // parent << 32 | frame
};

class TraceBuilder {
 public:
  // Makes `directory` (and those above it) and trace.msm in it. Failures show in finish().
  explicit TraceBuilder(const std::filesystem::path& directory, const TraceOptions& options = {});
  ~TraceBuilder();
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  // Lane `number`; the first call for it writes its Lane record (none for lane 0).
  LaneBuilder& lane(uint32_t number, uint64_t tid = 0, std::string_view thread_name = "python",
                    uint64_t ticks = 0);
  LaneBuilder& agent() { return lane(0); }

  // Seals all lanes: a trace that ended cleanly, without a slab.
  Result<void> finish();
  // As a kill leaves it: what is not sealed stays in hot.slab, in slots of their lanes.
  Result<void> kill();

  const std::filesystem::path& directory() const { return directory_; }
  uint64_t log_bytes() const { return log_.bytes(); }
  uint64_t records() const { return records_; }

 private:
  friend class LaneBuilder;
  void append(const ChunkMeta& meta, std::span<const uint64_t> words);
  void fail(const std::string& what);
  Result<void> write_slab();
  Result<void> close_log();

  std::filesystem::path directory_;
  TraceOptions options_;
  std::vector<std::byte> buffer_;
  LogWriter log_;
  int fd_ = -1;
  std::string error_;
  std::map<uint32_t, std::unique_ptr<LaneBuilder>> lanes_;
  uint64_t records_ = 0;
  bool closed_ = false;
};

}  // namespace memscope
