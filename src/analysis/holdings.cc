#include "analysis/holdings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "trace/records.h"

namespace memscope {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

uint32_t last_step_of(const HoldingsOptions& options) {
  return options.at_step != 0 ? options.at_step : options.last_step;
}

// The plan until the step that is asked for.
StepPlan cut(StepPlan plan, const HoldingsOptions& options) {
  const uint32_t last = last_step_of(options);
  if (last != 0 && last < plan.count()) plan.ends.resize(last);
  return plan;
}

// Levels joined by "@", the user's label last.
std::string owner_text(const BlockOwner& owner) {
  if (owner.owner.empty() || owner.label.empty()) return owner.owner + owner.label;
  return owner.owner + "@" + owner.label;
}

// A sampled block stands for a broken number of them.
struct Sum {
  int64_t bytes = 0;
  double blocks = 0;
  Sum& operator+=(const Sum& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    return *this;
  }
  Held held() const { return {bytes, std::llround(blocks)}; }
};

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void Holdings::add(Holdings&& other) {
  append(sites, std::move(other.sites));
  append(owners, std::move(other.owners));
  append(operators, std::move(other.operators));
  append(layers, std::move(other.layers));
  if (processes == 0) steps_from = other.steps_from;
  steps = std::max(steps, other.steps);
  processes += other.processes;
}

Result<void> HoldingsBuilder::check(const StepPlan& plan, const HoldingsOptions& options) {
  const uint32_t last = std::max(last_step_of(options), options.first_step);
  if (last == 0) return {};
  // Windows of time play the steps' part in a diagnosis, but nobody could name one.
  if (plan.count() == 0 || plan.from == StepsFrom::kTime) {
    return Error{
        "has no steps; call msmemscope.step() once in each round of the loop, or compare whole "
        "runs"};
  }
  // Which step a block was born in is known of folded ones, too; what died is not.
  if (const uint32_t end = last_step_of(options); end != 0 && end <= plan.folded) {
    return Error{"has its steps 1 to " + std::to_string(plan.folded) +
                 " folded (disk budget): what was held when step " + std::to_string(end) +
                 " ended is not known any more; ask for a step from " +
                 std::to_string(plan.folded + 1) + " on"};
  }
  if (last > plan.count()) {
    return Error{"has steps 1 to " + std::to_string(plan.count()) + ", no step " +
                 std::to_string(last)};
  }
  return {};
}

HoldingsBuilder::HoldingsBuilder(StepPlan plan, const HoldingsOptions& options,
                                 Replay::TimeOf time_of)
    : options_(options),
      until_(last_step_of(options) != 0 && last_step_of(options) <= plan.count()
                 ? plan.ends[last_step_of(options) - 1]
                 : kNever),
      steps_from_(plan.from),
      steps_(plan.count()),
      replay_(cut(std::move(plan), options), {.device = options.device}, std::move(time_of)) {}

void HoldingsBuilder::feed(const Event& event) {
  if (event.time > until_) {
    // Sources are recorded when their file is first seen, which may be later.
    if (event.kind == EventKind::kRecord &&
        event.record_kind == static_cast<uint8_t>(Kind::kSource)) {
      replay_.feed(event);
    }
    return;
  }
  note(event);
  replay_.feed(event);
}

// The operators of the blocks; replay decides what is alive.
void HoldingsBuilder::note(const Event& event) {
  const uint64_t key = block_key(event.addr, event.where);
  if (event.kind == EventKind::kAlloc) {
    if (const auto* in = open_.innermost(event.thread)) {
      tags_[key] = {event.time, in->name};
    } else if (!tags_.empty()) {
      tags_.erase(key, BlockKeyHash{}(key));  // by key: see Replay::free()
    }
  } else if (event.kind == EventKind::kFree) {
    if (!tags_.empty()) tags_.erase(key, BlockKeyHash{}(key));
  } else if (event.kind == EventKind::kRecord &&
             event.record_kind == static_cast<uint8_t>(Kind::kLaunch)) {
    note_launch(event);
  }
}

void HoldingsBuilder::note_launch(const Event& event) {
  const auto record = decode_record<LaunchRecord>(event.words);
  // Operators of ATen and ATB; a kernel runs later, when other lines allocate.
  if (!record || (record->level != 0 && record->level != 2)) return;
  const StringId name = names_.intern(record->name);
  if (record->action == 0) {
    open_.begin(event.thread, {.name = name});
  } else if (record->action == 1) {
    open_.end(event.thread, name);
  }
}

Holdings HoldingsBuilder::finish(const StackTable& stacks, const StringTable& strings) {
  ReplayResult replayed = replay_.finish();
  Symbolizer symbolizer(options_.symbols);
  std::vector<NativeNames> names{{symbolizer, stacks, strings, replayed.side}};
  std::vector<StackToName> to_name;
  add_stacks(0, replayed, to_name);
  name_stacks(symbolizer, names, std::move(to_name));
  Sites sites(stacks, strings, replayed.side.sources, &names[0]);
  Holdings result;
  result.steps_from = steps_from_;
  result.steps = steps_;
  result.processes = 1;

  std::map<std::pair<uint32_t, Where>, Sum> by_site, by_owner, by_operator;
  std::map<Where, Sum> by_place;
  for (const LiveBlock& block : replayed.live) {
    if (options_.first_step != 0 && block.step < options_.first_step) continue;
    if (options_.last_step != 0 && block.step > options_.last_step) continue;
    const Group& group = replayed.groups[block.group];
    const Sum one{static_cast<int64_t>(block.size), block.count()};
    by_place[group.where] += one;
    by_site[{sites.site_of(group.stack), group.where}] += one;
    by_owner[{block.owner, group.where}] += one;
    const auto tag = tags_.find(block_key(block.addr, group.where));
    const bool known = tag != tags_.end() && tag->second.birth == block.birth;
    by_operator[{known ? tag->second.op.value : 0, group.where}] += one;
  }
  for (const auto& [key, held] : by_site) {
    HeldAtSite row{.where = key.second, .held = held.held()};
    if (key.first != 0) row.site = sites.frame(key.first);
    result.sites.push_back(std::move(row));
  }
  for (const auto& [key, held] : by_owner) {
    HeldByName row{.where = key.second, .held = held.held()};
    if (key.first != 0) row.name = owner_text(replayed.side.owners[key.first]);
    result.owners.push_back(std::move(row));
  }
  for (const auto& [key, held] : by_operator) {
    HeldByName row{.where = key.second, .held = held.held()};
    if (key.first != 0) row.name = std::string(names_.text(StringId(key.first)));
    result.operators.push_back(std::move(row));
  }
  for (const Pool& pool : replayed.pools) {
    HeldInLayer layer{.where = pool.where, .held = by_place[pool.where].held()};
    layer.peak = static_cast<int64_t>(pool.allocated.peak);
    if (pool.has_totals) layer.reserved = static_cast<int64_t>(pool.reserved.end);
    result.layers.push_back(layer);
  }
  return result;
}

}  // namespace memscope
