#include "view/api.h"

#include <algorithm>
#include <array>

#include "view/text.h"

namespace memscope::view {
namespace {

struct Named {
  std::string_view name;
  Query query;
};
constexpr std::array<Named, 20> kQueries = {
    {{"session", session_query},   {"steps", steps_query},
     {"lanes", lanes_query},       {"lines", lines_query},
     {"graph", graph_query},       {"legend", legend_query},
     {"locate", locate_query},     {"hover", hover_query},
     {"place", place_query},       {"composition", composition_query},
     {"sites", sites_query},       {"compare", compare_query},
     {"block", block_query},       {"stack", stack_query},
     {"source", source_query},     {"search", search_query},
     {"pool_map", pool_map_query}, {"blocks", blocks_query},
     {"events", events_query},     {"index", index_query}}};

Query find_query(std::string_view name) {
  const auto* at = std::find_if(kQueries.begin(), kQueries.end(),
                                [&](const Named& known) { return known.name == name; });
  return at == kQueries.end() ? nullptr : at->query;
}

Answer status_answer(const Session::Status& status) {
  return json_answer(Json{{"generation", status.generation},
                          {"state", status.state},
                          {"progress", status.progress < 0 ? Json(nullptr) : Json(status.progress)},
                          {"growing", status.growing},
                          {"error", status.error.empty() ? Json(nullptr) : Json(status.error)},
                          {"diagnosis", status.diagnosis},
                          {"names", status.names}});
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Answer json_answer(const Json& json) {
  Answer answer;
  answer.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return answer;
}

Answer error_answer(int status, const std::string& message, const std::string& parameter) {
  Answer answer = json_answer(
      Json{{"error", cut(message, 1000)},
           {"parameter", parameter.empty() ? Json(nullptr) : Json(cut(parameter, 100))}});
  answer.status = status;
  return answer;
}

Answer Api::answer(std::string_view name, Params params) const {
  if (params.bad()) return error_answer(400, params.bad()->message);
  session_.watched();
  if (name == "status") {
    const Session::Status status = session_.status();
    Answer answer = status_answer(status);
    if (params.has("session")) {
      // Both at once: the page's first question.
      const auto state = session_.state();
      const std::string session = state == nullptr ? "null" : session_query(*state, params).body;
      answer.body.back() = ',';
      answer.body += "\"session\":" + session + "}";
    }
    answer.generation = status.generation;
    return answer;
  }
  if (find_query(name) == nullptr) return error_answer(404, "no such query");
  const auto state = session_.state();
  if (state == nullptr) {
    const std::string error = session_.status().error;
    return error_answer(503, error.empty() ? "the input is still being read" : error);
  }
  return answer_of(state, name, std::move(params));
}

Answer Api::answer_of(const std::shared_ptr<const ViewState>& state, std::string_view name,
                      Params params) {
  if (params.bad()) return error_answer(400, params.bad()->message);
  const Query query = find_query(name);
  if (query == nullptr) return error_answer(404, "no such query");
  Answer answer = query(*state, params);
  if (params.bad()) answer = error_answer(400, params.bad()->message, params.bad()->parameter);
  answer.generation = state->generation;
  // A body in pieces is made from the state: it must not go before.
  if (answer.more) {
    answer.more = [state, more = std::move(answer.more)](std::string& piece) {
      return more(piece);
    };
  }
  return answer;
}

PoolAt pool_of(const ViewState& state, Params& params, const std::string& name) {
  PoolAt at{.state = &state};
  const int64_t number = params.integer(name, 0, std::numeric_limits<int32_t>::max());
  if (params.bad()) return at;
  if (static_cast<size_t>(number) >= state.pools.size()) {
    params.refuse(name, "no such pool");
    return at;
  }
  at.index = static_cast<size_t>(number);
  const ViewState::Pool& pool = state.pools[at.index];
  at.views = pool.views.get();
  at.input = &pool.views->input();
  at.pool = &pool.views->pool();
  at.shift = state.shift(pool.input);
  return at;
}

Json frame_json(const SiteFrame& frame, size_t longest) {
  const auto text = [&](const std::optional<std::string>& value) {
    return value ? Json(cut(*value, longest)) : Json(nullptr);
  };
  return Json{{"file", text(frame.file)},
              {"line", or_null(frame.line)},
              {"end_line", or_null(frame.end_line)},
              {"function", cut(frame.function, longest)},
              {"module", text(frame.module)},
              {"kind", frame.native ? "native" : "python"},
              {"user", frame.user},
              {"inferred", frame.inferred},
              {"text", text(frame.text)}};
}

Json site_json(const InputIndex& input, uint32_t site) {
  if (site == 0) return nullptr;
  const SiteFrame& frame = input.site(site);
  return Json{{"id", site},
              {"place", cut(input.site_place(site))},
              {"function", cut(frame.function)},
              {"text", frame.text ? Json(cut(*frame.text)) : Json(nullptr)}};
}

Json block_json(const PoolAt& at, uint32_t block, size_t longest) {
  const PoolIndex& pool = *at.pool;
  const InputIndex& input = *at.input;
  const uint64_t begin = pool.begin_time(block);
  const auto end = pool.end_time(block);
  const bool steps = input.steps.count() != 0;
  const uint32_t owner = pool.owner[block];
  const int64_t verdict = verdict_of(input, pool, at.state->verdicts[at.index], block);
  const std::string thread = input.thread_name(pool.thread[block]);
  return Json{{"block", block},
              {"address", address_text(pool.address[block])},
              {"size", pool.size(block)},
              {"owner", owner == 0 ? Json(nullptr) : Json(cut(input.owners[owner], longest))},
              {"site", site_json(input, input.site_of_stack(pool.stack[block]))},
              {"begin", at.out(begin)},
              {"end", end ? Json(at.out(*end)) : Json(nullptr)},
              {"lifetime", end ? Json(*end - begin) : Json(nullptr)},
              {"step", steps ? Json(input.step_at(begin)) : Json(nullptr)},
              {"end_step", steps && end ? Json(input.step_at(*end)) : Json(nullptr)},
              {"thread", thread.empty() ? Json(nullptr) : Json(cut(thread, longest))},
              {"preexisting", (pool.sized[block] & kPreexisting) != 0},
              {"fate_unknown", (pool.sized[block] & kFateUnknown) != 0},
              {"verdict", verdict < 0 ? Json(nullptr) : Json(verdict)}};
}

}  // namespace memscope::view
