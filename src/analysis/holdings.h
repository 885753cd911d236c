// What a run holds at one moment (its end, or the end of a step): its live blocks by the line that
// allocated them, by owner and by operator. What `compare` compares.
//
// Memory is bounded by live blocks and distinct stacks, as replay's is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis.h"
#include "analysis/operators.h"
#include "analysis/site.h"
#include "core/result.h"
#include "replay/replay.h"

namespace memscope {

struct HoldingsOptions {
  uint32_t at_step = 0;  // 0 = at the end
  // Only blocks born in these steps, both included; 0 = open. With last_step they are looked at
  // when it ends.
  uint32_t first_step = 0, last_step = 0;
  std::optional<Device> device;  // only this one
  SymbolOptions symbols;         // where native frames get their names
};

struct Held {
  int64_t bytes = 0, blocks = 0;
  Held& operator+=(const Held& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    return *this;
  }
  friend bool operator==(const Held&, const Held&) = default;
};

struct HeldAtSite {
  std::optional<SiteFrame> site;  // null: no stack, or of nobody's code
  Where where;
  Held held;
};

struct HeldByName {
  std::optional<std::string> name;  // of the owner or operator; null where there was none
  Where where;
  Held held;
};

struct HeldInLayer {
  Where where;
  Held held;
  int64_t peak = 0;                 // bytes allocated, until then
  std::optional<int64_t> reserved;  // bytes held by the pool, where it says so
};

// Of one process or, after add(), of several together. Each list adds up to `layers` in each place;
// a name may be in it more than once.
struct Holdings {
  std::vector<HeldAtSite> sites;
  std::vector<HeldByName> owners, operators;
  std::vector<HeldInLayer> layers;
  StepsFrom steps_from = StepsFrom::kNone;
  uint32_t steps = 0;  // of the run; the most of several processes
  size_t processes = 0;

  void add(Holdings&& other);
};

// Follows the events of one process up to the moment asked for.
class HoldingsBuilder {
 public:
  // The plan is the whole run's. An error where it has no such step.
  static Result<void> check(const StepPlan& plan, const HoldingsOptions& options);

  HoldingsBuilder(StepPlan plan, const HoldingsOptions& options, Replay::TimeOf time_of);
  void feed(const Event& event);
  Holdings finish(const StackTable& stacks, const StringTable& strings);

 private:
  // What replay does not keep of a live block: the operator it was made in.
  struct Tag {
    uint64_t birth = 0;
    StringId op;
  };
  void note(const Event& event);
  void note_launch(const Event& event);

  HoldingsOptions options_;
  uint64_t until_;  // ns since the epoch: later blocks are none of ours
  StepsFrom steps_from_;
  uint32_t steps_;
  Replay replay_;
  OpenOperators open_;
  StringTable names_;                                 // of operators
  tsl::robin_map<uint64_t, Tag, BlockKeyHash> tags_;  // by block key; none: in no operator
};

// Reads the source, which must stand at its beginning.
template <EventSource Source>
Result<Holdings> holdings_of(Source& source, const HoldingsOptions& options) {
  StepFinder finder;
  source.scan(StepFinder::kKinds, [&](const Event& event) { finder.add(event); });
  StepPlan plan = finder.plan(finder.needs_range() ? source.time_range() : TimeRange{});
  if (const auto checked = HoldingsBuilder::check(plan, options); !checked) return checked.error();
  HoldingsBuilder builder(std::move(plan), options,
                          [&](uint64_t ticks) { return source.time_of(ticks); });
  for_each_event(source, [&](const Event& event) { builder.feed(event); });
  return builder.finish(source.stacks(), source.strings());
}

}  // namespace memscope
