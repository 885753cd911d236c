#include "replay/side_records.h"

#include "trace/record_table.h"
#include "trace/records.h"

namespace memscope {

void SideRecords::add(const Event& event, const TimeOf& time_of) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kProcess:
      if (const auto record = decode_record<ProcessRecord>(event.words); record && !process) {
        process = ProcessSeen{std::string(record->host), std::string(record->argv0),
                              std::string(record->agent), static_cast<int64_t>(record->pid),
                              record->rank};
      }
      break;
    case Kind::kConfig:
      if (const auto record = decode_record<ConfigRecord>(event.words)) {
        if (config.size() >= kMaxTexts) {
          ++left_out;
        } else {
          config.emplace(record->key, record->value);
        }
      }
      break;
    case Kind::kSource:
      if (const auto record = decode_record<SourceRecord>(event.words)) {
        const size_t bytes = record->path.size() + record->text.size();
        if (sources.size() >= kMaxTexts || bytes > kMaxSourceBytes - source_bytes) {
          ++left_out;
        } else if (sources
                       .try_emplace(std::string(record->path),
                                    SourceText{std::string(record->text), record->flags})
                       .second) {
          source_bytes += bytes;
        }
      }
      break;
    case Kind::kModule:
      if (const auto record = decode_record<ModuleRecord>(event.words);
          record && record->action == "load" && record->build_id.empty()) {
        if (unnamed_modules.size() >= kMaxTexts) {
          ++left_out;
        } else if (const auto [at, fresh] =
                       unnamed_modules.try_emplace(std::string(record->path), record->mtime_ns);
                   !fresh && at->second != record->mtime_ns) {
          at->second = 0;
        }
      }
      break;
    case Kind::kGap:
      if (const auto record = decode_record<GapRecord>(event.words)) {
        if (gaps.size() >= kMaxTexts) {
          ++left_out;
        } else {
          gaps.push_back({time_of(record->from_ticks), time_of(record->to_ticks),
                          std::string(record->reason), record->healed != 0});
        }
      }
      break;
    case Kind::kDrop:
      if (const auto record = decode_record<DropRecord>(event.words)) {
        dropped += record->count;
        const auto kind = static_cast<Kind>(record->kind);
        if (kind == Kind::kFree || kind == Kind::kPoolFree) dropped_frees += record->count;
      }
      break;
    default:
      break;
  }
}

void SideRecords::window(const Event& event, WindowChange change) {
  const auto action = static_cast<WindowAction>(event.size);
  if (action == WindowAction::kStart) {
    if (change.paused_at != 0) {
      gaps.push_back({change.paused_at, event.time, "recording was stopped", true});
    }
    ended = "unknown";
  } else if (change.was_recording || ended == "unknown") {
    ended = action == WindowAction::kExit ? "exit" : "stop";
  }
}

}  // namespace memscope
