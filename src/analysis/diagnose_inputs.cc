#include "analysis/diagnose_inputs.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>

#include "replay/replay.h"

namespace memscope {

InputSummary input_summary(const InputInfo& info) {
  InputSummary summary{.path = info.path,
                       .kind = std::string(input_kind_name(info.kind)),
                       .ended = info.ended,
                       .complete = info.complete,
                       .dropped = static_cast<int64_t>(info.dropped)};
  if (info.process) {
    summary.process = InputSummary::Process{.host = info.process->host,
                                            .rank = info.process->rank,
                                            .pid = static_cast<int64_t>(info.process->pid),
                                            .argv0 = info.process->argv0,
                                            .command = info.process->command};
    if (!info.process->agent.empty()) summary.agent = info.process->agent;
  }
  return summary;
}

Result<InputsDiagnosis> diagnose_inputs(std::span<const std::filesystem::path> paths,
                                        const DiagnoseOptions& options) {
  std::deque<Input> opened;  // their tables are used until the end
  std::vector<DiagnoseInput> inputs;
  InputsDiagnosis result;
  for (const std::filesystem::path& path : paths) {
    Result<std::vector<Input>> found = open_input(path);
    if (!found) {
      result.damage.push_back(found.error().message);
      result.lost = true;
      continue;
    }
    for (Input& one : found.value()) {
      Input& input = opened.emplace_back(std::move(one));
      ReplayResult replayed =
          input.visit([&](auto& source) { return replay(source, replay_options(options)); });
      if (const uint32_t folded = replayed.folded.steps;
          replayed.plan.from != StepsFrom::kTime &&
          ((options.first_step > 1 && options.first_step <= folded) ||
           (options.last_step != 0 && options.last_step <= folded))) {
        return Error{path.string() + ": its steps 1 to " + std::to_string(folded) +
                     " are folded (disk budget) and cannot be told apart any more; ask for steps "
                     "from " +
                     std::to_string(folded + 1) + " on"};
      }
      // Whose free was lost only looks alive.
      replayed.side.dropped_frees += input.lost_frees();
      inputs.push_back(
          {input_summary(input.info()), std::move(replayed), &input.stacks(), &input.strings()});
      result.lost = result.lost || input.lost();
      for (std::string& line : input.damage()) {
        // Inputs of one file have their damage in common.
        if (std::find(result.damage.begin(), result.damage.end(), line) == result.damage.end()) {
          result.damage.push_back(std::move(line));
        }
      }
    }
  }
  if (inputs.empty()) {
    return Error{result.damage.empty() ? "no input to analyze" : result.damage.front()};
  }
  static_cast<DiagnoseResult&>(result) = diagnose(inputs, options);
  return result;
}

}  // namespace memscope
