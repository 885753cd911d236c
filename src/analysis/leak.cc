#include "analysis/leak.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "analysis/advice.h"
#include "analysis/merge.h"
#include "analysis/suspect_groups.h"
#include "core/text_hash.h"

namespace memscope {
namespace {

constexpr size_t kMaxSites = 10;
constexpr size_t kMaxHolders = 10;
constexpr size_t kMaxFrames = 64;
// What is kept is found and what keeps it is not, or only by the source: a weaker case than both.
constexpr double kWithoutHolder = 0.92;
constexpr double kInferred = 0.96;
// What has a bound is worth a look at most: it is full some day.
constexpr double kBounded = 0.45;
// A cause that is proven for less than this share of the bytes is not theirs.
constexpr double kLeastShare = 0.1;
// Those that say more than `leak`, strongest first (the contract's precedence).
constexpr std::array<std::string_view, 3> kSpecific = {"cycle", "retained_graph",
                                                       "unbounded_cache"};

// Of candidates in nested layers of one input only the inner ones count.
std::vector<size_t> inner_only(const std::vector<size_t>& members,
                               std::span<const Candidate> candidates) {
  std::vector<size_t> inner;
  for (const size_t i : members) {
    const bool outer = std::any_of(members.begin(), members.end(), [&](size_t j) {
      return candidates[i].input == candidates[j].input &&
             layer_contains(candidates[i].where, candidates[j].where);
    });
    if (!outer) inner.push_back(i);
  }
  return inner;
}

std::string cause_of(const Candidate& candidate, const std::string& proven) {
  switch (candidate.where.layer) {
    case Layer::kHost:
      return "host_leak";
    case Layer::kPinned:
      return "pinned";
    case Layer::kPython:
      return "python_objects";
    default:
      return proven.empty() ? "leak" : proven;
  }
}

// Whose memory no Python object need own: nobody can say what keeps it.
bool outside_python(std::string_view cause) {
  return cause == "host_leak" || cause == "pinned";
}

class LeakMaker {
 public:
  LeakMaker(std::span<const LeakInput> inputs, std::span<const Candidate> candidates)
      : inputs_(inputs), candidates_(candidates) {}

  Leak make(const std::vector<size_t>& members) {
    Leak leak;
    Verdict& verdict = leak.verdict;
    HolderSums holders;
    for (const size_t i : members) holders.add(candidates_[i].holders);
    const std::string proven = proven_cause(members);
    const Candidate& chief = chief_of(members, proven);
    const LeakInput& in = inputs_[chief.input];
    verdict.cause = cause_of(chief, proven == "none" ? std::string() : proven);
    if (verdict.cause == "host_leak") verdict.evidence["kind"] = std::string("native");
    verdict.layer = std::string(layer_name(chief.where.layer));
    verdict.device = device_name(chief.where.device);
    if (chief.site != 0) verdict.site = in.sites->frame(chief.site);
    verdict.stack = in.sites->describe_stack(chief.stack, kMaxFrames);
    sum(members, in, leak);
    keepers(members, holders, in, verdict);
    own(members, verdict);
    verdict.confidence = confidence(members, verdict);
    if (proven == "none") {
      verdict.confidence *= kBounded;
      verdict.evidence["bounded"] = true;
    }
    // How it grows the largest shows best: the chief may be a few bytes a step.
    const Candidate& largest = candidates_[members[0]];
    evidence(members, largest, inputs_[largest.input], holders, verdict);
    std::string container = holders.container_name();
    if (container.empty() && holders.empty() && stored_) container = stored_->container;
    verdict.advice = proven == "none" ? bounded_advice(verdict, container)
                                      : leak_advice(verdict, largest.growth.shape, container);
    verdict.id = verdict_id(verdict);
    list_blocks(members, leak);
    return leak;
  }

 private:
  // The strongest cause that the walk over objects proves for enough of the bytes; "none": they
  // have a bound.
  std::string proven_cause(const std::vector<size_t>& members) const {
    std::map<std::string, double> bytes;
    double total = 0, unknown = 0;
    uint64_t in_graph = 0;
    for (const size_t i : members) {
      const Candidate& candidate = candidates_[i];
      const double own = static_cast<double>(candidate.bytes + 1);
      total += own;
      in_graph += candidate.holders.in_graph();
      if (candidate.holders.empty()) {
        unknown += own;
      } else {
        bytes[candidate.holders.majority_cause()] += own;
      }
    }
    for (const std::string_view cause : kSpecific) {
      double share = bytes[std::string(cause)];
      if (share == 0) continue;
      if (cause == "retained_graph") {
        // A graph that keeps nothing but its root is a root that is kept.
        if (in_graph == 0 && unknown == 0) continue;
        share += unknown;
      }
      if (share >= kLeastShare * total) return std::string(cause);
    }
    return bytes["none"] * 2 > total ? "none" : "";
  }

  // Whose line is the verdict's site: of a graph its root's; else the largest whose holder is
  // known, else the largest.
  const Candidate& chief_of(const std::vector<size_t>& members, std::string_view proven) const {
    if (proven == "retained_graph") {
      const auto fewer = [&](size_t a, size_t b) {
        return candidates_[a].holders.roots() < candidates_[b].holders.roots();
      };
      const size_t root = *std::max_element(members.begin(), members.end(), fewer);
      if (candidates_[root].holders.roots() != 0) return candidates_[root];
    }
    for (const size_t i : members) {
      if (!candidates_[i].holders.empty()) return candidates_[i];
    }
    return candidates_[members[0]];
  }

  // The owner of most of the bytes.
  void own(const std::vector<size_t>& members, Verdict& verdict) const {
    std::map<BlockOwner, int64_t> bytes;
    for (const size_t i : members) {
      const SideRecords& side = inputs_[candidates_[i].input].replay->side;
      bytes[side.owners[candidates_[i].owner]] += static_cast<int64_t>(candidates_[i].bytes);
    }
    for (const auto& [owner, sum] : bytes) {
      if (sum <= verdict.bytes_total / 2) continue;
      if (!owner.owner.empty()) verdict.owner = owner.owner;
      if (!owner.label.empty()) verdict.evidence["label"] = owner.label;
    }
  }

  void sum(const std::vector<size_t>& members, const LeakInput& chief, Leak& leak) const {
    Verdict& verdict = leak.verdict;
    std::set<int64_t> processes;
    std::map<std::string, SiteShare> shares;
    double slope = 0;
    const bool timed = chief.replay->plan.from == StepsFrom::kTime;
    uint32_t first = 0, last = 0;
    for (const size_t i : members) {
      const Candidate& candidate = candidates_[i];
      const LeakInput& in = inputs_[candidate.input];
      processes.insert(static_cast<int64_t>(in.index));
      verdict.bytes_total += static_cast<int64_t>(candidate.bytes);
      verdict.blocks += static_cast<int64_t>(candidate.blocks);
      // Seconds and steps do not add up: processes timed otherwise count in bytes alone.
      if ((in.replay->plan.from == StepsFrom::kTime) == timed) slope += candidate.growth.slope;
      if (candidate.first_step != 0) {
        first = first == 0 ? candidate.first_step : std::min(first, candidate.first_step);
        last = std::max(last, candidate.last_step);
      }
      if (device_name(candidate.where.device) != verdict.device) verdict.device.reset();
      leak.shares.push_back({candidate.input, candidate.where,
                             static_cast<int64_t>(candidate.bytes),
                             static_cast<int64_t>(candidate.blocks)});
      if (candidate.site == 0) continue;
      SiteShare& share = shares[candidate.site_key];
      share.site = in.sites->frame(candidate.site);
      share.bytes += static_cast<int64_t>(candidate.bytes);
      share.blocks += static_cast<int64_t>(candidate.blocks);
    }
    verdict.processes.assign(processes.begin(), processes.end());
    for (auto& [key, share] : shares) verdict.sites.push_back(std::move(share));
    std::stable_sort(verdict.sites.begin(), verdict.sites.end(),
                     [](const SiteShare& a, const SiteShare& b) { return a.bytes > b.bytes; });
    if (verdict.sites.size() > kMaxSites) verdict.sites.resize(kMaxSites);
    if (timed) {
      verdict.bytes_per_second = slope;
    } else {
      verdict.bytes_per_step = slope;
      if (first != 0) {
        verdict.first_step = first;
        verdict.last_step = last;
      }
    }
  }

  void keepers(const std::vector<size_t>& members, const HolderSums& holders, const LeakInput& in,
               Verdict& verdict) {
    stored_ = nullptr;
    verdict.holders = holders.list(kMaxHolders);
    if (const auto kept = holders.majority_kept_at()) {
      verdict.kept_at = in.sites->describe(kept->file, static_cast<uint32_t>(kept->line),
                                           static_cast<uint32_t>(kept->end_line), kept->function);
      return;
    }
    // Of a killed run nobody can say what held its objects (design, section 2).
    for (const size_t i : members) {
      const Candidate& candidate = candidates_[i];
      if (!candidate.stored || !inputs_[candidate.input].asked) continue;
      if (stored_ != nullptr && stored_->at != candidate.stored->at) {
        stored_ = nullptr;
        return;
      }
      stored_ = &*candidate.stored;
    }
    // Of host memory the source tells what to look at, not who has it: a native call may.
    if (stored_ != nullptr && !outside_python(verdict.cause)) verdict.kept_at = stored_->at;
  }

  double confidence(const std::vector<size_t>& members, const Verdict& verdict) {
    double weighted = 0, weights = 0;
    for (const size_t i : members) {
      const double weight = static_cast<double>(candidates_[i].bytes) + 1;
      weighted += weight * candidates_[i].confidence;
      weights += weight;
    }
    double result = weighted / weights;
    if (verdict.holders.empty() && !outside_python(verdict.cause)) {
      result *= verdict.kept_at ? kInferred : kWithoutHolder;
    }
    return result;
  }

  void evidence(const std::vector<size_t>& members, const Candidate& largest, const LeakInput& in,
                const HolderSums& holders, Verdict& verdict) {
    auto& evidence = verdict.evidence;
    const JudgedSteps steps = judged_steps(*in.replay, in.warmup);
    const bool timed = in.replay->plan.from == StepsFrom::kTime;
    evidence["steps"] = static_cast<int64_t>(steps.steps);
    evidence["growth"] = std::string(shape_name(largest.growth.shape));
    evidence["gaining_points"] = static_cast<int64_t>(largest.growth.births);
    evidence["r2"] = largest.growth.r2;
    evidence["pace"] = largest.growth.pace.ratio;
    evidence["pace_lower"] = largest.growth.pace.lower;
    evidence["curve"] = largest.curve;
    if (largest.growth.shape == Shape::kGrows && verdict.bytes_total > 0 &&
        verdict.bytes_per_step) {
      // The mean size is that of the blocks counted.
      evidence["blocks_per_step"] = *verdict.bytes_per_step * static_cast<double>(verdict.blocks) /
                                    static_cast<double>(verdict.bytes_total);
    }
    double lower = 0, noise = 0, slope_noise = 0;
    uint64_t unknown = 0;
    bool released = false;
    for (const size_t i : members) {
      noise += candidates_[i].noise;
      slope_noise += slope_noise_of(candidates_[i]);
      lower += candidates_[i].growth.lower;
      unknown += candidates_[i].unknown_bytes;
      released = released || candidates_[i].released;
    }
    evidence[timed ? "bytes_per_second_lower" : "bytes_per_step_lower"] = lower;
    if (noise > 0) {
      evidence["bytes_total_error"] = kTwoSided95 * std::sqrt(noise);
      evidence[timed ? "bytes_per_second_error" : "bytes_per_step_error"] =
          kTwoSided95 * std::sqrt(slope_noise);
    }
    if (unknown != 0) evidence["fate_unknown_bytes"] = static_cast<int64_t>(unknown);
    if (released) evidence["released_after_last_step"] = true;
    if (!holders.empty()) {
      evidence["blocks_with_holder"] = static_cast<int64_t>(holders.blocks());
    }
  }

  // The square of the sampling error of a candidate's slope. Least squares over the points x of a
  // length X weigh a block by the sum of (x - mean) / Sxx over the points at which it is alive; of
  // n even points that is 6 u (1 - u) / X for one that comes at the share u of the way and stays,
  // and 3 / 2 / X at most, which is taken here: what is stated is never too narrow for such blocks.
  double slope_noise_of(const Candidate& candidate) const {
    const LeakInput& in = inputs_[candidate.input];
    const JudgedSteps steps = judged_steps(*in.replay, in.warmup);
    if (candidate.gain_noise == 0 || !steps.enough()) return 0;
    const double length = steps.x.back() - steps.x[steps.begin - 1];
    return candidate.gain_noise * (1.5 * 1.5) / (length * length);
  }

  void list_blocks(const std::vector<size_t>& members, Leak& leak) const {
    for (const size_t i : members) {
      const Candidate& candidate = candidates_[i];
      const auto& live = inputs_[candidate.input].replay->live;
      for (const uint32_t index : candidate.live) {
        if (leak.blocks.size() == Leak::kMaxBlocks) break;
        const LiveBlock& block = live[index];
        leak.blocks.push_back(
            {candidate.input, candidate.where, block.addr, block.size, block.step});
      }
    }
    std::stable_sort(leak.blocks.begin(), leak.blocks.end(),
                     [](const LeakedBlock& a, const LeakedBlock& b) { return a.step < b.step; });
  }

  std::span<const LeakInput> inputs_;
  std::span<const Candidate> candidates_;
  const StoredAt* stored_ = nullptr;  // what `kept_at` was inferred from
};

// Growth of a driver's or the host's blocks is their client's where there is one.
bool has_client(const Candidate& candidate, const ReplayResult& replay) {
  return candidate.where.layer == Layer::kDriver &&
         std::any_of(replay.pools.begin(), replay.pools.end(),
                     [&](const Pool& pool) { return layer_contains(candidate.where, pool.where); });
}

}  // namespace

std::string verdict_id(const Verdict& verdict) {
  TextHash hash;
  hash.add(verdict.cause);
  hash.add(verdict.layer.value_or(""));
  if (verdict.site) {
    hash.add(verdict.site->file.value_or(""));
    hash.add(verdict.site->function);
    // Without the text the line must do.
    hash.add(verdict.site->text.value_or(std::to_string(verdict.site->line.value_or(0))));
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash.value()));
  return verdict.cause + '-' + std::string(text, 12);
}

FoundLeaks find_leaks(std::span<const LeakInput> inputs) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (Candidate& candidate : find_candidates(inputs, i)) {
      if (!has_client(candidate, *inputs[i].replay)) candidates.push_back(std::move(candidate));
    }
  }
  FoundLeaks found;
  LeakMaker maker(inputs, candidates);
  const auto bytes_of = [&](const std::vector<size_t>& members) {
    uint64_t bytes = 0;
    for (const size_t i : members) bytes += candidates[i].bytes;
    return bytes;
  };
  auto clusters = merge_candidates(candidates, inputs);
  std::stable_sort(clusters.begin(), clusters.end(),
                   [&](const auto& a, const auto& b) { return bytes_of(a) > bytes_of(b); });
  found.suspect_groups = suspect_groups(inputs, candidates, clusters);
  for (const auto& cluster : clusters) {
    const std::vector<size_t> members = inner_only(cluster, candidates);
    double gained = 0, least = 0;
    bool alone = true;  // companions of nobody
    for (const size_t i : members) {
      const Candidate& candidate = candidates[i];
      const ReplayResult& replay = *inputs[candidate.input].replay;
      const double bytes = static_cast<double>(candidate.bytes);
      gained += candidate.growth.shape == Shape::kGrowingBlock
                    ? std::min(bytes, candidate.growth.total)
                    : bytes;
      least = std::max(least, least_total(replay.pools[replay.groups[candidate.groups[0]].pool]));
      alone = alone && candidate.companion;
    }
    if (!alone && gained >= least) found.leaks.push_back(maker.make(members));
  }
  std::stable_sort(found.leaks.begin(), found.leaks.end(), [](const Leak& a, const Leak& b) {
    return a.verdict.bytes_total > b.verdict.bytes_total;
  });
  return found;
}

}  // namespace memscope
