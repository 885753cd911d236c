#include "report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/json_parts.h"

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order written

Json json_of(const SiteShare& share);
Json json_of(const HolderStep& step);
Json json_of(const Holder& holder);
Json json_of(const Verdict& verdict);
Json json_of(const LayerSummary& layer);
Json json_of(const GapSummary& gap);

template <typename T>
Json json_list(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json json_of(const std::optional<SiteFrame>& frame) {
  return frame ? json_of(*frame) : Json(nullptr);
}

Json json_of(const Peaks& peaks) {
  return Json{{"start", peaks.start}, {"peak", peaks.peak}, {"end", peaks.end}};
}

Json json_of(const SiteShare& share) {
  return Json{{"site", json_of(share.site)}, {"bytes", share.bytes}, {"blocks", share.blocks}};
}

Json json_of(const HolderStep& step) {
  return Json{
      {"kind", step.kind}, {"name", step.name}, {"type", step.type}, {"len", or_null(step.len)}};
}

Json json_of(const Holder& holder) {
  return Json{{"root", holder.root},
              {"path", json_list(holder.path)},
              {"blocks", holder.blocks},
              {"bytes", holder.bytes},
              {"text", holder.text}};
}

Json evidence_json(const std::map<std::string, EvidenceValue>& evidence) {
  Json object = Json::object();
  for (const auto& [key, value] : evidence) {
    std::visit([&object, &key = key](const auto& v) { object[key] = v; }, value);
  }
  return object;
}

Json json_of(const Verdict& v) {
  return Json{{"id", v.id},
              {"cause", v.cause},
              {"layer", or_null(v.layer)},
              {"device", or_null(v.device)},
              {"processes", Json(v.processes)},
              {"confidence", finite(v.confidence)},
              {"bytes_total", v.bytes_total},
              {"bytes_per_step", finite(v.bytes_per_step)},
              {"bytes_per_second", finite(v.bytes_per_second)},
              {"blocks", v.blocks},
              {"first_step", or_null(v.first_step)},
              {"last_step", or_null(v.last_step)},
              {"site", json_of(v.site)},
              {"kept_at", json_of(v.kept_at)},
              {"sites", json_list(v.sites)},
              {"stack", json_list(v.stack)},
              {"holders", json_list(v.holders)},
              {"owner", or_null(v.owner)},
              {"evidence", evidence_json(v.evidence)},
              {"advice", v.advice}};
}

Json json_of(const LayerSummary& layer) {
  return Json{{"input", layer.input},
              {"device", layer.device},
              {"layer", layer.layer},
              {"allocated", json_of(layer.allocated)},
              {"reserved", layer.reserved ? json_of(*layer.reserved) : Json(nullptr)},
              {"bytes_per_step", finite(layer.bytes_per_step)}};
}

Json json_of(const GapSummary& gap) {
  return Json{
      {"input", gap.input}, {"from_ns", gap.from_ns}, {"to_ns", gap.to_ns}, {"reason", gap.reason}};
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Json json_of(const SiteFrame& frame) {
  return Json{{"file", or_null(frame.file)},
              {"line", or_null(frame.line)},
              {"end_line", or_null(frame.end_line)},
              {"function", frame.function},
              {"module", or_null(frame.module)},
              {"kind", frame.native ? "native" : "python"},
              {"user", frame.user},
              {"inferred", frame.inferred},
              {"text", or_null(frame.text)}};
}

Json json_of(const InputSummary& input) {
  Json process = nullptr;
  if (input.process) {
    process = Json{{"host", input.process->host},
                   {"rank", or_null(input.process->rank)},
                   {"pid", input.process->pid},
                   {"argv0", input.process->argv0}};
  }
  return Json{{"path", input.path},           {"kind", input.kind},
              {"process", process},           {"ended", input.ended},
              {"complete", input.complete},   {"dropped", input.dropped},
              {"agent", or_null(input.agent)}};
}

std::string diagnosis_json(const Diagnosis& d) {
  const Json json{
      {"schema", 1},
      {"tool", d.tool},
      {"inputs", json_list(d.inputs)},
      {"devices", Json(d.devices)},
      {"steps", Json{{"source", d.steps.source},
                     {"count", d.steps.count},
                     {"first", or_null(d.steps.first)},
                     {"last", or_null(d.steps.last)},
                     {"warmup_until", or_null(d.steps.warmup_until)}}},
      {"layers", json_list(d.layers)},
      {"dropped",
       Json{{"events", d.dropped_events}, {"ambiguous", d.ambiguous}, {"gaps", json_list(d.gaps)}}},
      {"verdicts", json_list(d.verdicts)},
      {"suspects", json_list(d.suspects)},
      {"suppressed", json_list(d.suppressed)}};
  return dump(json, 2);
}

std::string suspects_json(const Diagnosis& diagnosis) {
  Json groups = Json::array();
  for (const SuspectGroup& group : diagnosis.suspect_groups) {
    Json blocks = Json::array();
    for (const SuspectBlock& block : group.blocks) {
      blocks.push_back(Json{{"addr", block.addr}, {"size", block.size}, {"birth", block.birth}});
    }
    groups.push_back(Json{{"site", json_of(group.site)},
                          {"stack", json_list(group.stack)},
                          {"blocks", std::move(blocks)}});
  }
  return dump(Json{{"schema", 1}, {"groups", std::move(groups)}}, -1);
}

}  // namespace memscope
