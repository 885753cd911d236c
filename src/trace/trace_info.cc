#include "trace/trace_info.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "trace/records.h"

namespace memscope {
namespace {

// The agent keeps 32 MiB of sources; a hostile trace may say anything.
constexpr size_t kMaxSourceBytes = 64u << 20;
constexpr size_t kMaxEntries = 10'000;
constexpr size_t kMaxText = 64 * 1024;

std::string cut(std::string_view text) {
  return std::string(text.substr(0, kMaxText));
}

void add_process(const ProcessRecord& record, TraceInfo& info) {
  if (info.process) return;
  ProcessInfo& process = info.process.emplace();
  process.pid = record.pid;
  process.parent_pid = record.parent_pid;
  process.parent_trace = cut(record.parent_trace);
  process.host = cut(record.host);
  process.argv0 = cut(record.argv0);
  process.command = cut(record.command);
  if (record.rank >= 0) process.rank = record.rank;
  process.agent = cut(record.agent);
  process.python = cut(record.python);
  process.start_ns = record.start_real_ns;
}

void add_source(const SourceRecord& record, TraceInfo& info) {
  size_t bytes = record.text.size();
  for (const auto& [path, source] : info.sources) bytes += source.text.size();
  if (bytes > kMaxSourceBytes || info.sources.size() >= kMaxEntries) return;
  TraceInfo::SourceText source{std::string(record.text), (record.flags & 1) != 0,
                               (record.flags & 2) != 0, (record.flags & 4) != 0};
  info.sources.emplace(cut(record.path), std::move(source));
}

// When the process with this pid on this host started, epoch ns; nullopt where there is none or it
// is a zombie. Fields of /proc/PID/stat: proc(5).
std::optional<uint64_t> start_of(uint64_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return std::nullopt;
  const size_t close = line.rfind(')');  // the name before it may hold anything
  if (close == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(close + 1));
  std::string state, field;
  fields >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int i = 4; i <= 22; ++i) fields >> field;
  std::ifstream system("/proc/stat");
  while (std::getline(system, line)) {
    if (!line.starts_with("btime ")) continue;
    const uint64_t boot_s = std::strtoull(line.c_str() + 6, nullptr, 10);
    const uint64_t ticks = std::strtoull(field.c_str(), nullptr, 10);
    const auto per_s = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
    return boot_s * 1'000'000'000 + ticks * (1'000'000'000 / per_s);
  }
  return std::nullopt;
}

bool same_host(const std::string& host) {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && host == name;
}

bool written_lately(const std::filesystem::path& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return false;
  constexpr int64_t kLatelyS = 60;
  return time(nullptr) - status.st_mtim.tv_sec < kLatelyS;
}

bool still_running(const TraceInfo& info) {
  if (same_host(info.process->host)) {
    const auto start = start_of(info.process->pid);
    if (!start) return false;
    if (info.process->start_ns == 0) return written_lately(info.log) || written_lately(info.slab);
    // btime is whole seconds, and moves with the real-time clock.
    constexpr uint64_t kToleranceNs = 5'000'000'000;
    const uint64_t a = *start, b = info.process->start_ns;
    return (a > b ? a - b : b - a) < kToleranceNs;
  }
  return written_lately(info.log) || written_lately(info.slab);
}

}  // namespace

void add_to_info(const Event& event, const ClockMap& clock, TraceInfo& info) {
  const auto words = event.words;
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kProcess:
      if (const auto record = decode_record<ProcessRecord>(words)) add_process(*record, info);
      break;
    case Kind::kWindow:
      if (info.windows.size() < kMaxEntries) info.windows.push_back({event.size, event.time});
      break;
    case Kind::kSeed:
      ++info.seeds;
      info.preexisting += event.birth == 0;
      break;
    case Kind::kGap:
      if (const auto gap = decode_record<GapRecord>(words); gap && info.gaps.size() < kMaxEntries) {
        info.gaps.push_back(
            {clock.real_ns(gap->from_ticks), clock.real_ns(gap->to_ticks), cut(gap->reason)});
      }
      break;
    case Kind::kDrop:
      if (const auto drop = decode_record<DropRecord>(words)) {
        TraceInfo::Drop& sum = info.dropped[static_cast<uint8_t>(drop->kind)];
        sum.count += drop->count;
        sum.bytes += drop->bytes;
      }
      break;
    case Kind::kNotice:
      if (const auto notice = decode_record<NoticeRecord>(words);
          notice && info.notices.size() < kMaxEntries) {
        info.notices.push_back({cut(notice->what), cut(notice->why)});
      }
      break;
    case Kind::kConfig:
      if (const auto config = decode_record<ConfigRecord>(words);
          config && info.configs.size() < kMaxEntries) {
        info.configs[cut(config->key)] = cut(config->value);
      }
      break;
    case Kind::kSource:
      if (const auto source = decode_record<SourceRecord>(words)) add_source(*source, info);
      break;
    case Kind::kChild:
      if (const auto child = decode_record<ChildRecord>(words);
          child && info.children.size() < kMaxEntries) {
        info.children.push_back({child->pid, cut(child->how), cut(child->traced)});
      }
      break;
    case Kind::kFolded:
      if (const auto folded = decode_record<FoldedRecord>(words);
          folded && info.folded.folds == 0) {
        info.folded = {
            .from_ns = clock.real_ns(folded->from_ticks),
            .to_ns = event.time,
            .steps = folded->source <= 1 ? 0 : folded->steps,  // windows of time are none
            .events = folded->events,
            .folds = folded->folds,
            .log_bytes = folded->log_bytes};
        info.preexisting += folded->preexisting;
      }
      break;
    default:
      break;
  }
}

// The first thing that ended the last recording: an exit after a stop is still "stop".
std::string ended_of(const TraceInfo& info) {
  std::string ended;
  for (const TraceInfo::Window& window : info.windows) {
    const auto action = static_cast<WindowAction>(window.action);
    if (action == WindowAction::kStart) ended.clear();
    if (!ended.empty()) continue;
    if (action == WindowAction::kStop || action == WindowAction::kShutdown) ended = "stop";
    if (action == WindowAction::kExit) ended = "exit";
  }
  if (!ended.empty()) return ended;
  if (info.sealed) return "killed";
  if (!info.process) return "unknown";
  return still_running(info) ? "running" : "killed";
}

}  // namespace memscope
