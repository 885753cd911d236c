// Events in time order -> live blocks, curves of every stack and pool over the steps, and what is
// alive at the end.
//
//   ReplayResult result = replay(source, {});      // finds the steps, then reads the source once
//
// Guarantees
//  * Memory is bounded by live blocks and by distinct stacks (at most 256 points each), not by the
//    number of events or steps.
//  * No event is an error: a free of an unknown address is counted; an alloc on a live address is
//    put in order or counted as ambiguous (block_tracker.h).
//  * Over stop() and start() a block that is seeded again with its birth is the same block and
//    keeps its stack; one that is not was freed in between, and its address may be used again at
//    once; one seeded without ever having been seen has no stack and is never accused. A gap
//    (events lost) makes what is older than its end `fate unknown`.
// HOT PATH: feed().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/event.h"
#include "replay/block_notes.h"
#include "replay/block_tracker.h"
#include "replay/event_source.h"
#include "replay/history.h"
#include "replay/live_blocks.h"
#include "replay/side_records.h"
#include "replay/step_curves.h"
#include "replay/steps.h"

namespace memscope {

struct ReplayOptions {
  uint64_t skew_ns = kClockSkewNs;
  uint32_t first_step = 0;       // what came before is one bucket; 0 = from the beginning
  uint32_t last_step = 0;        // judge the blocks alive at the end of this step; 0 = at the end
  std::optional<Device> device;  // only this one
};

struct LiveBlock {
  uint64_t addr = 0;
  uint64_t size = 0;
  uint64_t birth = 0;
  uint32_t group = 0;
  uint32_t step = 0;
  bool preexisting = false;
  bool fate_unknown = false;
  uint32_t owner = 0;         // index into SideRecords::owners, 0 = not told
  uint64_t sampled_size = 0;  // Event::sampled_size

  // Blocks that it stands for.
  double count() const { return sampled_count(size, sampled_size); }
};

// What is no longer in the input event by event (fold.h).
struct FoldedPast {
  uint64_t from = 0, to = 0;  // ns since the epoch; both 0: nothing was folded
  uint32_t steps = 0;         // of the plan, that were over at `to`
  uint64_t events = 0, folds = 0;
};

struct ReplayResult {
  StepPlan plan;
  Buckets buckets;
  uint32_t last_step = 0;     // the last step that was judged
  std::vector<Group> groups;  // [0] is unused
  std::vector<Pool> pools;
  std::vector<LiveBlock> live;  // at the end of the input, or of ReplayOptions::last_step
  SideRecords side;
  FoldedPast folded;
  TimeRange range;      // of the events
  uint64_t events = 0;  // allocs, frees and seeds
  uint64_t ambiguous = 0, unknown_frees = 0, preexisting = 0;
  // Bytes between two samples of the host layer, on average; 0: all of it was recorded.
  uint64_t host_sample = 0;
};

class Replay {
 public:
  using TimeOf = std::function<uint64_t(uint64_t ticks)>;
  Replay(StepPlan plan, ReplayOptions options, TimeOf time_of);

  void feed(const Event& event);
  ReplayResult finish();

  // How things stand, for a fold.
  void stand_at(uint64_t time);  // the steps that ended up to then are over
  const LiveBlocks& live() const { return blocks_.live(); }
  const SampledBlocks& sampled() const { return sampled_; }
  const StepCurves& curves() const { return curves_; }
  const ReplayResult& so_far() const { return result_; }
  uint64_t ambiguous() const { return blocks_.ambiguous() + folded_ambiguous_; }

  // As a BlockSink: curves and totals follow the blocks.
  bool begins(Block& block, const Event& event);
  void ends(const Block& block, const BlockEnd& end);
  void returns(Block& block, const Event& event);
  void unknown_free(const Event& event);

 private:
  bool left_out(const Event& event) const {
    return options_.device && event.where.device != *options_.device;
  }
  void record(const Event& event);
  void folded(const Event& event);
  bool begins_folded(Block& block, const Event& event);
  void begins_sampled(const Block& block, const Event& event);
  void end_steps(const Event& event);
  void end_step();
  std::vector<LiveBlock> list_live() const;

  ReplayOptions options_;
  TimeOf time_of_;
  BlockTracker<Block> blocks_;
  SampledBlocks sampled_;
  StepCurves curves_;
  BlockNotes notes_;
  ReplayResult result_;
  uint64_t folded_ambiguous_ = 0;
};

// Finds the steps of `source` and replays it. The source must stand at its beginning.
template <EventSource Source>
ReplayResult replay(Source& source, const ReplayOptions& options) {
  StepFinder finder;
  source.scan(StepFinder::kKinds, [&](const Event& event) { finder.add(event); });
  const TimeRange range = finder.needs_range() ? source.time_range() : TimeRange{};
  Replay replay(finder.plan(range), options, [&](uint64_t ticks) { return source.time_of(ticks); });
  for_each_event(source, [&](const Event& event) { replay.feed(event); });
  return replay.finish();
}

}  // namespace memscope
