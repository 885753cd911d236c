#include "report/page_session.h"

#include <algorithm>
#include <array>

#include "report/page_answers.h"
#include "view/text.h"

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;

struct Limits {
  size_t items, bytes;  // of a list, of a text
};
constexpr std::array<Limits, 6> kLimits = {
    {{1000, 4000}, {256, 2000}, {64, 1000}, {24, 400}, {8, 200}, {4, 80}}};

Json cut_down(const Json& value, const Limits& limits) {
  if (value.is_string()) return view::cut(value.get_ref<const std::string&>(), limits.bytes);
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) {
      if (list.size() == limits.items) break;
      list.push_back(cut_down(item, limits));
    }
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [key, item] : value.items()) object[key] = cut_down(item, limits);
  return object;
}

// Pools whose process is there.
void drop_strays(Json& session) {
  const size_t inputs = session["inputs"].size();
  Json pools = Json::array();
  for (Json& pool : session["pools"]) {
    if (pool["input"].get<size_t>() < inputs) pools.push_back(std::move(pool));
  }
  session["pools"] = std::move(pools);
  const Json opening = session["opening"];
  const auto here = [&](const Json& pool) { return pool["id"] == opening.value("pool", Json()); };
  const Json& kept = session["pools"];
  if (opening.is_object() && std::none_of(kept.begin(), kept.end(), here)) {
    session["opening"] = nullptr;
  }
}

size_t verdicts_of(const Json& session) {
  const Json diagnosis = session.value("diagnosis", Json());
  return diagnosis.is_object() ? diagnosis.value("verdicts", Json::array()).size() : 0;
}

}  // namespace

Json fit_session(const Json& session, size_t most, PageTally& tally) {
  Json cut;
  for (const Limits& limits : kLimits) {
    cut = cut_down(session, limits);
    drop_strays(cut);
    if (script_text(cut).size() <= most) break;
  }
  tally.add("processes", cut["inputs"].size(), session["inputs"].size());
  tally.add("pools", cut["pools"].size(), session["pools"].size());
  tally.add("verdicts", verdicts_of(cut), verdicts_of(session));
  cut["growing"] = false;
  return cut;
}

}  // namespace memscope
