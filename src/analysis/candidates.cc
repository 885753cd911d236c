#include "analysis/candidates.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/confidence.h"

namespace memscope {
namespace {

// A stack that gains less than this share of the least total is judged with the rest of its line.
constexpr double kSmallShare = 1.0 / 32;

constexpr double kKiB = 1024;

// Lines that are companions, at most.
constexpr size_t kMaxCompanions = 256;

struct Curves {
  std::vector<double> live, survivors, births;
  double gain_noise = 0;
  explicit Curves(size_t points) : live(points), survivors(points), births(points) {}
  double gain(size_t begin) const {
    return std::max(survivors.back() - survivors[begin - 1], live.back() - live[begin - 1]);
  }
  void add(const Curves& other) {
    for (size_t i = 0; i < live.size(); ++i) live[i] += other.live[i];
    for (size_t i = 0; i < survivors.size(); ++i) survivors[i] += other.survivors[i];
    for (size_t i = 0; i < births.size(); ++i) births[i] += other.births[i];
    gain_noise += other.gain_noise;  // blocks are sampled independently of each other
  }
  Growth judge(const JudgedSteps& steps) const {
    return judge_growth({steps.x, live, survivors, births, std::sqrt(gain_noise)}, steps.begin);
  }
};

// The square of the standard error of what a group's live bytes gain from the base line to the end:
// of the blocks that came since and stayed, and of those that were there and left. All others are
// in both levels, or in neither.
double gain_noise(const Group& group, size_t begin) {
  uint64_t base = 0, end = 0, stayed = 0;
  for (const CurvePoint& point : group.live) {
    if (point.bucket < begin) base = point.noise;
    end = point.noise;
  }
  for (const CurvePoint& point : group.survivors) {
    if (point.bucket >= begin) stayed += point.noise;
  }
  const uint64_t old = end - std::min(end, stayed);
  const double noise = static_cast<double>(stayed + (base - std::min(base, old)));
  return noise * kKiB * kKiB;
}

Curves curves_of(const Group& group, size_t points, size_t begin) {
  Curves curves(points);
  curves.gain_noise = gain_noise(group, begin);
  curves.live = dense(group.live, points);
  for (const CurvePoint& point : group.survivors) {
    if (point.bucket >= points) continue;
    curves.survivors[point.bucket] += static_cast<double>(point.bytes);
    curves.births[point.bucket] += static_cast<double>(point.blocks);
  }
  for (size_t i = 1; i < points; ++i) curves.survivors[i] += curves.survivors[i - 1];
  return curves;
}

// A picture of it: the last point of each of at most 32 pieces.
std::vector<double> thinned(const std::vector<double>& curve) {
  constexpr size_t kMost = 32;
  const size_t pieces = std::min(kMost, curve.size());
  std::vector<double> picture;
  for (size_t i = 1; i <= pieces; ++i) picture.push_back(curve[curve.size() * i / pieces - 1]);
  return picture;
}

double clamp01(double value) {
  return std::clamp(value, 0.0, 1.0);
}

// The probability that it grows and that this is the line; what keeps it comes on top later.
double confidence_of(const Candidate& candidate, const SiteFrame* site, const ReplayResult& replay,
                     const JudgedSteps& steps) {
  double confidence = growth_confidence(candidate.growth, steps.steps);
  if (site == nullptr) {
    confidence *= 0.65;
  } else if (!site->user) {
    confidence *= 0.8;
  }
  if (candidate.released) confidence *= 0.8;
  // Each dropped free may be one block that only looks alive.
  const uint64_t recorded = candidate.noise > 0 ? candidate.live.size() : candidate.blocks;
  const double blocks = static_cast<double>(std::max<uint64_t>(1, recorded));
  confidence *= clamp01(1 - static_cast<double>(replay.side.dropped_frees) / blocks);
  const double known = static_cast<double>(candidate.bytes);
  const double unknown = static_cast<double>(candidate.unknown_bytes);
  if (unknown > 0) confidence *= clamp01(known / (known + unknown));
  return confidence;
}

void draw(Candidate& candidate, const Curves& sum, size_t begin) {
  candidate.curve = thinned(sum.live);
  const auto& curve = candidate.growth.shape == Shape::kGrowingBlock ? sum.live : sum.survivors;
  for (size_t i = begin; i < curve.size(); ++i) {
    candidate.gains.push_back(curve[i] > curve[i - 1]);
  }
}

// Its largest stack, its line, and what the source says of it.
void name(Candidate& candidate, const LeakInput& in) {
  const auto smaller = [&](uint32_t a, uint32_t b) {
    return in.replay->groups[a].live_bytes < in.replay->groups[b].live_bytes;
  };
  const auto largest = std::max_element(candidate.groups.begin(), candidate.groups.end(), smaller);
  candidate.stack = in.replay->groups[*largest].stack;
  if (candidate.site == 0) return;
  candidate.site_key = in.sites->key(candidate.site);
  candidate.function = function_text(in.sites->frame(candidate.site));
  candidate.stored = stored_at(*in.sites, candidate.stack);
}

// (where, site) -> groups
using Lines = std::map<std::pair<uint16_t, uint32_t>, std::vector<uint32_t>>;

void add_companions(std::vector<Candidate>& candidates, const Lines& lines, const LeakInput& in,
                    const JudgedSteps& steps) {
  const ReplayResult& replay = *in.replay;
  std::vector<bool> taken(replay.groups.size());
  for (const Candidate& candidate : candidates) {
    for (const uint32_t group : candidate.groups) taken[group] = true;
  }
  const size_t leaders = candidates.size();
  size_t count = 0;
  for (const auto& [place, groups] : lines) {
    if (leaders == 0 || count == kMaxCompanions) break;
    Candidate companion{.where = Where::unpack(place.first), .site = place.second};
    Curves sum(steps.x.size());
    for (const uint32_t group : groups) {
      if (taken[group] || replay.groups[group].survivors.empty()) continue;
      companion.groups.push_back(group);
      sum.add(curves_of(replay.groups[group], steps.x.size(), steps.begin));
    }
    if (companion.groups.empty()) continue;
    companion.input = candidates[0].input;
    companion.companion = true;
    companion.growth = sum.judge(steps);
    draw(companion, sum, steps.begin);
    bool beside = false;
    for (size_t i = 0; i < leaders && !beside; ++i) {
      beside = candidates[i].where == companion.where && gain_together(candidates[i], companion);
    }
    if (!beside) continue;
    name(companion, in);
    candidates.push_back(std::move(companion));
    ++count;
  }
}

// The owner of more than half of its bytes.
uint32_t owner_of(const Candidate& candidate, const ReplayResult& replay) {
  std::map<uint32_t, uint64_t> bytes;
  for (const uint32_t index : candidate.live) {
    bytes[replay.live[index].owner] += replay.live[index].size;
  }
  for (const auto& [owner, sum] : bytes) {
    if (sum > candidate.bytes / 2) return owner;
  }
  return 0;
}

// Fills in what only the list of live blocks tells.
void count_blocks(std::vector<Candidate>& candidates, const ReplayResult& replay, uint32_t warmup) {
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> candidate_of(replay.groups.size(), kNone);
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    for (const uint32_t group : candidates[i].groups) candidate_of[group] = i;
  }
  std::vector<double> blocks(candidates.size());
  for (uint32_t i = 0; i < replay.live.size(); ++i) {
    const LiveBlock& block = replay.live[i];
    const uint32_t index = candidate_of[block.group];
    if (index == kNone || block.step <= warmup || block.preexisting) continue;
    Candidate& candidate = candidates[index];
    if (block.fate_unknown) {
      candidate.unknown_bytes += block.size;
      continue;
    }
    candidate.bytes += block.size;
    blocks[index] += block.count();
    candidate.noise += static_cast<double>(sampling_noise(block.size, block.sampled_size));
    candidate.live.push_back(i);
  }
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    candidates[i].blocks = static_cast<uint64_t>(std::llround(blocks[i]));
    candidates[i].noise *= kKiB * kKiB;
  }
  for (const HolderSeen& holder : replay.side.holders) {
    if (candidate_of[holder.group] != kNone) {
      candidates[candidate_of[holder.group]].holders.add(holder);
    }
  }
  for (Candidate& candidate : candidates) {
    std::sort(candidate.live.begin(), candidate.live.end(),
              [&](uint32_t a, uint32_t b) { return replay.live[a].birth < replay.live[b].birth; });
    candidate.owner = owner_of(candidate, replay);
  }
}

// Alive at the last step's end, born after warm-up.
struct Survivors {
  uint64_t bytes = 0, blocks = 0;
  double noise = 0;
};
Survivors survivors_of(const Candidate& candidate, const ReplayResult& replay, size_t begin) {
  Survivors sum;
  double blocks = 0;
  for (const uint32_t index : candidate.groups) {
    const Group& group = replay.groups[index];
    // Of blocks that are gone only the mean is known that one stood for.
    const double each =
        group.stands_for == 0 ? 1 : group.stands_for / static_cast<double>(group.allocs);
    for (const CurvePoint& point : group.survivors) {
      if (point.bucket < begin) continue;
      sum.bytes += point.bytes;
      blocks += each * static_cast<double>(point.blocks);
      sum.noise += static_cast<double>(point.noise) * kKiB * kKiB;
    }
  }
  sum.blocks = static_cast<uint64_t>(std::llround(blocks));
  return sum;
}

}  // namespace

bool gain_together(const Candidate& a, const Candidate& b) {
  if (a.input != b.input || a.gains.size() != b.gains.size()) return false;
  size_t both = 0, either = 0;
  for (size_t i = 0; i < a.gains.size(); ++i) {
    both += a.gains[i] && b.gains[i];
    either += a.gains[i] || b.gains[i];
  }
  return either != 0 && both * 10 >= either * 9;
}

std::vector<double> dense(const std::vector<CurvePoint>& curve, size_t points) {
  std::vector<double> values(points);
  for (size_t i = 0; i < curve.size(); ++i) {
    const size_t to = i + 1 < curve.size() ? curve[i + 1].bucket : points;
    for (size_t b = curve[i].bucket; b < std::min(to, points); ++b) {
      values[b] = static_cast<double>(curve[i].bytes);
    }
  }
  return values;
}

double least_total(const Pool& pool) {
  return std::max(kMinTotal, kMinShare * static_cast<double>(pool.allocated.peak));
}

double detection_limit(const ReplayResult& replay, const Pool& pool, const JudgedSteps& steps) {
  // Where nothing could be judged, all there was could be growth.
  if (!steps.enough()) return std::max(kMinTotal, static_cast<double>(pool.allocated.peak));
  const double least = least_total(pool);
  if (replay.host_sample == 0 || pool.where.layer != Layer::kHost) return least;
  // What grows by G has a standard error of sqrt(R G + N), R bytes between two samples, N of what
  // was replaced meanwhile (of the whole place: that of any line in it is less). The least G that
  // is kSamplingDoubt of them:
  double replaced = 0;
  for (const Group& group : replay.groups) {
    if (group.where == pool.where) replaced += gain_noise(group, steps.begin);
  }
  const double z2 = kSamplingDoubt * kSamplingDoubt;
  const double half = z2 * static_cast<double>(replay.host_sample) / 2;
  return std::max(least, half + std::sqrt(half * half + z2 * replaced));
}

JudgedSteps judged_steps(const ReplayResult& replay, uint32_t warmup) {
  JudgedSteps judged;
  const Buckets& buckets = replay.buckets;
  uint32_t last = warmup;
  // Blocks older than a gap have a hole in their history: what grows must grow after it.
  for (const GapSeen& gap : replay.side.gaps) {
    if (gap.healed) continue;
    const auto& ends = replay.plan.ends;
    const auto step = std::lower_bound(ends.begin(), ends.end(), gap.to) - ends.begin() + 1;
    last = std::max(last, std::min(static_cast<uint32_t>(step), buckets.steps));
  }
  const double origin = static_cast<double>(replay.range.first);
  for (uint32_t bucket = 0; bucket < buckets.count(); ++bucket) {
    const uint32_t step = buckets.last_step(bucket);
    judged.x.push_back(replay.plan.from == StepsFrom::kTime
                           ? (static_cast<double>(replay.plan.ends[step - 1]) - origin) / 1e9
                           : static_cast<double>(step));
    if (step <= last) judged.begin = bucket + 1;
  }
  judged.begin = std::max<size_t>(judged.begin, 1);
  if (buckets.steps != 0) {
    const uint32_t base = buckets.last_step(static_cast<uint32_t>(judged.begin) - 1);
    judged.steps = buckets.steps - base;
  }
  return judged;
}

std::vector<Candidate> find_candidates(std::span<const LeakInput> inputs, size_t input) {
  const LeakInput& in = inputs[input];
  const ReplayResult& replay = *in.replay;
  const JudgedSteps steps = judged_steps(replay, in.warmup);
  std::vector<Candidate> candidates;
  if (!steps.enough()) return candidates;
  const size_t points = steps.x.size(), begin = steps.begin;

  Lines lines;
  for (uint32_t i = 1; i < replay.groups.size(); ++i) {
    const Group& group = replay.groups[i];
    if (group.seeded || group.live.empty()) continue;
    lines[{group.where.packed(), in.sites->site_of(group.stack)}].push_back(i);
  }
  for (const auto& [place, groups] : lines) {
    Candidate candidate{.input = input, .where = Where::unpack(place.first), .site = place.second};
    const Pool& pool = replay.pools[replay.groups[groups[0]].pool];
    const double small = kSmallShare * least_total(pool);
    Curves sum(points), rest(points);
    std::vector<uint32_t> others, late;
    Growth largest;
    const auto take = [&](uint32_t index, const Curves& curves, const Growth& growth) {
      candidate.groups.push_back(index);
      if (growth.total > largest.total) largest = growth;
      sum.add(curves);
    };
    for (const uint32_t index : groups) {
      const Curves curves = curves_of(replay.groups[index], points, begin);
      const bool judged = curves.gain(begin) >= small;
      const Growth growth = judged ? curves.judge(steps) : Growth{};
      if (growth.grows() && !growth.late) {
        take(index, curves, growth);
      } else if (curves.gain(begin) > 0) {
        if (growth.late) late.push_back(index);
        others.push_back(index);
        rest.add(curves);
      }
    }
    if (!others.empty() && rest.gain(begin) >= small) {
      // What begins late may only go on where another stack of the line left off: the next phase.
      const Growth growth = rest.judge(steps);
      if (growth.grows() && (!growth.late || late.empty())) {
        candidate.groups.insert(candidate.groups.end(), others.begin(), others.end());
        sum.add(rest);
      } else {
        for (const uint32_t index : late) {
          const Curves curves = curves_of(replay.groups[index], points, begin);
          take(index, curves, curves.judge(steps));
        }
      }
    }
    if (candidate.groups.empty()) continue;
    candidate.growth = sum.judge(steps);
    if (!candidate.growth.grows()) candidate.growth = largest;
    candidate.gain_noise = sum.gain_noise;
    draw(candidate, sum, begin);
    name(candidate, in);
    candidates.push_back(std::move(candidate));
  }
  add_companions(candidates, lines, in, steps);

  count_blocks(candidates, replay, in.warmup);
  for (Candidate& candidate : candidates) {
    const Survivors survivors = survivors_of(candidate, replay, begin);
    if (candidate.bytes + candidate.unknown_bytes < survivors.bytes / 2) {
      candidate.released = true;
      candidate.bytes = survivors.bytes;
      candidate.blocks = survivors.blocks;
      candidate.noise = survivors.noise;
    }
    const auto first = std::find(candidate.gains.begin(), candidate.gains.end(), true);
    const auto last = std::find(candidate.gains.rbegin(), candidate.gains.rend(), true);
    if (candidate.growth.shape == Shape::kGrowingBlock || candidate.live.empty()) {
      const auto bucket_of = [&](ptrdiff_t at) { return static_cast<uint32_t>(at) + begin; };
      if (first != candidate.gains.end()) {
        candidate.first_step = replay.buckets.last_step(
            static_cast<uint32_t>(bucket_of(first - candidate.gains.begin())));
        candidate.last_step = replay.buckets.last_step(
            static_cast<uint32_t>(bucket_of(candidate.gains.rend() - last - 1)));
      }
    } else {
      candidate.first_step = replay.live[candidate.live.front()].step;
      candidate.last_step = std::min(replay.live[candidate.live.back()].step, replay.last_step);
    }
    candidate.confidence = confidence_of(
        candidate, candidate.site == 0 ? nullptr : &in.sites->frame(candidate.site), replay, steps);
  }
  return candidates;
}

}  // namespace memscope
