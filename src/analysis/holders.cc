#include "analysis/holders.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace memscope {
namespace {

constexpr size_t kMaxPathBytes = 64 * 1024;
constexpr size_t kMaxPathSteps = 64;
// Causes of the contract that only an object walk can prove.
constexpr std::string_view kGraph = "retained_graph";
constexpr std::array<std::string_view, 5> kProvable = {kGraph, "cycle", "unbounded_cache", "leak",
                                                       "none"};
// The last step of a path to what only a graph keeps, as the walk writes it.
constexpr std::string_view kGraphStep = "grad_fn";

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->is_number_integer() ? std::to_string(at->get<int64_t>()) : std::string();
}

std::string key_of(const HolderSeen& seen, const std::vector<HolderStep>& container) {
  std::string key = seen.root;
  for (const HolderStep& step : container) key += '|' + step.kind + ':' + step.name;
  if (container.empty()) key += '|' + seen.file + ':' + std::to_string(seen.line);
  // A local's name means nothing without its function.
  if (seen.root != "module") key += '|' + seen.file + ':' + seen.function;
  return key;
}

// "__main__.store[412]" -> "__main__.store": one element is not all of them.
std::string without_element(std::string text) {
  while (!text.empty() && text.back() == ']') {
    const size_t open = text.rfind('[');
    if (open == std::string::npos || open == 0) break;
    text.resize(open);
  }
  return text;
}

template <typename Map, typename Count>
auto largest(const Map& map, Count&& count) {
  return std::max_element(map.begin(), map.end(), [&](const auto& a, const auto& b) {
    return count(a.second) < count(b.second);
  });
}

}  // namespace

std::vector<HolderStep> parse_holder_path(std::string_view json) {
  std::vector<HolderStep> path;
  if (json.size() > kMaxPathBytes) return path;
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_array()) return path;
  for (const nlohmann::json& item : parsed) {
    if (!item.is_object() || path.size() == kMaxPathSteps) break;
    HolderStep step{text_of(item, "kind"), text_of(item, "name"), text_of(item, "type"), {}};
    const auto len = item.find("len");
    if (len != item.end() && len->is_number_integer()) step.len = len->get<int64_t>();
    path.push_back(std::move(step));
  }
  return path;
}

std::vector<HolderStep> container_of(std::vector<HolderStep> path) {
  while (!path.empty() && (path.back().kind == "item" || path.back().kind == "ref")) {
    path.pop_back();
  }
  return path;
}

void HolderSums::add(const HolderSeen& seen) {
  std::vector<HolderStep> path = parse_holder_path(seen.path);
  if (seen.cause == kGraph) {
    const bool inside =
        !path.empty() && path.back().kind == "ref" && path.back().name == kGraphStep;
    ++(inside ? in_graph_ : roots_);
  }
  std::vector<HolderStep> container = container_of(std::move(path));
  const std::string key = key_of(seen, container);
  Holder& sum = sums_[key];
  if (sum.blocks == 0) {
    sum.root = seen.root;
    sum.path = std::move(container);
    sum.text = without_element(seen.text);
  } else if (!sum.path.empty() && !container.empty() && container.back().len) {
    sum.path.back().len = std::max(sum.path.back().len.value_or(0), *container.back().len);
  }
  ++sum.blocks;
  sum.bytes += static_cast<int64_t>(seen.size);
  ++blocks_;
  if (!seen.cause.empty()) ++causes_[seen.cause];
  if (seen.line != 0 && !seen.file.empty()) {
    KeptAt& kept = kept_at_[seen.file + ':' + std::to_string(seen.line)];
    if (kept.blocks == 0) kept = {seen.file, seen.function, seen.line, seen.end_line, 0};
    ++kept.blocks;
  }
}

void HolderSums::add(const HolderSums& other) {
  for (const auto& [key, holder] : other.sums_) {
    Holder& sum = sums_[key];
    const int64_t blocks = sum.blocks + holder.blocks, bytes = sum.bytes + holder.bytes;
    if (sum.blocks == 0) sum = holder;
    sum.blocks = blocks;
    sum.bytes = bytes;
  }
  for (const auto& [key, kept] : other.kept_at_) {
    KeptAt& sum = kept_at_[key];
    const uint64_t blocks = sum.blocks + kept.blocks;
    if (sum.blocks == 0) sum = kept;
    sum.blocks = blocks;
  }
  for (const auto& [cause, count] : other.causes_) causes_[cause] += count;
  blocks_ += other.blocks_;
  in_graph_ += other.in_graph_;
  roots_ += other.roots_;
}

std::string HolderSums::majority_container() const {
  const auto most = largest(sums_, [](const Holder& h) { return h.blocks; });
  if (most == sums_.end()) return {};
  return static_cast<uint64_t>(most->second.blocks) * 2 > blocks_ ? most->first : std::string();
}

std::optional<HolderSums::KeptAt> HolderSums::majority_kept_at() const {
  const auto most = largest(kept_at_, [](const KeptAt& k) { return k.blocks; });
  if (most == kept_at_.end() || most->second.blocks * 2 <= blocks_) return std::nullopt;
  return most->second;
}

std::string HolderSums::majority_cause() const {
  const auto most = largest(causes_, [](uint64_t count) { return count; });
  if (most == causes_.end() || most->second * 2 <= blocks_) return {};
  const bool known = std::find(kProvable.begin(), kProvable.end(), most->first) != kProvable.end();
  return known ? most->first : std::string();
}

std::string HolderSums::container_name() const {
  const auto most = largest(sums_, [](const Holder& h) { return h.blocks; });
  if (most == sums_.end() || most->second.path.empty()) return {};
  std::string name;
  for (const HolderStep& step : most->second.path) {
    if (step.kind == "attr" && !name.empty()) {
      name += '.' + step.name;
    } else if (step.kind == "global" || step.kind == "local" || step.kind == "cell" ||
               step.kind == "attr") {
      name = step.name;
    }
  }
  return name;
}

std::vector<Holder> HolderSums::list(size_t most) const {
  std::vector<Holder> holders;
  for (const auto& [key, holder] : sums_) holders.push_back(holder);
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  if (holders.size() > most) holders.resize(most);
  return holders;
}

}  // namespace memscope
