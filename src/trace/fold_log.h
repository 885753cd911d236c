// Rewrites the beginning of a trace's log, so that what is older than a cut takes little room: the
// low-level half of folding (replay/fold.h).
//
//   trace.msm  trace.2.msm ... trace.7.msm | trace.8.msm (being written)
//   \________________________________/
//                 |
//   fold.tmp  =  what stands for the past  +  every chunk with something after the cut, as it is
//        |
//        +-- rename --> trace.msm, whose header says "up to segment 7"; then 2 to 7 are removed
//
// Guarantees
//  * The log is whole at any moment, whoever is killed: fold.tmp is nothing until it is renamed,
//  and
//    from then on a reader passes over the segments that the header covers.
//  * The last segment, and the slab, are only looked at: the agent goes on writing.
//  * One at a time (a lock on fold.tmp). A damaged log is left as it is.
//
// Of the cold records before the cut those are kept that say what the run was (process, settings,
// sources, modules, windows, gaps, notices, children, out of memory); of sampled values one in each
// of 512 parts of the time, the largest; of segments those that are not returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/stacks.h"
#include "trace/chunk_index.h"
#include "trace/fold_kept.h"
#include "trace/lane_cursor.h"
#include "trace/log_writer.h"
#include "trace/records.h"
#include "tsl/robin_map.h"

namespace memscope {

inline constexpr const char* kFoldDraftName = "fold.tmp";

// The lane of the records that stand for the past. Ticks must not fall.
class FoldLane {
 public:
  static constexpr uint32_t kNumber = 0x7fffffff;

  explicit FoldLane(LogWriter& out) : out_(out) {}

  // The lane's number of this stack; defines what it takes.
  uint32_t stack(uint64_t ticks, const StackTable& stacks, const StringTable& strings, StackId id);
  template <typename Record>
  void record(uint64_t ticks, const Record& record) {
    const size_t words = encoded_words(record);
    uint64_t* at = room(ticks, words);
    if (at == nullptr) return;
    at[0] = encode_record(record, 0, take_dt(ticks), at);
    commit(static_cast<uint8_t>(Record::kKind), words);
  }
  // False with errno where the log could not be written.
  bool flush();

 private:
  uint64_t string(uint64_t ticks, const StringTable& strings, StringId id);
  uint64_t* room(uint64_t ticks, size_t words);  // null where it can never fit
  uint32_t take_dt(uint64_t ticks);
  void commit(uint8_t kind, size_t words);

  LogWriter& out_;
  std::vector<uint64_t> words_;
  size_t used_ = 0;
  uint64_t seq_ = 0, base_ticks_ = 0, ticks_ = 0, kinds_ = 0;
  bool failed_ = false;
  tsl::robin_map<uint32_t, uint64_t> strings_, frames_;
  tsl::robin_map<uint32_t, uint32_t> stacks_;
};

class FoldLog {
 public:
  // The log in a process's directory.
  static Result<FoldLog> open(const std::filesystem::path& directory);

  // Bytes of the files that a fold may replace.
  uint64_t bytes() const;
  // The last tick to fold, so that about `keep_bytes` of the files above are left as they are; 0
  // where so little would be won that it is not worth it.
  uint64_t cut(uint64_t keep_bytes);

  struct Request {
    uint64_t ticks = 0;       // the last one to fold
    bool keep_steps = false;  // the steps' records stay: nobody knows yet which of them count
    std::function<void(FoldLane&)> past;  // writes what stands for it
  };
  // Writes fold.tmp, puts it in the place of trace.msm, removes the segments that it covers.
  // Returns the new size.
  Result<uint64_t> replace(const Request& request);

 private:
  class LaneState;
  // Where a lane's records after the cut begin.
  struct Position {
    uint64_t lane_seq = 0, clock = 0;
    uint32_t at = 0;
  };

  bool is_live(const Piece& piece) const;
  // A window that opened before `ticks` and was written after it; its ticks, 0 where there is none.
  uint64_t window_astride(uint64_t ticks);
  bool read(const Piece& piece);
  Result<Position> look_through(const LaneIndex& lane, const Request& request, LaneState& state,
                                FoldKept& kept, std::vector<Piece>& rest);
  bool write_kept(FoldKept& kept, const Position& start, uint64_t ticks, LogWriter& out);
  Result<void> write(const Request& request, LogWriter& out);
  Result<void> copy(const Piece& piece, LogWriter& out);
  Error unreadable(const Piece& piece) const;

  std::filesystem::path directory_;
  std::vector<InputFile> files_;  // the last one is being written
  LogHeader header_{};
  uint32_t first_segment_ = 1, last_segment_ = 1;  // that are in closed files
  std::vector<LaneIndex> lanes_;
  std::unique_ptr<ZstdContext> zstd_ = std::make_unique<ZstdContext>();
  std::vector<uint64_t> words_;  // of the piece that was read
};

}  // namespace memscope
