#include "trace/fold_kept.h"

#include <algorithm>
#include <iterator>

#include "trace/records.h"

namespace memscope {

FoldKept::FoldKept(uint64_t first, uint64_t last, bool keep_steps)
    : first_(first),
      last_(last),
      part_(last > first ? (last - first) / kParts + 1 : 1),
      kinds_(keep_steps ? kKinds | kStepKinds : kKinds) {}

void FoldKept::keep(uint64_t ticks, std::span<const uint64_t> words) {
  const auto kind = static_cast<uint8_t>(words[0] & 0xff);
  if (++count_[kind] > kMostOfAKind) return;
  kept_.push_back({ticks, {words.begin(), words.end()}});
}

// The largest of each part, at equal values the last.
void FoldKept::sample(uint64_t ticks, std::span<const uint64_t> words, std::string name,
                      uint64_t where, int64_t value) {
  const auto kind = static_cast<uint8_t>(words[0] & 0xff);
  const uint64_t part = ticks > first_ ? (ticks - first_) / part_ : 0;
  const auto [at, fresh] = samples_.try_emplace({kind, std::move(name), where, part});
  if (fresh || value >= at->second.value) {
    at->second = {{ticks, {words.begin(), words.end()}}, value};
  }
}

void FoldKept::add(uint64_t ticks, std::span<const uint64_t> words) {
  const auto kind = static_cast<Kind>(words[0] & 0xff);
  if ((kinds_ & kind_bit(kind)) == 0) return;
  switch (kind) {
    case Kind::kAnchor:
      sample(ticks, words, "", 0, 0);
      return;
    case Kind::kCounter:
      if (const auto counter = decode_record<CounterRecord>(words)) {
        sample(ticks, words, std::string(counter->name), counter->where, counter->value);
      }
      return;
    case Kind::kCensus:
      if (const auto census = decode_record<CensusRecord>(words)) {
        sample(ticks, words, std::string(census->type), 0, static_cast<int64_t>(census->bytes));
      }
      return;
    case Kind::kSmaps:
      if (const auto smaps = decode_record<SmapsRecord>(words)) {
        sample(ticks, words, std::string(smaps->group), 0, static_cast<int64_t>(smaps->rss));
      }
      return;
    case Kind::kPoolSnapshot:
      if (const auto pool = decode_record<PoolSnapshotRecord>(words)) {
        sample(ticks, words, "", pool->where, static_cast<int64_t>(pool->reserved));
      }
      return;
    case Kind::kSegment:
      segments_.push_back({ticks, {words.begin(), words.end()}});
      return;
    case Kind::kDrop:
      if (const auto drop = decode_record<DropRecord>(words)) {
        dropped_[drop->kind].count += drop->count;
        dropped_[drop->kind].bytes += drop->bytes;
      }
      return;
    case Kind::kOom:
      if (auto oom = decode_record<OomRecord>(words)) {
        oom->stack = 0;  // a number of its lane's
        std::vector<uint64_t> copy;
        append_record(*oom, 0, 0, copy);
        keep(ticks, copy);
      }
      return;
    default:
      keep(ticks, words);
  }
}

std::vector<FoldKept::Entry> FoldKept::take() {
  std::vector<Entry> all = std::move(kept_);
  for (auto& [key, sample] : samples_) all.push_back(std::move(sample.entry));
  const auto earlier = [](const Entry& a, const Entry& b) { return a.ticks < b.ticks; };
  std::stable_sort(segments_.begin(), segments_.end(), earlier);
  std::map<std::pair<uint64_t, uint64_t>, Entry> held;  // by address and where
  for (Entry& entry : segments_) {
    const auto segment = decode_record<SegmentRecord>(entry.words);
    const std::pair key(segment->addr, segment->sized >> 48);
    if (segment->action == 0 || segment->action == 2) {
      held[key] = std::move(entry);
    } else {
      held.erase(key);
    }
  }
  for (auto& [key, entry] : held) all.push_back(std::move(entry));
  for (const auto& [kind, sum] : dropped_) {
    Entry entry{last_, {}};
    append_record(DropRecord{.kind = kind, .count = sum.count, .bytes = sum.bytes}, 0, 0,
                  entry.words);
    all.push_back(std::move(entry));
  }
  std::stable_sort(all.begin(), all.end(), earlier);
  return all;
}

}  // namespace memscope
