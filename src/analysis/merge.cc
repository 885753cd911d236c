#include "analysis/merge.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace memscope {
namespace {

class UnionFind {
 public:
  explicit UnionFind(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

constexpr std::string_view kModule = ":<module>";
constexpr size_t kCertain = 10'000;  // more than any number of shared functions

bool has_function(const Candidate& candidate) {
  return !candidate.function.empty() && !candidate.function.ends_with(kModule);
}

// User functions two stacks share, counted from the outermost; the module's own code is no cause.
size_t shared_functions(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t shared = 0, functions = 0;
  while (shared < a.size() && shared < b.size() &&
         a[a.size() - 1 - shared] == b[b.size() - 1 - shared]) {
    functions += a[a.size() - 1 - shared].ends_with(kModule) ? 0 : 1;
    ++shared;
  }
  return functions;
}

// Host memory beside a tensor's blocks that grow larger: their headers, the nodes of their graph. A
// native line, or as much as that, is a leak of its own.
bool is_overhead(const Candidate& inner, const Candidate& other, const SiteFrame* site) {
  constexpr uint64_t kShare = 4;
  return inner.where.layer == Layer::kHost && layer_contains(inner.where, other.where) &&
         inner.bytes * kShare <= other.bytes && site != nullptr && !site->native;
}

// What the source says about two: that one container keeps both, that two do, or nothing.
enum class Said { kNothing, kOne, kTwo };
Said said_of(const Candidate& a, const Candidate& b) {
  if (!a.stored || !b.stored) return Said::kNothing;
  // One name in two functions may be two containers, or one of the module's.
  if (a.stored->container != b.stored->container) return Said::kTwo;
  return a.stored->function == b.stored->function ? Said::kOne : Said::kNothing;
}

}  // namespace

bool layer_contains(Where outer, Where inner) {
  if (outer.layer == Layer::kHost && inner.layer == Layer::kTensor) return true;
  return outer.layer == Layer::kDriver && outer.device == inner.device &&
         (is_pool(inner.layer) || inner.layer == Layer::kWorkspace);
}

std::vector<std::vector<size_t>> merge_candidates(std::span<const Candidate> candidates,
                                                  std::span<const LeakInput> inputs) {
  const size_t count = candidates.size();
  UnionFind sets(count);
  std::map<std::string, size_t> by_site, by_container, by_function;
  std::vector<std::string> containers(count);
  for (size_t i = 0; i < count; ++i) {
    const Candidate& candidate = candidates[i];
    if (!candidate.site_key.empty()) {
      // Of the nested layers one class each: the numbers are taken from the inner one.
      const Layer layer = candidate.where.layer;
      const bool device = is_pool(layer) || layer == Layer::kDriver || layer == Layer::kWorkspace;
      const bool host = layer == Layer::kTensor || layer == Layer::kHost;
      const std::string key = std::to_string(device ? 1
                                             : host ? 2
                                                    : 3 + static_cast<int>(layer)) +
                              candidate.site_key;
      const auto [at, fresh] = by_site.try_emplace(key, i);
      if (!fresh) sets.unite(i, at->second);
    }
    containers[i] = candidate.holders.majority_container();
    if (!containers[i].empty()) {
      const auto [at, fresh] = by_container.try_emplace(containers[i], i);
      if (!fresh) sets.unite(i, at->second);
    }
  }

  // Whether `inner` is allocated in a call that the line of `outer` makes.
  const auto calls = [&](const Candidate& outer, const Candidate& inner) {
    if (outer.site == 0 || outer.input != inner.input) return false;
    return inputs[inner.input].sites->passes(inner.stack, outer.site);
  };
  const auto overhead = [&](const Candidate& inner, const Candidate& other) {
    const Sites& sites = *inputs[inner.input].sites;
    return is_overhead(inner, other, inner.site == 0 ? nullptr : &sites.frame(inner.site));
  };
  std::vector<std::vector<std::string>> functions(count);
  for (size_t i = 0; i < count; ++i) {
    const Candidate& candidate = candidates[i];
    functions[i] = inputs[candidate.input].sites->user_functions(candidate.stack);
  }
  for (size_t i = 0; i < count; ++i) {
    const Candidate& inner = candidates[i];
    if (!inner.holders.empty()) continue;
    // The nearest of those that can be its cause, and no other: it must not tie two of them
    // together.
    struct Nearest {
      size_t at, score = 0;
    } known{count}, unknown{count};
    for (size_t j = 0; j < count; ++j) {
      const Candidate& other = candidates[j];
      if (i == j || (inner.where.layer != other.where.layer && !overhead(inner, other)) ||
          !gain_together(inner, other)) {
        continue;
      }
      const Said said = said_of(inner, other);
      if (said == Said::kTwo) continue;
      const bool one_function = has_function(inner) && inner.function == other.function;
      size_t score = 1 + 2 * shared_functions(functions[i], functions[j]) + (one_function ? 1 : 0);
      if (!other.holders.empty()) {
        // A container that keeps the other does not keep what others make; a graph does.
        if (!one_function && other.holders.majority_cause() != "retained_graph") continue;
      } else if (said == Said::kOne || calls(other, inner)) {
        score += kCertain;
      } else if (inner.stored) {
        continue;  // whose container is told joins nobody whose is not
      } else if (!one_function) {
        // Nothing stores it, and it is made in a call from where something else is stored.
        if (!other.stored || !has_function(other)) continue;
        const auto& on = functions[i];
        if (std::find(on.begin(), on.end(), other.function) == on.end()) continue;
      }
      Nearest& nearest = other.holders.empty() ? unknown : known;
      if (score > nearest.score) nearest = {j, score};
    }
    for (const Nearest& nearest : {known, unknown}) {
      if (nearest.at != count) sets.unite(i, nearest.at);
    }
  }

  std::map<size_t, std::vector<size_t>> clusters;
  for (size_t i = 0; i < count; ++i) clusters[sets.find(i)].push_back(i);
  std::vector<std::vector<size_t>> result;
  for (auto& [root, members] : clusters) {
    std::stable_sort(members.begin(), members.end(),
                     [&](size_t a, size_t b) { return candidates[a].bytes > candidates[b].bytes; });
    result.push_back(std::move(members));
  }
  return result;
}

}  // namespace memscope
