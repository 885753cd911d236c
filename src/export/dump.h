// One process's events as msMemScope's csv or db: what `convert` and the end of a run do.
//
//   DumpFiles files("out/", true, DumpFormat::kDb, false, {});
//   auto done = write_dump(input, process, request, files);
//
// `input.visit(f)` calls f with an EventSource at its first event, as often as asked (import/
// open_input.h). It is read twice, and once more where it has owners, or uses of blocks and its
// process asked which are held without need: which devices there are; what each block is for; what
// is inefficient; the rows. So memory is bounded by the live blocks, and no file is begun
// before it is known that it can be.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "export/dump_files.h"
#include "export/dump_inefficient.h"
#include "export/dump_owners.h"
#include "export/dump_rows.h"
#include "export/dump_settings.h"
#include "replay/event_source.h"

namespace memscope {

struct DumpRequest {
  DumpSettings settings;
  std::optional<Device> device;                                  // only this one
  bool one_of_many = false;                                      // another may have the device
  std::string name;                                              // of the input, for messages
  std::function<void(uint64_t done, uint64_t events)> progress;  // now and then; may be empty
};

struct DumpReport {
  struct File {
    std::string path;
    uint64_t rows = 0;
  };
  std::vector<File> files;
  uint64_t events = 0;
  uint64_t frees_left_out = 0;  // of addresses that no alloc or seed was seen for
  uint64_t gaps_left_out = 0;   // times in which events may be missing: a dump cannot say so
  uint64_t calls_left_out = 0;  // of the Python trace, for which a csv file has no place
};

// What is in the input.
struct DumpSurvey {
  uint64_t events = 0, first_time = 0;
  uint64_t dropped = 0, dropped_frees = 0;  // that found no slot
  uint64_t gaps = 0;                        // in which events may be missing
  bool has_owners = false, has_rows = false, has_accesses = false;
  std::array<bool, 1u << 12> has_device{};  // by the low bits of Where::packed

  void add(const Event& event);
  void add_record(const Event& event);
  void add_drop(const Event& event);
  void add_gap(const Event& event);
  std::vector<Device> devices() const;
};

// The devices to write, or why not.
Result<std::vector<Device>> choose_devices(const DumpSurvey& survey, const DumpRequest& request,
                                           const DumpFiles& files);
// Whether the steps asked for are there.
Result<void> check_steps(const StepPlan& plan, const DumpRequest& request);
// All files under their names.
Result<DumpReport> finish_dump(std::vector<DumpFile>& files, DumpRows& rows,
                               const DumpSurvey& survey, bool has_calls);

template <typename Input>
Result<DumpReport> write_dump(Input& input, DumpProcess process, const DumpRequest& request,
                              DumpFiles& target) {
  DumpSurvey survey;
  input.visit([&](auto& source) {
    for_each_event(source, [&](const Event& event) {
      survey.add(event);
      return true;
    });
  });
  auto devices = choose_devices(survey, request, target);
  if (!devices) return devices.error();
  input.visit([&](auto& source) {
    StepFinder finder;
    source.scan(StepFinder::kKinds, [&](const Event& event) { finder.add(event); });
    process.steps = finder.plan(finder.needs_range() ? source.time_range() : TimeRange{});
  });
  auto steps = check_steps(process.steps, request);
  if (!steps) return steps.error();
  if (!survey.has_rows || (request.one_of_many && devices.value().empty()))
    return DumpReport{.events = survey.events};  // no file

  auto files = target.open(process.pid, process.identity, survey.first_time, devices.value());
  if (!files) return files.error();
  std::array<bool, 1u << 12> chosen{};
  for (const Device& device : devices.value()) chosen[DumpRows::device_bits(device)] = true;
  DumpOwners owners;
  if (survey.has_owners) {
    input.visit([&](auto& source) {
      const DumpOwners::TimeOf time_of = [&](uint64_t ticks) { return source.time_of(ticks); };
      for_each_event(source, [&](const Event& event) {
        const bool block = event.kind < EventKind::kWindow;
        if (!block || chosen[DumpRows::device_bits(event.where.device)])
          owners.feed(event, time_of);
        return true;
      });
    });
  }
  DumpInefficient inefficient;
  if (request.settings.inefficient && survey.has_accesses) {
    input.visit([&](auto& source) {
      for_each_event(source, [&](const Event& event) {
        inefficient.feed(event);
        return true;
      });
    });
    inefficient.finish();
  }
  process.dropped = survey.dropped;
  process.dropped_frees = survey.dropped_frees;
  return input.visit([&](auto& source) {
    process.time_of = [&](uint64_t ticks) { return source.time_of(ticks); };
    process.stacks = &source.stacks();
    process.strings = &source.strings();
    DumpRows rows(process, request.settings, owners, inefficient);
    for (DumpFile& file : files.value()) {
      if (file.devices.empty()) rows.add_file(std::nullopt, *file.writer);
      for (const Device& device : file.devices) rows.add_file(device, *file.writer);
    }
    uint64_t done = 0;
    for_each_event(source, [&](const Event& event) {
      constexpr uint64_t kOften = 1u << 16;
      if (++done % kOften == 0 && request.progress) request.progress(done, survey.events);
      return rows.feed(event);
    });
    rows.finish();
    return finish_dump(files.value(), rows, survey, target.has_calls());
  });
}

}  // namespace memscope
