#include "replay/fold.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "replay/replay.h"
#include "replay/trace_events.h"
#include "trace/fold_log.h"
#include "trace/reader.h"

namespace memscope {
namespace {

// The ticks of times that the clock's map has given: the first that gives the same time.
class Ticks {
 public:
  Ticks(const TraceReader& reader, uint64_t last) : reader_(reader), last_(last) {}

  uint64_t of(uint64_t time) const {
    uint64_t low = 0, high = last_;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (reader_.to_ns(middle) < time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  uint64_t last() const { return last_; }

 private:
  const TraceReader& reader_;
  uint64_t last_;
};

class PastWriter {
 public:
  PastWriter(const TraceReader& reader, const StepFinder& finder, const Replay& replay,
             const Ticks& ticks)
      : reader_(reader), finder_(finder), replay_(replay), ticks_(ticks) {
    const StepCurves& curves = replay.curves();
    steps_ = curves.step() == 0 ? 0 : curves.step() - 1;
  }

  uint32_t steps() const { return steps_; }

  void write(FoldLane& lane, uint64_t log_bytes) const {
    write_steps(lane);
    write_summary(lane, log_bytes);
    write_curves(lane);
    write_blocks(lane);
    write_pools(lane);
    write_holders(lane);
  }

 private:
  uint64_t now() const { return ticks_.last(); }
  // The last step of a bucket that is over.
  uint32_t to_step(uint32_t bucket) const {
    return std::min(replay_.curves().buckets().last_step(bucket), steps_);
  }

  void write_steps(FoldLane& lane) const {
    const StepPlan& plan = replay_.curves().plan();
    const Buckets& buckets = replay_.curves().buckets();
    std::vector<std::pair<uint64_t, FoldedStepRecord>> records;
    if (plan.begin != 0 && plan.begin <= reader_.to_ns(now())) {
      records.emplace_back(ticks_.of(plan.begin), FoldedStepRecord{});
    }
    for (uint32_t step = 0; step < steps_;) {
      step = to_step(buckets.of_step(step + 1));
      records.emplace_back(ticks_.of(plan.ends[step - 1]), FoldedStepRecord{.step = step});
    }
    if (plan.from >= StepsFrom::kOptimizer) {
      for (const auto& other : finder_.optimizers(reader_.to_ns(now()))) {
        if (other.serial == plan.optimizer) continue;
        records.emplace_back(ticks_.of(other.last),
                             FoldedStepRecord{.optimizer = other.serial, .count = other.count});
      }
    }
    std::stable_sort(records.begin(), records.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [at, record] : records) lane.record(at, record);
  }

  void write_summary(FoldLane& lane, uint64_t log_bytes) const {
    const ReplayResult& result = replay_.so_far();
    const StepPlan& plan = replay_.curves().plan();
    const TraceInfo::Folded& before = reader_.info().folded;
    lane.record(now(), FoldedRecord{.from_ticks = ticks_.of(result.range.first),
                                    .to_ticks = now(),
                                    .steps = steps_,
                                    .source = static_cast<uint64_t>(plan.from),
                                    .optimizer = plan.optimizer,
                                    .width_ns = plan.width,
                                    .events = result.events,
                                    .preexisting = result.preexisting,
                                    .ambiguous = replay_.ambiguous(),
                                    .unknown_frees = result.unknown_frees,
                                    .folds = before.folds + 1,
                                    .log_bytes = before.log_bytes + log_bytes});
  }

  void write_curves(FoldLane& lane) const {
    const auto& groups = replay_.curves().groups();
    for (size_t i = 1; i < groups.size(); ++i) {
      const Group& group = groups[i];
      FoldRecord record{
          .stack = lane.stack(now(), reader_.stacks(), reader_.strings(), group.stack),
          .where = group.where.packed(),
          .seeded = group.seeded ? 1u : 0u};
      for (const CurvePoint& point : group.live) {
        record.to_step = to_step(point.bucket);
        record.live_bytes = point.bytes;
        record.live_blocks = point.blocks;
        record.noise = point.noise;
        if (&point != &group.live.back()) lane.record(now(), record);
      }
      record.allocs = group.allocs;
      record.stands_for = group.stands_for;
      record.changed = group.touched == replay_.curves().step() ? 1 : 0;
      lane.record(now(), record);
    }
  }

  void write_blocks(FoldLane& lane) const {
    const auto& groups = replay_.curves().groups();
    const auto& owners = replay_.so_far().side.owners;
    std::vector<std::pair<uint64_t, const Block*>> blocks;
    for (const auto& [key, block] : replay_.live()) blocks.emplace_back(key, &block);
    std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second->birth, a.first) < std::pair(b.second->birth, b.first);
    });
    for (const auto& [key, block] : blocks) {
      const Group& group = groups[block->group];
      lane.record(now(),
                  FoldedBlockRecord{
                      .addr = block_addr(key, block->place()),
                      .sized = pack_sized(block->size, block->place().packed()),
                      .birth = block->birth == 0 ? 0 : ticks_.of(block->birth),
                      .stack = lane.stack(now(), reader_.stacks(), reader_.strings(), group.stack),
                      .step = block->step,
                      .flags = (block->fate_unknown != 0 ? kFoldedFateUnknown : 0) |
                               (group.seeded ? kFoldedSeeded : 0),
                      .sampled_size = replay_.sampled().recorded(key)});
    }
    for (const auto& [key, block] : blocks) {
      if (block->owner == 0) continue;
      const BlockOwner& owner = owners[block->owner];
      lane.record(now(), OwnerRecord{.addr = block_addr(key, block->place()),
                                     .birth = block->birth == 0 ? 0 : ticks_.of(block->birth),
                                     .owner = owner.owner,
                                     .label = owner.label});
    }
  }

  void write_pools(FoldLane& lane) const {
    for (const Pool& pool : replay_.curves().pools()) {
      for (uint32_t bucket = 0; bucket < pool.buckets.size(); ++bucket) {
        const PoolBucket& in = pool.buckets[bucket];
        lane.record(now(), FoldedPoolRecord{.where = pool.where.packed(),
                                            .to_step = to_step(bucket),
                                            .min = in.min,
                                            .max = in.max,
                                            .end = in.end,
                                            .reserved_end = in.reserved_end});
      }
      lane.record(now(), FoldedLevelRecord{.where = pool.where.packed(),
                                           .has_totals = pool.has_totals ? 1u : 0u,
                                           .start = pool.allocated.start,
                                           .peak = pool.allocated.peak,
                                           .now = pool.now,
                                           .reserved_start = pool.reserved.start,
                                           .reserved_peak = pool.reserved.peak,
                                           .reserved_now = pool.reserved_now,
                                           .step_min = pool.step_min,
                                           .step_max = pool.step_max,
                                           .least_step = pool.min_gap.step,
                                           .least_ratio = pool.min_gap.ratio,
                                           .least_bytes = pool.min_gap.min_allocated,
                                           .most_step = pool.max_gap.step,
                                           .most_ratio = pool.max_gap.ratio,
                                           .most_bytes = pool.max_gap.min_allocated,
                                           .peak_noise = pool.peak_noise});
    }
  }

  // Of the blocks that are still alive.
  void write_holders(FoldLane& lane) const {
    const ReplayResult& result = replay_.so_far();
    for (const HolderSeen& seen : result.side.holders) {
      const Where where = replay_.curves().groups()[seen.group].where;
      const auto at = replay_.live().find(block_key(seen.addr, where));
      if (at == replay_.live().end() || at->second.birth != seen.birth) continue;
      lane.record(now(), HolderRecord{.addr = seen.addr,
                                      .birth = seen.birth == 0 ? 0 : ticks_.of(seen.birth),
                                      .root = seen.root,
                                      .path = seen.path,
                                      .file = seen.file,
                                      .line = seen.line,
                                      .end_line = seen.end_line,
                                      .function = seen.function,
                                      .text = seen.text,
                                      .cause = seen.cause});
    }
  }

  const TraceReader& reader_;
  const StepFinder& finder_;
  const Replay& replay_;
  const Ticks& ticks_;
  uint32_t steps_ = 0;
};

// When the recording began.
uint64_t first_time(const TraceInfo& info) {
  if (info.folded.folds != 0) return info.folded.from_ns;
  return info.windows.empty() ? info.first_anchor_ns : info.windows.front().time;
}

}  // namespace

Result<FoldReport> fold_trace(const std::filesystem::path& directory, uint64_t keep_bytes) {
  auto log = FoldLog::open(directory);
  if (!log) return log.error();
  FoldReport report{.bytes_before = log.value().bytes()};
  uint64_t ticks = log.value().cut(keep_bytes);
  if (ticks == 0) return report;

  auto opened = TraceReader::open(directory);
  if (!opened) return opened.error();
  TraceReader& reader = opened.value();
  const uint64_t time = reader.to_ns(ticks);
  while (reader.to_ns(ticks + 1) == time) ++ticks;
  if (reader.info().folded.folds != 0 && time <= reader.info().folded.to_ns) return report;

  TraceEvents events(reader);
  StepFinder finder;
  events.scan(StepFinder::kKinds, [&](const Event& event) { finder.add(event); });
  Replay replay(finder.fold_plan({first_time(reader.info()), time}), {},
                [&](uint64_t t) { return reader.to_ns(t); });
  for_each_event(events, [&](const Event& event) {
    if (event.time > time) return false;
    replay.feed(event);
    return true;
  });
  replay.stand_at(time);
  if (!reader.damage().empty()) {
    return Error{reader.damage().front() + "; a damaged log is not folded"};
  }

  const Ticks clock(reader, ticks);
  const PastWriter past(reader, finder, replay, clock);
  const bool keep_steps = replay.curves().plan().from <= StepsFrom::kTime;
  auto size =
      log.value().replace({.ticks = ticks, .keep_steps = keep_steps, .past = [&](FoldLane& lane) {
                             past.write(lane, report.bytes_before);
                           }});
  if (!size) return size.error();
  report.folded = true;
  report.bytes_after = size.value();
  report.steps = keep_steps ? 0 : past.steps();
  return report;
}

}  // namespace memscope
