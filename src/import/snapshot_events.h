// A snapshot as replay takes it: an EventSource, in time order.
//
//   where the history begins   segments that were there; blocks: allocs where their stack is known
//                              (it is, of those that are alive at the end), else seeds
//   alloc                      an alloc; `size` is the block's (what was asked for, rounded), with
//                              the pool's totals. An Owner record follows, where the user
//                              said something of it.
//   free_requested             a free. (free_completed too, if its request was before the history.)
//   segment_*, oom, snapshot   Segment, Oom, Mark records
//   annotations                Mark records; the end of `Optimizer.step#X` or `ProfilerStep#n` ends
//                              a step
//   the end                    PoolSnapshot records with the sums of the segments
//
// Devices are merged by time. Where the recorder has no clock (torch_npu) an entry's time is its
// place in its device's list, in microseconds: an order, not a duration.
//
// Memory: 16 B for each block of a size that was not asked for so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/mix_hash.h"
#include "import/event_pass.h"
#include "import/snapshot_file.h"
#include "replay/event_source.h"
#include "tsl/robin_map.h"
#include "tsl/robin_set.h"

namespace memscope {

class SnapshotEvents {
 public:
  explicit SnapshotEvents(std::shared_ptr<const SnapshotFile> file);

  size_t next_batch(std::span<Event> out);
  template <typename Visit>
  void scan(uint64_t kinds, Visit&& visit) const {
    scan_records(Pass(*file_, true), kinds, visit);
  }
  TimeRange time_range() const { return {file_->first, file_->last}; }
  uint64_t time_of(uint64_t ticks) const { return ticks; }
  const StackTable& stacks() const { return file_->stacks; }
  const StringTable& strings() const { return file_->strings; }
  void rewind();

  const SnapshotFile& file() const { return *file_; }

 private:
  // Once through the events.
  class Pass {
   public:
    Pass(const SnapshotFile& file, bool records_only);
    // `event.words` is valid until the next call.
    bool next(Event& event);

   private:
    struct Place {
      size_t at = 0;   // of the entry that comes next
      size_t got = 0;  // of PoolStart::got
      uint64_t allocated = 0, reserved = 0;
      tsl::robin_map<uint64_t, uint64_t, MixHash> sizes;  // by address, where not as rounded
      tsl::robin_set<uint64_t, MixHash> freed;            // not completed yet
    };
    struct Made {
      Event event;
      std::vector<uint64_t> words;
    };
    enum class Stage : uint8_t { kSegments, kBlocks, kWindow, kEntries, kEnd, kDone };

    void more();
    void first_segment();
    void first_block();
    void entry();
    void alloc(Place& place, const PoolEntry& entry);
    void freed(Place& place, const PoolEntry& entry, bool completed);
    void segment(Place& place, const PoolEntry& entry, uint64_t action);
    void annotation();
    void end_of_device();
    Where where_of(bool workspace) const;
    Event& put(EventKind kind, uint64_t time);
    void totals(Event& event, const Place& place) const;
    template <typename Record>
    void record(const Record& record, uint64_t time, StackId stack = {});

    const SnapshotFile* file_;
    bool records_only_;
    Stage stage_ = Stage::kSegments;
    size_t device_ = 0, item_ = 0;  // of the stage
    std::vector<Place> places_;     // of each device
    size_t annotation_ = 0;
    uint64_t ranges_ = 0;
    tsl::robin_map<uint32_t, std::vector<uint64_t>> open_;  // ranges by name
    std::array<Made, 4> made_;
    size_t made_begin_ = 0, made_end_ = 0;
  };

  std::shared_ptr<const SnapshotFile> file_;
  Pass pass_;
  std::vector<uint64_t> words_;  // of a batch
};
static_assert(EventSource<SnapshotEvents>);

}  // namespace memscope
