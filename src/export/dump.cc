#include "export/dump.h"

#include "trace/records.h"

namespace memscope {

void DumpSurvey::add(const Event& event) {
  ++events;
  if (first_time == 0) first_time = event.time;
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kSeed:
    case EventKind::kFree:
      // A free alone, as a trace has it, tells no size and gives no row.
      if (event.size == 0) break;
      has_rows = true;
      has_device[DumpRows::device_bits(event.where.device)] = true;
      break;
    case EventKind::kRecord:
      add_record(event);
      break;
    case EventKind::kWindow:
      has_rows = true;
      break;
  }
}

void DumpSurvey::add_record(const Event& event) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kOwner:
      has_owners = true;
      break;
    case Kind::kDrop:
      add_drop(event);
      break;
    case Kind::kGap:
      add_gap(event);
      break;
    case Kind::kStep:
    case Kind::kPythonTrace:
      has_rows = true;
      break;
    case Kind::kMark:
    case Kind::kLaunch:
    case Kind::kAccess:
    case Kind::kPoolSnapshot:
    case Kind::kOom:
    case Kind::kOtherRow:
      has_rows = true;
      has_accesses = has_accesses || event.record_kind == static_cast<uint8_t>(Kind::kAccess);
      // Where{}: not told, the row stands in every file.
      if (event.where != Where{}) has_device[DumpRows::device_bits(event.where.device)] = true;
      break;
    default:
      break;
  }
}

void DumpSurvey::add_drop(const Event& event) {
  const auto record = decode_record<DropRecord>(event.words);
  if (!record) return;
  dropped += record->count;
  const auto kind = static_cast<Kind>(record->kind);
  if (kind == Kind::kFree || kind == Kind::kPoolFree) dropped_frees += record->count;
}

void DumpSurvey::add_gap(const Event& event) {
  const auto record = decode_record<GapRecord>(event.words);
  if (record && record->healed == 0) ++gaps;
}

std::vector<Device> DumpSurvey::devices() const {
  std::vector<Device> devices;
  for (size_t bits = 0; bits < has_device.size(); ++bits) {
    if (has_device[bits]) devices.push_back(Where::unpack(static_cast<uint16_t>(bits)).device);
  }
  return devices;
}

Result<std::vector<Device>> choose_devices(const DumpSurvey& survey, const DumpRequest& request,
                                           const DumpFiles& files) {
  std::vector<Device> devices = survey.devices();
  std::string names;
  for (const Device& device : devices) names += (names.empty() ? "" : ", ") + device_name(device);
  if (request.device) {
    for (const Device& device : devices) {
      if (device == *request.device) return std::vector<Device>{device};
    }
    if (request.one_of_many) return std::vector<Device>{};
    return Error{request.name + ": has nothing of " + device_name(*request.device) +
                 (names.empty() ? "" : ", only of " + names)};
  }
  if (devices.size() > 1 && !files.is_directory()) {
    return Error{request.name + ": has " + std::to_string(devices.size()) + " devices (" + names +
                 ") and a file holds one; choose it with --device, or give a directory: -o DIR/"};
  }
  // Rows of no device are the process's; in a tree the host's file takes them.
  if (devices.empty() && survey.has_rows && files.is_directory()) devices.push_back(Where{}.device);
  return devices;
}

Result<void> check_steps(const StepPlan& plan, const DumpRequest& request) {
  const uint32_t first = request.settings.first_step;
  if (first == 0 || first <= plan.count()) return {};
  return Error{request.name + ": has " + std::to_string(plan.count()) + " steps (by " +
               std::string(steps_from_name(plan.from)) + "), so --steps cannot begin at " +
               std::to_string(first)};
}

Result<DumpReport> finish_dump(std::vector<DumpFile>& files, DumpRows& rows,
                               const DumpSurvey& survey, bool has_calls) {
  DumpReport report;
  for (DumpFile& file : files) {
    auto done = file.writer->finish();
    if (!done) return done.error();
    report.files.push_back({file.path.string(), rows.rows_of(*file.writer)});
  }
  report.events = survey.events;
  report.frees_left_out = rows.frees_left_out();
  report.gaps_left_out = survey.gaps;
  report.calls_left_out = has_calls ? 0 : rows.calls();
  return report;
}

}  // namespace memscope
