#include "analysis/pool_verify.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "core/mix_hash.h"
#include "core/text.h"
#include "tsl/robin_map.h"

namespace memscope {
namespace {

constexpr uint64_t kRange = uint64_t{1} << 42;  // as the simulator's ranges

bool takes(PoolAction action) {
  return action == PoolAction::kSegmentAlloc || action == PoolAction::kSegmentMap;
}

std::string event_text(const SegmentEvent& event) {
  const char* name = event.action == PoolAction::kSegmentAlloc  ? "segment_alloc"
                     : event.action == PoolAction::kSegmentFree ? "segment_free"
                     : event.action == PoolAction::kSegmentMap  ? "segment_map"
                                                                : "segment_unmap";
  return std::string(name) + " of " + std::to_string(event.size) + " B at " +
         address_text(event.addr);
}

// Puts new memory where it was recorded to be, as long as the simulator asks for what was recorded.
class RecordedDriver : public PoolDriver {
 public:
  explicit RecordedDriver(uint64_t above) : other_(above) {}

  void expect(std::span<const SegmentEvent> events) {
    events_ = events;
    at_ = 0;
  }
  void refuse_once() { refuse_ = true; }

  uint64_t place(PoolAction action, uint64_t size) override {
    while (at_ < events_.size() && !takes(events_[at_].action)) ++at_;
    if (at_ < events_.size() && events_[at_].action == action &&
        (action == PoolAction::kSegmentMap || events_[at_].size == size)) {
      return events_[at_++].addr;
    }
    return other_.place(action, size);
  }
  bool refuses() override { return std::exchange(refuse_, false); }

 private:
  AscendingDriver other_;
  std::span<const SegmentEvent> events_;
  size_t at_ = 0;
  bool refuse_ = false;
};

uint64_t highest_address(const PoolHistory& history) {
  uint64_t highest = kPoolRoundLarge;
  const auto add = [&](uint64_t addr, uint64_t size) {
    if (addr + size >= addr) highest = std::max(highest, addr + size);
  };
  for (const PoolSegment& segment : history.segments) add(segment.addr, segment.size);
  for (const PoolEntry& entry : history.entries) {
    if (entry.action <= PoolAction::kSegmentUnmap) add(entry.addr, entry.size);
  }
  return round_up(std::min(highest, uint64_t{1} << 62), kPoolRoundLarge);
}

class PoolVerifier {
 public:
  PoolVerifier(const PoolInput& input, const PoolSettings& settings)
      : input_(input),
        history_(input.history),
        driver_(highest_address(input.history)),
        pool_(settings, driver_) {
    check_.settings = settings;
  }

  PoolCheck run() {
    const PoolStart start = work_back(history_, check_.settings.rounding);
    if (history_.entries.empty()) return refuse("no history was recorded");
    if (start.odd != 0) {
      return refuse(std::to_string(start.odd) + " entries do not fit the segments at the end");
    }
    for (const PoolSegment& segment : start.segments) recorded_ += segment.size;
    for (const PoolSegment& segment : history_.segments) {
      if (segment.workspace) recorded_ -= std::min(recorded_, segment.size);
      if (segment.pool != 0) private_.push_back(&segment);
    }
    const auto bases = range_bases(history_, start, input_.tables);
    if (!pool_.load(start, input_.tables, bases)) {
      return refuse("the blocks at the beginning do not fit into its segments");
    }
    for (size_t i = 0; i < history_.entries.size(); ++i) entry(history_.entries[i], i);
    give_up_by_user(history_.entries.size());
    check_.retries = pool_.retries();
    return std::move(check_);
  }

 private:
  PoolCheck refuse(std::string why) {
    check_.refused = std::move(why);
    return std::move(check_);
  }
  void entry(const PoolEntry& entry, size_t index);
  void alloc(const PoolEntry& entry, size_t index);
  void freed(const PoolEntry& entry);
  void give_up_by_user(size_t index);
  bool by_user(const PoolEntry& next, size_t frees);
  bool empties_cache(StackId stack);
  uint16_t pool_of(const PoolEntry& entry) const;
  void compare(std::span<const SegmentEvent> expected, size_t index);
  void differs(size_t index, const std::string& what);
  void compare_reserved(size_t index);

  const PoolInput& input_;
  const PoolHistory& history_;
  RecordedDriver driver_;
  PoolSimulator pool_;
  PoolCheck check_;
  std::vector<SegmentEvent> pending_;  // recorded since the last request or free
  StackId pending_stack_;              // of the first of them
  uint64_t recorded_ = 0;              // reserved
  tsl::robin_map<uint64_t, PoolSimulator::BlockNumber, MixHash> blocks_;  // by recorded address
  tsl::robin_map<uint32_t, bool> empties_;                                // by stack
  std::vector<const PoolSegment*> private_;                               // by address
};

void PoolVerifier::differs(size_t index, const std::string& what) {
  if (check_.first_difference.empty()) {
    check_.first_difference = "entry " + std::to_string(index) + ": " + what;
  }
}

void PoolVerifier::compare(std::span<const SegmentEvent> expected, size_t index) {
  const std::span<const SegmentEvent> made = pool_.events();
  check_.made_events += made.size();
  const auto [right, unused] =
      std::mismatch(expected.begin(), expected.end(), made.begin(), made.end());
  const auto same = static_cast<size_t>(right - expected.begin());
  check_.same_events += same;
  if (same == expected.size() && same == made.size()) return;
  differs(index, "expected " + (same < expected.size() ? event_text(expected[same]) : "nothing") +
                     ", got " + (same < made.size() ? event_text(made[same]) : "nothing"));
}

void PoolVerifier::compare_reserved(size_t index) {
  const uint64_t off =
      std::max(recorded_, pool_.reserved()) - std::min(recorded_, pool_.reserved());
  check_.most_reserved_off = std::max(check_.most_reserved_off, off);
  if (off != 0) {
    differs(index, std::to_string(recorded_) + " B were reserved, got " +
                       std::to_string(pool_.reserved()));
  }
}

bool PoolVerifier::empties_cache(StackId stack) {
  const auto [known, fresh] = empties_.try_emplace(stack.value, false);
  if (!fresh) return known->second;
  bool found = false;
  for (const FrameId frame : input_.stacks.frames(stack)) {
    const std::string_view name = input_.strings.text(input_.stacks.frame(frame).function);
    found = found || name.find("empty_cache") != std::string_view::npos ||
            name.find("emptyCache") != std::string_view::npos;
  }
  known.value() = found;
  return found;
}

// Whether the frees that stand before a request were asked for by the program.
bool PoolVerifier::by_user(const PoolEntry& next, size_t frees) {
  return frees == pending_.size() || empties_cache(pending_stack_) || pending_stack_ != next.stack;
}

void PoolVerifier::give_up_by_user(size_t index) {
  if (pending_.empty()) return;
  ++check_.user_calls;
  pool_.empty_cache();
  compare(pending_, index);
  pending_.clear();
  compare_reserved(index);
}

void PoolVerifier::entry(const PoolEntry& entry, size_t index) {
  switch (entry.action) {
    case PoolAction::kSegmentAlloc:
    case PoolAction::kSegmentFree:
    case PoolAction::kSegmentMap:
    case PoolAction::kSegmentUnmap:
      ++check_.segment_events;
      if (pending_.empty()) pending_stack_ = entry.stack;
      pending_.push_back({entry.action, entry.addr, entry.size});
      if (takes(entry.action)) {
        recorded_ += entry.size;
      } else {
        recorded_ -= std::min(recorded_, entry.size);
      }
      break;
    case PoolAction::kAlloc:
      alloc(entry, index);
      break;
    case PoolAction::kFreeCompleted:
      give_up_by_user(index);
      freed(entry);
      break;
    case PoolAction::kOom:
      // What could not be served had the cache given up first.
      give_up_by_user(index);
      break;
    default:
      break;
  }
}

uint16_t PoolVerifier::pool_of(const PoolEntry& entry) const {
  if (entry.pool != 0 || private_.empty()) return entry.pool;
  // Before 2.12 entries do not say; the segments at the end do.
  auto segment =
      std::upper_bound(private_.begin(), private_.end(), entry.addr,
                       [](uint64_t addr, const PoolSegment* one) { return addr < one->addr; });
  if (segment == private_.begin()) return 0;
  --segment;
  return entry.addr - (*segment)->addr < (*segment)->size ? (*segment)->pool : uint16_t{0};
}

void PoolVerifier::alloc(const PoolEntry& entry, size_t index) {
  ++check_.allocs;
  ++check_.operations;
  const auto taken = std::find_if(pending_.begin(), pending_.end(),
                                  [](const SegmentEvent& event) { return takes(event.action); });
  const auto frees = static_cast<size_t>(taken - pending_.begin());
  std::span<const SegmentEvent> expected(pending_);
  if (frees != 0) {
    if (by_user(entry, frees)) {
      ++check_.user_calls;
      pool_.empty_cache();
      compare(expected.first(frees), index);
      expected = expected.subspan(frees);
    } else {
      driver_.refuse_once();
    }
  }
  driver_.expect(expected);
  const auto block = pool_.alloc({.stream = input_.tables.streams[entry.stream],
                                  .pool = pool_of(entry),
                                  .request = entry.size});
  compare(expected, index);
  pending_.clear();
  driver_.expect({});
  compare_reserved(index);
  if (!block) {
    differs(index, "out of memory");
    return;
  }
  blocks_[entry.addr] = *block;
  if (pool_.addr_of(*block) == entry.addr) {
    ++check_.same_addrs;
  } else {
    differs(index, std::to_string(entry.size) + " B were put at " + address_text(entry.addr) +
                       ", got " + address_text(pool_.addr_of(*block)));
  }
}

void PoolVerifier::freed(const PoolEntry& entry) {
  ++check_.operations;
  if (const auto block = blocks_.find(entry.addr); block != blocks_.end()) {
    pool_.free(block->second);
    blocks_.erase(block);
  } else if (const auto before = pool_.at(entry.addr)) {
    pool_.free(*before);
  }
}

}  // namespace

std::vector<PoolSimulator::Base> range_bases(const PoolHistory& history, const PoolStart& start,
                                             const PoolTables& tables) {
  // A range's addresses lie together; no device has had so much that its ranges are farther apart.
  constexpr uint64_t kApart = uint64_t{16} << 30;
  std::vector<std::pair<uint64_t, uint16_t>> mapped;  // address, stream
  for (const PoolEntry& entry : history.entries) {
    if (entry.action == PoolAction::kSegmentMap || entry.action == PoolAction::kSegmentUnmap) {
      mapped.emplace_back(entry.addr, entry.stream);
    }
  }
  std::sort(mapped.begin(), mapped.end());
  std::vector<PoolSimulator::Base> bases;
  const PoolSegment* last = nullptr;
  for (const PoolSegment& segment : start.segments) {
    if (!segment.expandable || segment.workspace) continue;
    const uint64_t stream = tables.streams[segment.stream];
    const bool same = last != nullptr && last->large == segment.large &&
                      last->stream == segment.stream && segment.addr - last->addr < kRange;
    if (same) {
      last = &segment;
      continue;
    }
    uint64_t base = segment.addr;
    const uint64_t floor = last == nullptr ? 0 : last->addr + last->size;
    for (auto at = std::lower_bound(mapped.begin(), mapped.end(), std::pair(base, uint16_t{0}));
         at != mapped.begin();) {
      --at;
      if (at->first < floor || base - at->first > kApart) break;
      if (at->second == segment.stream) base = at->first;
    }
    bases.push_back({.addr = base, .size = kRange, .stream = stream, .large = segment.large});
    last = &segment;
  }
  // Up to the next one at most.
  for (size_t i = 0; i + 1 < bases.size(); ++i) {
    bases[i].size = std::min(bases[i].size, bases[i + 1].addr - bases[i].addr);
  }
  return bases;
}

PoolCheck verify_pool(const PoolInput& input, const PoolSettings& settings) {
  return PoolVerifier(input, settings).run();
}

PoolCheck calibrate_pool(const PoolInput& input, const PoolSettings& settings) {
  PoolCheck best = verify_pool(input, settings);
  const auto right = [](const PoolCheck& check) {
    return check.same_addrs + check.same_events -
           std::min(check.same_events, check.made_events - check.same_events);
  };
  for (const uint64_t pad : {settings.rounding.pad, uint64_t{0}, kPoolNpuPad}) {
    for (const uint64_t align : {settings.align, uint64_t{0}, uint64_t{16} << 10}) {
      for (const uint64_t page : {settings.large_page, kPoolSmallSegment, kPoolLargeSegment,
                                  uint64_t{128} << 20, uint64_t{1} << 30}) {
        if (best.exact() || !best.refused.empty()) return best;
        PoolSettings tried = settings;
        tried.rounding.pad = pad;
        tried.align = align;
        tried.large_page = page;
        if (!tried.expandable && (page != settings.large_page || align != settings.align)) continue;
        PoolCheck check = verify_pool(input, tried);
        if (check.refused.empty() && right(check) > right(best)) best = std::move(check);
      }
    }
  }
  return best;
}

}  // namespace memscope
