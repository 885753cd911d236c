// Queries of the timeline and the block graph.
#include <algorithm>
#include <charconv>

#include "view/api.h"
#include "view/graph.h"
#include "view/lines.h"
#include "view/text.h"

namespace memscope::view {
namespace {

constexpr size_t kMaxSeries = 32;

// A whole number at the front of `text`, which then begins after it.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// "allocated:0", "counter:1:3".
std::optional<Line> series_line(const ViewState& state, std::string_view text, TimeWindow window) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon);
  text.remove_prefix(std::min(colon + 1, text.size()));
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (kind == "counter") {
    if (text.empty() || text.front() != ':' || *number >= state.inputs.size()) return std::nullopt;
    text.remove_prefix(1);
    const auto counter = take_number(text);
    const InputIndex& input = *state.inputs[*number];
    if (!counter || !text.empty() || *counter >= input.counters.size()) return std::nullopt;
    window.t0 -= state.shift(*number);
    window.t1 -= state.shift(*number);
    return counter_line(input.counters[*counter], window);
  }
  if (!text.empty() || *number >= state.pools.size()) return std::nullopt;
  const ViewState::Pool& entry = state.pools[*number];
  window.t0 -= state.shift(entry.input);
  window.t1 -= state.shift(entry.input);
  const PoolIndex& pool = entry.views->pool();
  if (kind == "allocated") return allocated_line(pool, window);
  if (kind == "reserved") return reserved_line(pool, window);
  if (kind == "reported") return reported_line(pool, window);
  return std::nullopt;
}

OrderBy order_of(Params& params) {
  return params.choice("order", OrderBy::kLifetime, order_from_name);
}

ColourBy colour_of(Params& params) {
  return params.choice("colour", ColourBy::kSite, colour_from_name);
}

// "1,4,7" as bits.
uint32_t classes_of(Params& params) {
  const std::string text = params.text("classes");
  if (!params.has("classes")) return ~0u;
  uint32_t mask = 0;
  for (std::string_view left = text; !left.empty();) {
    const auto number = take_number(left);
    if (!number || *number >= kMaxClasses || (!left.empty() && left.front() != ',')) {
      params.refuse("classes", "classes are ids of the legend: 1,4,7");
      return ~0u;
    }
    mask |= 1u << *number;
    if (!left.empty()) left.remove_prefix(1);
  }
  return mask;
}

uint32_t block_of(const PoolAt& at, Params& params) {
  const int64_t block = params.integer("block", 1, kAlive);
  if (params.bad()) return 0;
  if (block > at.pool->blocks()) params.refuse("block", "no such block");
  return static_cast<uint32_t>(block);
}

}  // namespace

Answer lines_query(const ViewState& state, Params& params) {
  TimeWindow window{.t0 = params.time("t0"), .t1 = params.time("t1")};
  window.width = static_cast<uint32_t>(params.integer("width", 1, 8192));
  if (window.t0 >= window.t1) params.refuse("t1", "t1 is after t0");
  const std::string series = params.text("series");
  if (series.empty()) params.refuse("series", "series is missing");
  if (params.bad()) return {};
  std::vector<Line> lines;
  for (std::string_view left = series; !left.empty();) {
    const size_t comma = std::min(left.find(','), left.size());
    auto line = series_line(state, left.substr(0, comma), window);
    if (!line || lines.size() == kMaxSeries) {
      params.refuse("series", "no such series: " + cut(left.substr(0, comma), 60));
      return {};
    }
    lines.push_back(std::move(*line));
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  Answer answer{.type = "application/octet-stream"};
  answer.body = lines_bytes(lines, window.width);
  return answer;
}

Answer graph_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  const int64_t t0 = params.time("t0"), t1 = params.time("t1");
  if (t0 >= t1) params.refuse("t1", "t1 is after t0");
  GraphQuery query;
  query.width = static_cast<uint32_t>(params.integer("width", 1, 4096));
  query.height = static_cast<uint32_t>(params.integer("height", 1, 4096));
  const auto peak = static_cast<int64_t>(at.pool->peak.bytes);
  constexpr int64_t kMost = int64_t{1} << 53;
  const int64_t m0 = params.integer("m0", 0, kMost, 0);
  const int64_t m1 = params.integer("m1", 0, kMost, std::max<int64_t>(peak + peak / 20, m0 + 1));
  if (m0 >= m1) params.refuse("m1", "m1 is above m0");
  const OrderBy order = order_of(params);
  const ColourBy colour = colour_of(params);
  query.classes = classes_of(params);
  const std::string sample = params.text("sample", "peak"), detail = params.text("detail", "tidy");
  if (sample != "peak" && sample != "floor") params.refuse("sample", "sample is peak or floor");
  if (detail != "tidy" && detail != "exact") params.refuse("detail", "detail is tidy or exact");
  if (params.bad()) return {};
  query.t0 = at.in(t0);
  query.t1 = std::max(at.in(t1), query.t0 + 1);
  query.m0 = static_cast<uint64_t>(m0);
  query.m1 = static_cast<uint64_t>(m1);
  query.floor = sample == "floor";
  query.tidy = detail == "tidy";
  const Colouring& colouring = state.colouring(at.index, colour);
  const auto make = [&] {
    Graph graph = draw_graph(*at.pool, at.views->order(order), colouring, query);
    const auto shift = static_cast<uint64_t>(at.shift);
    graph.t0 += shift;
    graph.t1 += shift;
    for (GraphSlice& slice : graph.slices) {
      slice.begin += shift;
      slice.at += shift;
    }
    return graph_bytes(graph, query);
  };
  Answer answer{.type = "application/octet-stream"};
  if (colour == ColourBy::kVerdict) {
    answer.body = make();  // the diagnosis may change
    return answer;
  }
  std::string key = sample + detail + std::to_string(static_cast<int>(order)) + "," +
                    std::to_string(static_cast<int>(colour));
  for (const uint64_t part : {query.t0, query.t1, query.m0, query.m1, uint64_t{query.width},
                              uint64_t{query.height}, uint64_t{query.classes}}) {
    key += "," + std::to_string(part);
  }
  // Of the whole run: what the page shows first, the next time as well.
  const bool whole = query.t0 <= at.input->begin && query.t1 >= at.input->end;
  answer.body = *at.views->answer(key, make, whole);
  return answer;
}

Answer legend_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  const ColourBy colour = colour_of(params);
  if (params.bad()) return {};
  Json classes = Json::array();
  const Colouring& colouring = state.colouring(at.index, colour);
  for (size_t id = 0; id < colouring.classes.size(); ++id) {
    const ColourClass& entry = colouring.classes[id];
    Json key = Json::object();
    if (entry.key >= 0) key[std::string(colour_name(colour))] = entry.key;
    if (entry.from >= 0) {
      key["from"] = entry.from;
      key["to"] = entry.to < 0 ? Json(nullptr) : Json(entry.to);
    }
    classes.push_back(
        Json{{"id", id},
             {"name", cut(entry.name)},
             {"detail", entry.detail.empty() ? Json(nullptr) : Json(cut(entry.detail))},
             {"key", std::move(key)},
             {"bytes", entry.bytes},
             {"peak", entry.peak},
             {"blocks", entry.blocks},
             {"hue", entry.hue}});
  }
  return json_answer(
      Json{{"colour", std::string(colour_name(colour))}, {"classes", std::move(classes)}});
}

Answer locate_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  uint32_t moment = 0;
  if (params.has("state")) {
    moment = static_cast<uint32_t>(params.integer("state", 0, kAlive));
  } else {
    const int64_t time = params.time("t");
    moment = time < at.shift ? 0 : at.pool->state_at(at.in(time));
  }
  const auto bytes = static_cast<uint64_t>(params.integer("bytes", 0, int64_t{1} << 53));
  const OrderBy order = order_of(params);
  const ColourBy colour = colour_of(params);
  const uint32_t classes = classes_of(params);
  if (params.bad()) return {};
  moment = std::min(moment, at.pool->events());
  const Colouring* colouring = classes == ~0u ? nullptr : &state.colouring(at.index, colour);
  const Located found = locate(*at.pool, at.views->order(order), colouring, classes, moment, bytes);
  return json_answer(Json{
      {"block", found.block == 0 ? Json(nullptr) : Json(found.block)},
      {"from", found.from},
      {"to", found.to},
      {"total", found.total},
      {"summary", found.block == 0 ? Json(nullptr) : block_json(at, found.block, kListedName)}});
}

Answer hover_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  const uint32_t block = block_of(at, params);
  if (params.bad()) return {};
  return json_answer(block_json(at, block, kListedName));
}

Answer place_query(const ViewState& state, Params& params) {
  const PoolAt at = pool_of(state, params);
  if (params.bad()) return {};
  const uint32_t block = block_of(at, params);
  const OrderBy order = order_of(params);
  if (params.bad()) return {};
  const PoolIndex& pool = *at.pool;
  uint32_t moment = pool.alloc_event[block] + 1;
  if (params.has("t")) {
    const uint32_t wanted = pool.state_at(at.in(params.time("t")));
    if (pool.alive(block, wanted)) moment = wanted;
  }
  if (params.bad()) return {};
  const Located place = place_of_block(pool, at.views->order(order), moment, block);
  const auto end = pool.end_time(block);
  return json_answer(Json{{"block", block},
                          {"begin", at.out(pool.begin_time(block))},
                          {"end", end ? Json(at.out(*end)) : Json(nullptr)},
                          {"t", at.out(pool.time_of_state(moment))},
                          {"from", place.from},
                          {"to", place.to},
                          {"total", place.total}});
}

}  // namespace memscope::view
