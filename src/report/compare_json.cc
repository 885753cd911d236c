#include "report/compare_json.h"

#include <nlohmann/json.hpp>

#include "report/json_parts.h"

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order written

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json amount(const Held& held) {
  return Json{{"bytes", held.bytes}, {"blocks", held.blocks}};
}

Json amount(const std::optional<Held>& held) {
  return held ? amount(*held) : Json(nullptr);
}

void add_change(Json& object, const Change& change) {
  object["base"] = amount(change.base);
  object["new"] = amount(change.now);
  object["difference"] = amount(change.difference());
}

Json side_json(const ComparedSide& side) {
  Json inputs = Json::array();
  for (const InputSummary& input : side.inputs) inputs.push_back(json_of(input));
  return Json{{"name", side.name},
              {"inputs", std::move(inputs)},
              {"steps", Json{{"source", side.steps_source}, {"count", side.steps}}},
              {"at_step", or_null(side.at_step)},
              {"first_step", or_null(side.first_step)},
              {"last_step", or_null(side.last_step)}};
}

Json list_json(const ComparedList& list, const char* what) {
  Json rows = Json::array();
  for (const ComparedRow& row : list.rows) {
    Json object = Json::object();
    if (std::string_view(what) == "site") {
      object["site"] = row.site ? json_of(*row.site) : Json(nullptr);
    } else {
      object[what] = or_null(row.name);
    }
    object["device"] = row.device;
    object["layer"] = row.layer;
    add_change(object, row.change);
    rows.push_back(std::move(object));
  }
  Json rest{{"rows", list.rest_rows}};
  add_change(rest, list.rest);
  return Json{{"rows", std::move(rows)}, {"rest", std::move(rest)}};
}

Json layer_json(const ComparedLayer& layer) {
  Json object{{"device", layer.device}, {"layer", layer.layer}, {"counted", layer.counted}};
  add_change(object, layer.change);
  object["peak"] = Json{{"base", layer.base_peak}, {"new", layer.now_peak}};
  object["reserved"] =
      Json{{"base", or_null(layer.base_reserved)}, {"new", or_null(layer.now_reserved)}};
  return object;
}

}  // namespace

std::string comparison_json(const Comparison& c) {
  Json layers = Json::array();
  for (const ComparedLayer& layer : c.layers) layers.push_back(layer_json(layer));
  Json total = Json::object();
  add_change(total, c.total);
  const Json json{{"schema", 1},
                  {"tool", c.tool},
                  {"base", side_json(c.base)},
                  {"new", side_json(c.now)},
                  {"total", std::move(total)},
                  {"layers", std::move(layers)},
                  {"sites", list_json(c.sites, "site")},
                  {"owners", list_json(c.owners, "owner")},
                  {"operators", list_json(c.operators, "operator")}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace memscope
