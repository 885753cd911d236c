#include "export/dump.h"

namespace memscope {

void DumpSurvey::add(const Event& event) {
  ++events;
  if (first_time == 0) first_time = event.time;
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kSeed:
    case EventKind::kFree:
      // A free alone, as a trace has it, tells no size and gives no row.
      if (event.size != 0) has_device[DumpRows::device_bits(event.where.device)] = true;
      break;
    case EventKind::kRecord:
      if (event.record_kind == static_cast<uint8_t>(Kind::kOwner)) has_owners = true;
      break;
    case EventKind::kWindow:
      break;
  }
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
    return Error{request.name + ": has no block of " + device_name(*request.device) +
                 (names.empty() ? "" : ", only of " + names)};
  }
  if (devices.size() > 1 && !files.is_directory()) {
    return Error{request.name + ": has " + std::to_string(devices.size()) + " devices (" + names +
                 ") and a file holds one; choose it with --device, or give a directory: -o DIR/"};
  }
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
  report.calls_left_out = has_calls ? 0 : rows.calls();
  return report;
}

}  // namespace memscope
