#include "view/composition.h"

#include <array>
#include <bit>
#include <map>

#include "core/mix_hash.h"
#include "tsl/robin_map.h"
#include "view/text.h"

namespace memscope::view {
namespace {

constexpr uint64_t kIdMask = (uint64_t{1} << 53) - 1;

uint64_t mix(uint64_t hash, std::string_view text) {
  hash = (hash ^ 0xcbf2'9ce4'8422'2325) * 0x100'0000'01b3;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
  return hash ^ hash >> 29;
}

struct Sums {
  int64_t value = 0, base = 0, blocks = 0;
};

struct Raw {
  uint64_t id = 0;
  uint32_t parent = 0;  // before its children
  Sums own, all;
  // What it stands for: a frame, an owner's level, a site, a thread or a size class.
  uint32_t key = 0;
  std::string name;
};

// By key: what its blocks weigh.
template <typename KeyOf>
std::vector<Sums> sums_of(const PoolIndex& pool, const CompositionQuery& query, size_t keys,
                          KeyOf key_of) {
  std::vector<Sums> sums(keys);
  weigh(pool, query, query.state, [&](uint32_t block, int64_t weight) {
    Sums& sum = sums[key_of(block)];
    sum.value += weight;
    ++sum.blocks;
  });
  if (query.base) {
    weigh(pool, query, *query.base, [&](uint32_t block, int64_t weight) {
      Sums& sum = sums[key_of(block)];
      sum.base += weight;
      --sum.blocks;
    });
  }
  return sums;
}

bool any(const Sums& sums) {
  return sums.value != 0 || sums.base != 0 || sums.blocks != 0;
}

std::vector<Raw> by_stack(const InputIndex& input, const std::vector<Sums>& sums) {
  // The trie is the tree. Only what has weight below it becomes a node.
  std::vector<bool> wanted(sums.size());
  for (uint32_t stack = static_cast<uint32_t>(sums.size()); stack-- > 0;) {
    if (!wanted[stack] && !any(sums[stack])) continue;
    wanted[stack] = true;
    if (stack != 0) wanted[input.stacks.parent(StackId(stack)).value] = true;
  }
  wanted[0] = true;
  std::vector<uint32_t> index(sums.size());
  std::vector<Raw> nodes;
  for (uint32_t stack = 0; stack < sums.size(); ++stack) {
    if (!wanted[stack]) continue;
    index[stack] = static_cast<uint32_t>(nodes.size());
    Raw node{.id = stack, .own = sums[stack]};
    if (stack != 0) {
      node.parent = index[input.stacks.parent(StackId(stack)).value];
      node.key = input.stacks.innermost(StackId(stack)).value;
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<Raw> by_inverted_stack(const InputIndex& input, const std::vector<Sums>& sums) {
  constexpr size_t kDeepest = 64;
  std::vector<Raw> nodes(1);
  tsl::robin_map<uint64_t, uint32_t, MixHash> children;  // node << 32 | frame
  for (uint32_t stack = 0; stack < sums.size(); ++stack) {
    if (!any(sums[stack])) continue;
    uint32_t at = 0;
    size_t depth = 0;
    for (StackId node(stack); node && depth < kDeepest; node = input.stacks.parent(node), ++depth) {
      const uint32_t frame = input.stacks.innermost(node).value;
      const auto [child, fresh] =
          children.try_emplace(uint64_t{at} << 32 | frame, static_cast<uint32_t>(nodes.size()));
      if (fresh) {
        nodes.push_back(
            {.id = mix(nodes[at].id, std::to_string(frame)) & kIdMask, .parent = at, .key = frame});
      }
      at = child->second;
    }
    nodes[at].own.value += sums[stack].value;
    nodes[at].own.base += sums[stack].base;
    nodes[at].own.blocks += sums[stack].blocks;
  }
  return nodes;
}

std::vector<Raw> by_owner(const InputIndex& input, const std::vector<Sums>& sums) {
  std::vector<Raw> nodes(1);
  std::map<std::pair<uint32_t, std::string>, uint32_t> children;
  for (uint32_t owner = 0; owner < sums.size(); ++owner) {
    if (!any(sums[owner])) continue;
    std::string_view left = owner == 0 ? "(no owner)" : std::string_view(input.owners[owner]);
    uint32_t at = 0;
    constexpr size_t kDeepest = 32;
    for (size_t depth = 0; !left.empty(); ++depth) {
      const size_t end =
          depth + 1 == kDeepest ? left.size() : std::min(left.find('@'), left.size());
      const std::string level(left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
      const auto [child, fresh] =
          children.try_emplace({at, level}, static_cast<uint32_t>(nodes.size()));
      if (fresh) {
        nodes.push_back(
            {.id = mix(nodes[at].id, level) & kIdMask, .parent = at, .key = owner, .name = level});
      }
      at = child->second;
    }
    nodes[at].own.value += sums[owner].value;
    nodes[at].own.base += sums[owner].base;
    nodes[at].own.blocks += sums[owner].blocks;
  }
  return nodes;
}

template <typename NameOf>
std::vector<Raw> flat(const std::vector<Sums>& sums, NameOf name_of) {
  std::vector<Raw> nodes(1);
  for (uint32_t key = 0; key < sums.size(); ++key) {
    if (!any(sums[key])) continue;
    nodes.push_back({.id = uint64_t{key} + 1, .own = sums[key], .key = key, .name = name_of(key)});
  }
  return nodes;
}

std::vector<Raw> raw_tree(const InputIndex& input, const PoolIndex& pool,
                          const CompositionQuery& query) {
  switch (query.by) {
    case ComposeBy::kOwner:
      return by_owner(input, sums_of(pool, query, input.owners.size(),
                                     [&](uint32_t block) { return pool.owner[block]; }));
    case ComposeBy::kSite:
      return flat(sums_of(pool, query, input.site_count(),
                          [&](uint32_t block) { return input.site_of_stack(pool.stack[block]); }),
                  [&](uint32_t site) { return input.site_place(site); });
    case ComposeBy::kThread:
      return flat(sums_of(pool, query, 65536, [&](uint32_t block) { return pool.thread[block]; }),
                  [&](uint32_t thread) {
                    const std::string name = input.thread_name(thread);
                    return name.empty() ? "(unknown thread)" : name;
                  });
    case ComposeBy::kSize:
      return flat(sums_of(pool, query, 64,
                          [&](uint32_t block) {
                            const uint64_t size = pool.size(block);
                            return static_cast<uint32_t>(std::bit_width(size == 0 ? 0 : size - 1));
                          }),
                  [](uint32_t bits) { return "≤ " + bytes_text(uint64_t{1} << bits); });
    case ComposeBy::kStack:
    case ComposeBy::kStackInverted: {
      const auto sums = sums_of(pool, query, std::max<size_t>(input.stacks.size(), 1),
                                [&](uint32_t block) { return pool.stack[block]; });
      return query.by == ComposeBy::kStack ? by_stack(input, sums) : by_inverted_stack(input, sums);
    }
  }
  return {};
}

// Heaviest first; of equals the one that was there first.
int64_t rank_of(const Sums& sums) {
  return std::abs(sums.value) + std::abs(sums.base);
}

void describe(const InputIndex& input, const CompositionQuery& query, const Raw& raw,
              CompositionNode& node) {
  switch (query.by) {
    case ComposeBy::kStack:
    case ComposeBy::kStackInverted: {
      const SiteFrame frame = input.describe_frame(FrameId(raw.key));
      node.kind = "frame";
      node.name = frame.function;
      node.detail = short_place(frame);
      node.user = frame.user;
      node.file = frame.file;
      node.line = frame.line;
      break;
    }
    case ComposeBy::kSite: {
      const SiteFrame& frame = input.site(raw.key);
      node.kind = "site";
      node.name = raw.name;
      node.detail = frame.function;
      node.user = frame.user;
      node.file = frame.file;
      node.line = frame.line;
      node.site = raw.key;
      break;
    }
    case ComposeBy::kOwner:
      node.kind = "owner";
      node.name = raw.name;
      break;
    case ComposeBy::kThread:
    case ComposeBy::kSize:
      node.kind = "class";
      node.name = raw.name;
      break;
  }
}

// Writes a node and the kept nodes below it.
class Writer {
 public:
  Writer(const InputIndex& input, const CompositionQuery& query, const std::vector<Raw>& raw)
      : input_(input), query_(query), raw_(raw), children_(raw.size()) {}

  void keep(size_t limit, uint32_t root) {
    // Subtrees weigh at least what their parts do, so that the heaviest nodes hang together.
    std::vector<uint32_t> order;
    constexpr uint32_t kDeepest = 1200;        // write() recurses; a stack has 1,000 frames at most
    std::vector<uint32_t> depth(raw_.size());  // 0: not below the root
    depth[root] = 1;
    for (uint32_t i = root + 1; i < raw_.size(); ++i) {
      const uint32_t above = depth[raw_[i].parent];
      if (above == 0 || above > kDeepest) continue;
      depth[i] = above + 1;
      order.push_back(i);
    }
    const size_t kept = std::min(limit, order.size());
    const auto heavier = [&](uint32_t a, uint32_t b) {
      const int64_t x = rank_of(raw_[a].all), y = rank_of(raw_[b].all);
      return x != y ? x > y : a < b;
    };
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(),
                      heavier);
    order.resize(kept);
    for (const uint32_t i : order) children_[raw_[i].parent].push_back(i);
  }

  void write(uint32_t at, int64_t parent, uint32_t depth, Composition& out) {
    const Raw& raw = raw_[at];
    CompositionNode node{.id = raw.id, .parent = parent, .depth = depth};
    if (at == 0) {
      node.kind = "root";
      node.name = "all";
    } else {
      describe(input_, query_, raw, node);
    }
    node.value = raw.all.value - raw.all.base;
    node.base = raw.all.base;
    node.self = raw.own.value - raw.own.base;
    node.blocks = raw.all.blocks;
    const auto index = static_cast<int64_t>(out.nodes.size());
    out.nodes.push_back(std::move(node));
    Sums rest = raw.all;
    const auto take = [&rest](const Sums& sums) {
      rest.value -= sums.value;
      rest.base -= sums.base;
      rest.blocks -= sums.blocks;
    };
    take(raw.own);
    for (const uint32_t child : children_[at]) {
      take(raw_[child].all);
      write(child, index, depth + 1, out);
    }
    if (!any(rest)) return;
    CompositionNode other{
        .id = mix(raw.id, "other") & kIdMask, .parent = index, .depth = depth + 1};
    other.kind = "other";
    other.name = "other";
    other.value = other.self = rest.value - rest.base;
    other.base = rest.base;
    other.blocks = rest.blocks;
    out.nodes.push_back(std::move(other));
  }

 private:
  const InputIndex& input_;
  const CompositionQuery& query_;
  const std::vector<Raw>& raw_;
  std::vector<std::vector<uint32_t>> children_;  // heaviest first
};

}  // namespace

std::optional<ComposeBy> compose_from_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"owner", "stack",  "stack_inverted",
                                                      "site",  "thread", "size"};
  const auto* at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<ComposeBy>(at - kNames.begin());
}

std::optional<Weight> weight_from_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"live",   "blocks",      "leaked",
                                                      "allocs", "alloc_bytes", "byte_time"};
  const auto* at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<Weight>(at - kNames.begin());
}

Composition compose(const InputIndex& input, const PoolIndex& pool, const CompositionQuery& query) {
  std::vector<Raw> raw = raw_tree(input, pool, query);
  for (Raw& node : raw) node.all = node.own;
  for (size_t i = raw.size(); i-- > 1;) {
    Sums& up = raw[raw[i].parent].all;
    up.value += raw[i].all.value;
    up.base += raw[i].all.base;
    up.blocks += raw[i].all.blocks;
  }
  Composition result;
  result.total = raw[0].all.value;
  result.base_total = raw[0].all.base;
  uint32_t root = 0;
  if (query.root) {
    while (root < raw.size() && raw[root].id != *query.root) ++root;
    if (root == raw.size()) return result;
  }
  Writer writer(input, query, raw);
  writer.keep(query.limit, root);
  writer.write(root, -1, 0, result);
  return result;
}

}  // namespace memscope::view
