// Events in time order -> an InputIndex, in one pass.
//
//   IndexBuilder builder(index, directory);     // columns become files of the directory
//   while (...) builder.feed(event);
//   builder.finish();
//
// Which block an event begins or ends is replay's word (replay/block_tracker.h). Memory beside the
// columns is bounded by live blocks. HOT PATH: feed, begins, ends.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/event.h"
#include "replay/block_tracker.h"
#include "replay/event_source.h"
#include "view/input_index.h"

namespace memscope::view {

class IndexBuilder {
 public:
  // A live block: its number in its pool.
  struct Live : BlockLife {
    uint32_t block = 0;
  };
  static constexpr size_t kMaxRecords = 4'000'000;  // of each list of the index

  using TimeOf = SideRecords::TimeOf;
  // An empty directory: columns in memory.
  IndexBuilder(InputIndex& index, std::filesystem::path directory, TimeOf time_of);

  void feed(const Event& event);
  // Stacks, strings and threads of the source must be in the index by then.
  void finish();

  // As a BlockSink.
  bool begins(Live& live, const Event& event);
  void ends(const Live& live, const BlockEnd& end);
  void returns(Live& live, const Event& event);
  void unknown_free(const Event& event);

 private:
  // What a pool needs while it is built.
  struct Pool {
    PoolIndex* index = nullptr;
    uint64_t live_bytes = 0;
    uint32_t live_blocks = 0;
    EventGroup group;
    bool full = false;    // no more events fit
    bool undone = false;  // totals must be made anew
    int64_t reserved = -1, untracked = 0;
  };

  Pool& pool_of(Where where);
  uint64_t since(uint64_t time) const { return time > origin_ ? time - origin_ : 0; }
  void append(Pool& pool, uint64_t time, uint32_t word, uint64_t bytes_after);
  uint32_t begin_block(Pool& pool, const Event& event, uint64_t flags);
  void end_block(Pool& pool, uint32_t block, uint64_t time, ThreadId thread, uint64_t flags);
  void totals(Pool& pool, const Event& event);

  void window(const Event& event);
  void record(const Event& event);
  void owner(const Event& event);
  void mark(const Event& event);
  void counter(const Event& event);
  void holder(const Event& event);
  void access(const Event& event);
  uint32_t name(std::string_view text);

  InputIndex& index_;
  std::filesystem::path directory_;
  TimeOf time_of_;
  BlockTracker<Live> blocks_;
  StepFinder steps_;
  std::vector<Pool> pools_;
  std::vector<uint16_t> pool_index_;  // by Where::packed, + 1
  std::vector<bool> stack_used_;
  uint64_t origin_ = 0, last_ = 0;
  bool any_ = false;

  std::map<std::string, uint32_t, std::less<>> owner_ids_, name_ids_;
  std::map<std::pair<std::string, uint16_t>, size_t> counter_ids_;
  tsl::robin_map<uint64_t, size_t> open_marks_;  // range id -> index into marks
};

// Reads a source to its end. `progress(events)` is called now and then; false stops early.
template <EventSource Source, typename Progress>
bool build_index(Source& source, IndexBuilder& builder, Progress&& progress) {
  std::array<Event, 512> batch;
  uint64_t events = 0;
  for (uint32_t turn = 0; const size_t count = source.next_batch(batch); ++turn) {
    for (size_t i = 0; i < count; ++i) builder.feed(batch[i]);
    events += count;
    if (turn % 256 == 0 && !progress(events)) return false;
  }
  return true;
}

}  // namespace memscope::view
