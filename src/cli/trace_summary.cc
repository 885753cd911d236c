#include "cli/trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/pool_verify.h"
#include "import/open_input.h"
#include "trace/reader.h"
#include "trace/records.h"
#include "trace/run_layout.h"
#include "trace/untraced.h"

namespace memscope::cli {
namespace {

using Json = nlohmann::ordered_json;

// Definitions and the agent's own book-keeping say nothing about the program.
bool is_of_the_program(uint8_t kind) {
  return (kind >= 1 && kind <= 4) || (kind >= 32 && kind < static_cast<uint8_t>(Kind::kFold)) ||
         kind == static_cast<uint8_t>(Kind::kSeed);
}

TraceSummary::File file_at(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const auto bytes = std::filesystem::file_size(path, error);
  return {path.string(), error ? 0 : bytes};
}

Json json_of(const TraceSummary::File& file) {
  if (file.path.empty()) return nullptr;
  return Json{{"path", file.path}, {"bytes", file.bytes}};
}

Json json_of(const ProcessInfo& p) {
  return Json{{"host", p.host},
              {"rank", p.rank ? Json(*p.rank) : Json(nullptr)},
              {"pid", p.pid},
              {"parent_pid", p.parent_pid},
              {"parent_trace", p.parent_trace},
              {"argv0", p.argv0},
              {"command", p.command},
              {"agent", p.agent},
              {"python", p.python},
              {"start_ns", p.start_ns}};
}

Json json_of(const TraceSummary& s) {
  Json dropped = Json::object();
  for (const auto& [kind, drop] : s.info.dropped) {
    dropped[record_name(kind)] = Json{{"events", drop.count}, {"bytes", drop.bytes}};
  }
  Json gaps = Json::array(), notices = Json::array(), children = Json::array(),
       windows = Json::array();
  for (const auto& gap : s.info.gaps) {
    gaps.push_back(Json{{"from_ns", gap.from_ns}, {"to_ns", gap.to_ns}, {"reason", gap.reason}});
  }
  for (const auto& notice : s.info.notices) {
    notices.push_back(Json{{"what", notice.what}, {"why", notice.why}});
  }
  for (const auto& child : s.info.children) {
    children.push_back(Json{{"pid", child.pid}, {"how", child.how}, {"traced", child.traced}});
  }
  for (const auto& window : s.info.windows) {
    windows.push_back(Json{{"action", window.action}, {"time_ns", window.time}});
  }
  Json folded = nullptr;
  if (const TraceInfo::Folded& past = s.info.folded; past.folds != 0) {
    folded = Json{{"from_ns", past.from_ns},
                  {"to_ns", past.to_ns},
                  {"steps", past.steps},
                  {"events", past.events},
                  {"folds", past.folds}};
  }
  Json rows = nullptr;
  if (s.rows) {
    rows = Json{{"used", s.rows->used}, {"unused", s.rows->unused}, {"bad", s.rows->bad}};
  }
  Json pools = Json::array();
  for (const TraceSummary::Pool& pool : s.pools) {
    pools.push_back(Json{{"device", pool.device},
                         {"segments", pool.segments},
                         {"blocks", pool.blocks},
                         {"reserved", pool.reserved},
                         {"allocated", pool.allocated},
                         {"active", pool.active},
                         {"requested", pool.requested},
                         {"workspace", pool.workspace},
                         {"entries", pool.entries},
                         {"older", pool.older},
                         {"model", pool.model.empty() ? Json(nullptr) : Json(pool.model)}});
  }
  return Json{{"path", s.path},
              {"kind", s.kind},
              {"process", s.info.process ? json_of(*s.info.process) : Json(nullptr)},
              {"ended", s.info.ended},
              {"complete", s.complete()},
              {"format", s.kind == "trace"
                             ? Json(fmt::format("{}.{}", s.info.format_major, s.info.format_minor))
                             : Json(nullptr)},
              {"trace", json_of(s.trace)},
              {"slab", json_of(s.slab)},
              {"rows", std::move(rows)},
              {"pools", std::move(pools)},
              {"first_ns", s.first_ns},
              {"last_ns", s.last_ns},
              {"events", Json(s.events)},
              {"folded", std::move(folded)},
              {"preexisting", s.info.preexisting},
              {"dropped", std::move(dropped)},
              {"gaps", std::move(gaps)},
              {"windows", std::move(windows)},
              {"settings", Json(s.info.configs)},
              {"notices", std::move(notices)},
              {"children", std::move(children)},
              {"damage", Json(s.damage)}};
}

}  // namespace

std::string record_name(uint8_t kind) {
  std::string name = fmt::format("kind {}", kind);
  visit_record_kinds([&]<typename Record>(std::string_view record) {
    if (static_cast<uint8_t>(Record::kKind) != kind) return;
    name = record;
    name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  });
  return name;
}

namespace {

// "<host>-<rank>-<pid>[.n]" gives the pid; 0 for another name.
int64_t pid_of_directory(const std::filesystem::path& process) {
  const std::string name = process.filename().string();
  const size_t dash = name.rfind('-');
  return dash == std::string::npos ? 0 : std::strtoll(name.c_str() + dash + 1, nullptr, 10);
}

// What the run could not trace, as children of the process that started them or became them; where
// that one has no trace either (a shell), of the run's first.
void add_untraced_children(TraceInfo& info) {
  const std::filesystem::path process = std::filesystem::path(info.log).parent_path();
  const auto untraced = read_untraced(process.parent_path());
  if (untraced.empty()) return;
  const auto processes = find_processes(process.parent_path());
  if (!processes) return;
  const auto has_trace = [&](int64_t pid) {
    return std::any_of(processes.value().begin(), processes.value().end(),
                       [pid](const auto& one) { return pid_of_directory(one) == pid; });
  };
  std::error_code error;
  const bool first = std::filesystem::equivalent(processes.value().front(), process, error);
  const int64_t own = pid_of_directory(process);
  for (const Untraced& one : untraced) {
    const int64_t starter = has_trace(one.parent) ? one.parent : has_trace(one.pid) ? one.pid : 0;
    if (starter != own && !(starter == 0 && first)) continue;
    info.children.push_back({.pid = static_cast<uint64_t>(one.pid),
                             .how = fmt::format("{}, which {}", one.program, one.why),
                             .traced = ""});
  }
}

Result<TraceSummary> summarize_trace(const std::string& path) {
  auto opened = TraceReader::open(path);
  if (!opened) return opened.error();
  TraceReader& reader = opened.value();
  TraceSummary summary;
  summary.path = path;
  std::array<Event, 1024> batch;
  for (size_t got = reader.next_batch(batch); got != 0; got = reader.next_batch(batch)) {
    if (summary.first_ns == 0) summary.first_ns = batch[0].time;
    for (size_t i = 0; i < got; ++i) summary.last_ns = std::max(summary.last_ns, batch[i].time);
  }
  summary.first_ns = std::min(summary.first_ns, summary.last_ns);
  for (size_t kind = 0; kind < reader.counts().size(); ++kind) {
    const auto number = static_cast<uint8_t>(kind);
    if (reader.counts()[kind] != 0 && is_of_the_program(number)) {
      summary.events[record_name(number)] = reader.counts()[kind];
    }
  }
  summary.info = reader.info();
  summary.info.sources.clear();  // large, and nobody asks
  add_untraced_children(summary.info);
  summary.trace = file_at(summary.info.log);
  if (!summary.trace.path.empty()) summary.trace.bytes = reader.extent().log_bytes;
  summary.slab = file_at(summary.info.slab);
  summary.damage = reader.damage();
  return summary;
}

// Whether what a pool did follows from the rules of its allocator.
std::string model_text(const SnapshotFile& file, const PoolHistory& device) {
  if (device.entries.empty()) return {};
  const PoolInput input{device, file.tables, file.stacks, file.strings};
  const PoolSettings settings = settings_of(device, file.rounding, file.settings);
  // To try all settings takes a few dozen rounds.
  constexpr size_t kManyEntries = 2'000'000;
  const PoolCheck check = device.entries.size() < kManyEntries ? calibrate_pool(input, settings)
                                                               : verify_pool(input, settings);
  if (!check.refused.empty()) return "none: " + check.refused;
  std::string text = fmt::format("{} of {} segment events and {} of {} addresses reproduced ({})",
                                 check.same_events, check.segment_events, check.same_addrs,
                                 check.allocs, check.settings.text());
  if (!check.exact()) text = "does not fit: " + text + "; " + check.first_difference;
  return text;
}

void add_pools(const SnapshotFile& file, TraceSummary& summary) {
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const PoolHistory& device = file.devices[i];
    TraceSummary::Pool pool{.device = device_name(device.device),
                            .segments = device.segments.size(),
                            .entries = device.entries.size()};
    for (const PoolSegment& segment : device.segments) {
      if (segment.workspace) {
        pool.workspace += segment.size;
        continue;
      }
      pool.reserved += segment.size;
      pool.allocated += segment.allocated;
      pool.active += segment.active;
      pool.requested += segment.requested;
    }
    for (const PoolBlock& block : device.blocks) {
      pool.blocks += block.state == PoolBlockState::kAllocated && !block.workspace ? 1 : 0;
    }
    if (!device.entries.empty()) pool.older = file.starts[i].blocks.size();
    if (device.device.type != Device::kCpu) pool.model = model_text(file, device);
    summary.pools.push_back(std::move(pool));
  }
  summary.whole = file.has_traces && file.older == 0;
}

// A process of a csv or db, or a snapshot.
TraceSummary summarize_import(Input& input) {
  TraceSummary summary;
  const InputInfo info = input.info();
  summary.path = info.path;
  summary.kind = input_kind_name(info.kind);
  summary.trace = file_at(info.path);
  summary.info.process = info.process;
  summary.info.ended = info.ended;
  summary.info.configs = info.settings;
  if (const ImportedFile* file = input.imported_file()) {
    summary.rows = TraceSummary::Rows{file->rows - file->unused, file->unused, file->bad_rows};
  }
  if (const SnapshotFile* file = input.snapshot()) add_pools(*file, summary);
  std::array<uint64_t, 256> records{};
  uint64_t allocs = 0, frees = 0;
  input.visit([&](auto& source) {
    std::vector<Event> batch(1024);
    while (const size_t got = source.next_batch(batch)) {
      if (summary.first_ns == 0) summary.first_ns = batch[0].time;
      summary.last_ns = batch[got - 1].time;
      for (const Event& event : std::span(batch).first(got)) {
        allocs += event.kind == EventKind::kAlloc ? 1 : 0;
        frees += event.kind == EventKind::kFree ? 1 : 0;
        summary.info.preexisting += event.kind == EventKind::kSeed ? 1 : 0;
        if (event.kind == EventKind::kWindow) {
          summary.info.windows.push_back({event.size, event.time});
        }
        if (event.kind != EventKind::kRecord) continue;
        ++records[event.record_kind];
        if (const auto pause = decode_record<GapRecord>(event.words);
            pause && event.record_kind == static_cast<uint8_t>(Kind::kGap)) {
          summary.info.windows.push_back({2, pause->from_ticks});
          summary.info.windows.push_back({1, pause->to_ticks});
        }
        if (const auto drop = decode_record<DropRecord>(event.words);
            drop && event.record_kind == static_cast<uint8_t>(Kind::kDrop)) {
          summary.info.dropped[static_cast<uint8_t>(drop->kind)].count += drop->count;
        }
      }
    }
  });
  if (allocs != 0) summary.events["alloc"] = allocs;
  if (frees != 0) summary.events["free"] = frees;
  if (summary.info.preexisting != 0) summary.events["seed"] = summary.info.preexisting;
  for (size_t kind = 0; kind < records.size(); ++kind) {
    const auto number = static_cast<uint8_t>(kind);
    if (records[kind] != 0 && is_of_the_program(number)) {
      summary.events[record_name(number)] = records[kind];
    }
  }
  summary.damage = input.damage();
  return summary;
}

}  // namespace

Result<std::vector<TraceSummary>> summarize_input(const std::string& path) {
  auto opened = open_input(path);
  if (!opened) return opened.error();
  std::vector<TraceSummary> summaries;
  for (Input& input : opened.value()) {
    if (input.trace() == nullptr) {
      summaries.push_back(summarize_import(input));
      continue;
    }
    auto summary = summarize_trace(path);
    if (!summary) return summary.error();
    summaries.push_back(std::move(summary).value());
  }
  return summaries;
}

std::string summaries_json(const std::vector<TraceSummary>& summaries) {
  Json inputs = Json::array();
  for (const TraceSummary& summary : summaries) inputs.push_back(json_of(summary));
  const Json json{
      {"schema", 1}, {"tool", "msmemscope " MEMSCOPE_VERSION}, {"inputs", std::move(inputs)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace memscope::cli
