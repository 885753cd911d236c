#include "analysis/diagnose_traces.h"

#include <deque>

#include "replay/trace_events.h"
#include "trace/reader.h"

namespace memscope {
namespace {

InputSummary summary_of(const std::filesystem::path& path, const TraceInfo& info) {
  InputSummary summary{.path = path.string(), .kind = "trace", .ended = info.ended};
  if (info.process) {
    summary.process = InputSummary::Process{.host = info.process->host,
                                            .rank = info.process->rank,
                                            .pid = static_cast<int64_t>(info.process->pid),
                                            .argv0 = info.process->argv0,
                                            .command = info.process->command};
    if (!info.process->agent.empty()) summary.agent = info.process->agent;
  }
  summary.dropped = static_cast<int64_t>(info.dropped_events());
  summary.complete = summary.dropped == 0 && info.preexisting == 0 && info.gaps.empty();
  return summary;
}

}  // namespace

Result<TracesDiagnosis> diagnose_traces(std::span<const std::filesystem::path> paths,
                                        const DiagnoseOptions& options) {
  std::deque<TraceReader> readers;  // their tables are used until the end
  std::vector<DiagnoseInput> inputs;
  TracesDiagnosis result;
  for (const std::filesystem::path& path : paths) {
    Result<TraceReader> opened = TraceReader::open(path);
    if (!opened) {
      result.damage.push_back(opened.error().message);
      result.lost = true;
      continue;
    }
    TraceReader& reader = readers.emplace_back(std::move(opened).value());
    TraceEvents source(reader);
    ReplayResult replayed = replay(source, replay_options(options));
    // Whose free was in a hole only looks alive. About one record in three is a free.
    constexpr uint64_t kBytesAFree = 48;
    replayed.side.dropped_frees += reader.hole_bytes() / kBytesAFree;
    inputs.push_back({summary_of(path, reader.info()), std::move(replayed), &reader.stacks(),
                      &reader.strings()});
    if (reader.lost_bytes() != 0) {
      inputs.back().summary.complete = false;
      result.lost = true;
    }
    result.damage.insert(result.damage.end(), reader.damage().begin(), reader.damage().end());
  }
  if (inputs.empty()) {
    return Error{result.damage.empty() ? "no trace to analyze" : result.damage.front()};
  }
  static_cast<DiagnoseResult&>(result) = diagnose(inputs, options);
  return result;
}

}  // namespace memscope
