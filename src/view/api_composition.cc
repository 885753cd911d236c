// Queries of what memory is made of: trees, sites, and the difference of two states.
#include <algorithm>
#include <charconv>
#include <map>

#include "view/api.h"
#include "view/composition.h"
#include "view/text.h"

namespace memscope::view {
namespace {

// A time, "peak", "end" or "step:K".
uint32_t state_from_text(const PoolAt& at, const std::string& text, const std::string& name,
                         Params& params) {
  const PoolIndex& pool = *at.pool;
  if (text == "peak") return pool.peak.state;
  if (text == "end") return pool.events();
  std::string_view left = text;
  const bool step = left.starts_with("step:");
  if (step) left.remove_prefix(5);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), number);
  if (error != std::errc() || (end != left.data() + left.size() && *end != '.')) {
    params.refuse(name, name + " is a time, peak, end or step:K");
    return 0;
  }
  if (!step) return number < at.shift ? 0 : pool.state_at(at.in(number));
  const auto& ends = at.input->steps.ends;
  if (number < 1 || static_cast<size_t>(number) > ends.size()) {
    params.refuse(name, "no such step");
    return 0;
  }
  return pool.state_at(ends[static_cast<size_t>(number) - 1]);
}

uint64_t leaked_after(const PoolAt& at) {
  const auto& ends = at.input->steps.ends;
  const uint32_t warmup = at.state->warmup;
  if (warmup == 0 || ends.empty()) return at.input->steps.begin;
  return ends[std::min<size_t>(warmup, ends.size()) - 1] + 1;
}

struct Amount {
  int64_t a_bytes = 0, b_bytes = 0, a_blocks = 0, b_blocks = 0;
  std::optional<uint32_t> site_a, site_b;
  std::string detail;
};

template <typename Visit>
void for_each_live(const PoolIndex& pool, uint32_t state, Visit visit) {
  const uint32_t blocks = pool.blocks_in(state);
  for (uint32_t block = 1; block <= blocks; ++block) {
    if (pool.free_event[block] >= state) visit(block);
  }
}

struct Side {
  PoolAt at;
  uint32_t state = 0;
};

// "POOL@T"
Side side_of(const ViewState& state, Params& params, const std::string& name) {
  Side side;
  const std::string text = params.text(name);
  const size_t sign = text.find('@');
  if (sign == std::string::npos) {
    params.refuse(name, name + " is POOL@TIME");
    return side;
  }
  Params pool = Params::from_query("pool=" + text.substr(0, sign));
  side.at = pool_of(state, pool);
  if (pool.bad()) {
    params.refuse(name, "no such pool");
    return side;
  }
  side.state = state_from_text(side.at, text.substr(sign + 1), name, params);
  return side;
}

Json side_json(const Side& side) {
  uint64_t bytes = 0, blocks = 0;
  for_each_live(*side.at.pool, side.state, [&](uint32_t block) {
    bytes += side.at.pool->size(block);
    ++blocks;
  });
  return Json{{"pool", side.at.index},
              {"t", side.at.out(side.at.pool->time_of_state(side.state))},
              {"bytes", bytes},
              {"blocks", blocks}};
}

// Everything of one side, by name. `b`: which side.
void add_side(const Side& side, const std::string& by, bool b,
              std::map<std::string, Amount>& amounts) {
  const PoolIndex& pool = *side.at.pool;
  const InputIndex& input = *side.at.input;
  struct Sum {
    int64_t bytes = 0, blocks = 0;
  };
  const auto key_of = [&](uint32_t block) {
    if (by == "owner") return pool.owner[block];
    return by == "stack" ? pool.stack[block] : input.site_of_stack(pool.stack[block]);
  };
  std::vector<Sum> sums(
      std::max<size_t>({input.owners.size(), by == "stack" ? input.stacks.size() : 1,
                        input.site_count(), size_t{1}}));
  for_each_live(pool, side.state, [&](uint32_t block) {
    Sum& sum = sums[key_of(block)];
    sum.bytes += static_cast<int64_t>(pool.size(block));
    ++sum.blocks;
  });
  for (uint32_t key = 0; key < sums.size(); ++key) {
    if (sums[key].blocks == 0) continue;
    std::string name, detail;
    std::optional<uint32_t> site;
    if (by == "owner") {
      name = key == 0 ? "(no owner)" : input.owners[key];
    } else {
      site = by == "stack" ? input.site_of_stack(key) : key;
      name = input.site_place(*site);
      detail = input.site(*site).function;
      if (by == "stack") {
        // Innermost first, as many frames as tell stacks of two runs apart.
        name.clear();
        for (const SiteFrame& frame : input.describe_stack(key, 12)) {
          if (!name.empty()) name += " ← ";
          name += frame.function + " (" + short_place(frame) + ")";
        }
        if (name.empty()) name = "(no stack)";
      }
    }
    // One function at two lines is two sites; one line in two functions as well.
    std::string full = name;
    full += '\n';
    full += detail;
    Amount& amount = amounts[full];
    amount.detail = detail;
    (b ? amount.b_bytes : amount.a_bytes) += sums[key].bytes;
    (b ? amount.b_blocks : amount.a_blocks) += sums[key].blocks;
    (b ? amount.site_b : amount.site_a) = site;
  }
}

}  // namespace

Answer composition_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  CompositionQuery query;
  query.by = params.choice("by", ComposeBy::kOwner, compose_from_name);
  query.weight = params.choice("weight", Weight::kLive, weight_from_name);
  query.state = state_from_text(at, params.text("t", "peak"), "t", params);
  const bool instant = query.weight == Weight::kLive || query.weight == Weight::kBlocks;
  if (params.has("base") && instant) {
    query.base = state_from_text(at, params.text("base"), "base", params);
  }
  const int64_t begin = at.out(at.input->begin);
  query.t0 = at.in(params.time("t0", begin));
  query.t1 = at.in(params.time("t1", at.end() + 1));
  query.limit = static_cast<size_t>(params.integer("limit", 1, 20'000, 4000));
  query.leaked_after = leaked_after(at);
  if (params.has("root")) {
    query.root = static_cast<uint64_t>(params.integer("root", 0, int64_t{1} << 53));
  }
  if (params.bad()) return {};
  const Composition tree = compose(*at.input, *at.pool, query);
  if (tree.nodes.empty()) return error_answer(404, "no such node", "root");
  Json nodes = Json::array();
  for (const CompositionNode& node : tree.nodes) {
    nodes.push_back(Json{{"id", node.id},
                         {"parent", node.parent},
                         {"name", cut(node.name)},
                         {"detail", node.detail.empty() ? Json(nullptr) : Json(cut(node.detail))},
                         {"value", node.value},
                         {"base", query.base ? Json(node.base) : Json(nullptr)},
                         {"self", node.self},
                         {"blocks", node.blocks},
                         {"kind", std::string(node.kind)},
                         {"user", node.user},
                         {"file", node.file ? Json(cut(*node.file)) : Json(nullptr)},
                         {"line", node.line ? Json(*node.line) : Json(nullptr)},
                         {"site", node.site == 0 ? Json(nullptr) : Json(node.site)},
                         {"depth", node.depth}});
  }
  const auto time = [&](uint32_t moment) { return at.out(at.pool->time_of_state(moment)); };
  return json_answer(Json{{"by", params.text("by", "owner")},
                          {"weight", params.text("weight", "live")},
                          {"t", instant ? Json(time(query.state)) : Json(nullptr)},
                          {"base", query.base ? Json(time(*query.base)) : Json(nullptr)},
                          {"total", tree.total},
                          {"base_total", query.base ? Json(tree.base_total) : Json(nullptr)},
                          {"nodes", std::move(nodes)}});
}

Answer compare_query(const ViewState& state, Params& params) {
  const Side a = side_of(state, params, "a");
  const Side b = side_of(state, params, "b");
  const std::string by = params.text("by", "site");
  if (by != "site" && by != "owner" && by != "stack") {
    params.refuse("by", "by is site, owner or stack");
  }
  const auto limit = static_cast<size_t>(params.integer("limit", 1, 5000, 500));
  if (params.bad() || a.at.pool == nullptr || b.at.pool == nullptr) return {};
  std::map<std::string, Amount> amounts;
  add_side(a, by, false, amounts);
  add_side(b, by, true, amounts);
  std::vector<std::pair<std::string, Amount>> rows(amounts.begin(), amounts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.second.b_bytes - x.second.a_bytes) >
           std::abs(y.second.b_bytes - y.second.a_bytes);
  });
  if (rows.size() > limit) rows.resize(limit);
  Json list = Json::array();
  const auto site = [](const std::optional<uint32_t>& id) {
    return id ? Json(*id) : Json(nullptr);
  };
  for (const auto& [name, amount] : rows) {
    list.push_back(
        Json{{"name",
              cut(std::string_view(name).substr(0, name.size() - amount.detail.size() - 1), 4000)},
             {"detail", amount.detail.empty() ? Json(nullptr) : Json(cut(amount.detail))},
             {"a_bytes", amount.a_bytes},
             {"b_bytes", amount.b_bytes},
             {"a_blocks", amount.a_blocks},
             {"b_blocks", amount.b_blocks},
             {"delta", amount.b_bytes - amount.a_bytes},
             {"site_a", site(amount.site_a)},
             {"site_b", site(amount.site_b)}});
  }
  return json_answer(Json{{"a", side_json(a)}, {"b", side_json(b)}, {"rows", std::move(list)}});
}

}  // namespace memscope::view
