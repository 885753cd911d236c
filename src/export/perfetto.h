// One process's events as a trace for Perfetto's UI: curves, steps, phases, marks, the largest
// blocks.
//
//   auto file = PerfettoFile::begin(draft.fd(), path);
//   input.visit([&](auto& source) { write_perfetto(source, process, request, file.value()); });
//
//   allocated, reserved      a counter for each layer on each device
//   rss, device.used, ...    a counter each, as it was sampled
//   steps, phases, marks     slices, a track each; failed allocations are instants
//   blocks                   the largest ones as async slices, named by their line, with their
//                            bytes, address and function as arguments
//
// Promises
//  * Times are relative to `origin`, the same for all processes of a file.
//  * A curve has at most kBuckets equal pieces of time, each with its peak and its last value; the
//    kSlices first steps, phases and marks and the kBlocks largest blocks are there: so the file
//    is bounded, whatever the run. PerfettoReport counts what was left out.
//  * Memory is bounded by the live blocks.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/site.h"
#include "export/dump_blocks.h"
#include "export/perfetto_file.h"
#include "replay/event_source.h"
#include "replay/steps.h"

namespace memscope {

struct PerfettoRequest {
  std::optional<Device> device;  // only this one
  uint64_t origin = 0;           // ns since the epoch
  int64_t pid = 0;
  std::string name;                             // of the process
  std::function<void(uint64_t done)> progress;  // events read; now and then; may be empty
};

struct PerfettoReport {
  uint64_t events = 0, blocks = 0;  // that were read
  uint64_t blocks_left_out = 0, slices_left_out = 0, counters_left_out = 0;
};

// A curve in bounded pieces: of each its peak and its last value.
class PerfettoCurve {
 public:
  static constexpr uint32_t kBuckets = 4000;
  // `time` ascending, ns since the origin.
  void set(uint64_t time, int64_t value, uint64_t bucket_ns);
  // visit(time, value) for the points of a piece that is over; of all at the end.
  template <typename Visit>
  void drain(uint64_t time, uint64_t bucket_ns, Visit&& visit) {
    if (!open_ || time / bucket_ns == bucket_) return;
    visit(peak_time_, peak_);
    if (last_time_ != peak_time_) visit(last_time_, last_);
    open_ = false;
  }

 private:
  bool open_ = false;
  uint64_t bucket_ = 0, peak_time_ = 0, last_time_ = 0;
  int64_t peak_ = 0, last_ = 0;
};

class PerfettoProcess {
 public:
  static constexpr size_t kSlices = 20'000, kBlocks = 2'000, kCounters = 256;

  // `steps` and `range`: ns since the epoch.
  PerfettoProcess(PerfettoFile& file, const PerfettoRequest& request, StepPlan steps,
                  TimeRange range, std::function<uint64_t(uint64_t)> time_of);

  void feed(const Event& event);
  PerfettoReport finish(const StackTable& stacks, const StringTable& strings);

 private:
  enum Track : int { kSteps = 1, kPhases = 2, kMarks = 3 };

  struct Kept {
    uint64_t id = 0, addr = 0, begin = 0, end = 0, size = 0;
    uint32_t stack = 0;
    uint16_t where = 0;
    bool alive = false, before = false;
  };
  static bool is_larger(const Kept& a, const Kept& b) { return a.size > b.size; }
  struct Open {
    uint64_t begin = 0;
    std::string text, domain;
  };

  uint64_t since(uint64_t epoch_ns) const {
    return epoch_ns > request_.origin ? epoch_ns - request_.origin : 0;
  }
  bool wanted(Where where) const { return !request_.device || where.device == *request_.device; }
  void record(const Event& event);
  void mark(const Event& event);
  void count(const std::string& name, uint64_t time, int64_t value);
  void counter_event(const std::string& name, uint64_t time, int64_t value);
  void change(const BlockChange& change, const Event* event);
  void begin(const BlockChange& change, const Event* event);
  void slice(Track track, uint64_t from, uint64_t to, const std::string& name,
             nlohmann::ordered_json args);
  void keep(const BlockChange& change, uint32_t stack, bool alive);
  void end_phase(uint64_t time);
  void write_steps();
  void write_blocks(const StackTable& stacks, const StringTable& strings);

  PerfettoFile& file_;
  PerfettoRequest request_;
  StepPlan steps_;
  TimeRange range_;
  uint64_t bucket_ns_ = 1, first_ = 0;
  std::function<uint64_t(uint64_t)> time_of_;
  DumpBlocks blocks_;
  tsl::robin_map<uint64_t, uint32_t> stacks_;  // of live blocks, by their id
  struct Ended {
    uint64_t id = 0;
    uint32_t stack = 0;
  };
  static constexpr size_t kUndoDepth = 64;
  std::array<Ended, kUndoDepth> ended_{};  // the last ones: their free may be undone
  size_t ended_at_ = 0;
  std::map<std::string, PerfettoCurve> curves_;
  std::map<uint16_t, std::pair<std::string, std::string>> names_;  // of a place's curves
  std::vector<Kept> largest_;                                      // a heap, the smallest on top
  std::map<uint64_t, Open> open_marks_;
  std::optional<Open> phase_;
  std::array<size_t, 4> slices_{};
  PerfettoReport report_;
};

template <EventSource Source>
PerfettoReport write_perfetto(Source& source, const PerfettoRequest& request, PerfettoFile& file) {
  StepFinder finder;
  source.scan(StepFinder::kKinds, [&](const Event& event) { finder.add(event); });
  const TimeRange range = source.time_range();
  PerfettoProcess process(file, request, finder.plan(range), range,
                          [&](uint64_t ticks) { return source.time_of(ticks); });
  uint64_t done = 0;
  for_each_event(source, [&](const Event& event) {
    process.feed(event);
    constexpr uint64_t kOften = 1u << 16;
    if (++done % kOften == 0 && request.progress) request.progress(done);
  });
  return process.finish(source.stacks(), source.strings());
}

}  // namespace memscope
