#include "trace/synth.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/where.h"
#include "trace/synth_process.h"

namespace memscope {
namespace {

nlohmann::json site_json(const SynthLeakAnswer& leak, uint32_t line, const std::string& text) {
  return {{"file", leak.file}, {"line", line}, {"function", leak.leak.name}, {"text", text}};
}

nlohmann::json process_json(const SynthProcessAnswer& process) {
  nlohmann::json leaks = nlohmann::json::array(), layers = nlohmann::json::array();
  for (const SynthLeakAnswer& leak : process.leaks) {
    leaks.push_back({{"site", site_json(leak, leak.line, leak.text)},
                     {"kept_at", site_json(leak, leak.kept_line, leak.kept_text)},
                     {"device", leak.leak.device},
                     {"bytes_per_step", leak.leak.bytes_per_step},
                     {"blocks_per_step", leak.leak.blocks_per_step},
                     {"first_step", leak.leak.first_step},
                     {"bytes_total", leak.bytes_total},
                     {"blocks_total", leak.blocks_total}});
  }
  for (const SynthLayerAnswer& layer : process.layers) {
    nlohmann::json reserved;
    if (layer.reserved_peak) {
      reserved = {{"peak", *layer.reserved_peak}, {"end", *layer.reserved_end}};
    }
    layers.push_back(
        {{"device", layer.device},
         {"layer", layer.layer},
         {"allocated", {{"start", layer.start}, {"peak", layer.peak}, {"end", layer.end}}},
         {"reserved", reserved},
         {"bytes_per_step", layer.bytes_per_step}});
  }
  return {{"directory", process.directory.filename().string()},
          {"pid", process.pid},
          {"rank", process.rank < 0 ? nlohmann::json() : nlohmann::json(process.rank)},
          {"ended", process.ended},
          {"steps", process.steps},
          {"events", {{"alloc", process.allocs}, {"free", process.frees}, {"seed", process.seeds}}},
          {"preexisting", process.preexisting},
          {"dropped", process.dropped},
          {"live_blocks", process.live_blocks},
          {"layers", layers},
          {"leaks", leaks}};
}

Result<void> check(const SynthOptions& options) {
  if (options.devices.empty()) return Error{"devices: at least one is needed, e.g. cpu"};
  for (const std::string& name : options.devices) {
    if (!device_from_name(name)) {
      return Error{"devices: \"" + name + "\" is none; give cpu, cuda:0, npu:3, ..."};
    }
  }
  const std::string& source = options.step_source;
  if (source != "api" && source != "optimizer" && source != "none") {
    return Error{"step source: \"" + source + "\" is none of api, optimizer, none"};
  }
  if (options.depth < 3 || options.depth > 1000) {
    return Error{"depth: " + std::to_string(options.depth) + " is not within 3..1000"};
  }
  return {};
}

}  // namespace

std::string answers_json(const SynthAnswers& answers, const SynthOptions& options) {
  nlohmann::json processes = nlohmann::json::array();
  bool leaks = false;
  for (const SynthProcessAnswer& process : answers.processes) {
    processes.push_back(process_json(process));
    leaks = leaks || !process.leaks.empty();
  }
  const nlohmann::json json{{"schema", 1},
                            {"seed", options.seed},
                            {"cause", leaks ? "leak" : "none"},
                            {"devices", options.devices},
                            {"processes", processes}};
  return json.dump(2) + "\n";
}

Result<SynthAnswers> synthesize(const SynthOptions& options) {
  if (auto checked = check(options); !checked) return checked.error();
  const std::string id =
      options.run_id.empty() ? "synthetic-" + std::to_string(options.seed) : options.run_id;
  SynthAnswers answers;
  answers.run = options.output / ("run-" + id);
  for (uint32_t i = 0; i < options.processes; ++i) {
    SynthProcess process(options, answers.run, i);
    auto answer = process.play();
    if (!answer) return answer.error();
    answers.processes.push_back(std::move(answer).value());
  }
  std::ofstream file(answers.run / "answers.json");
  file << answers_json(answers, options);
  if (!file.flush()) return Error{"cannot write " + (answers.run / "answers.json").string()};
  return answers;
}

}  // namespace memscope
