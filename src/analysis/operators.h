// Operators and kernels of a run: which one a thread is in, and what each did to memory.
//
//   thread 1   ATEN_START mm   MALLOC 512   MALLOC 1536   FREE 1536   ATEN_END mm
//                                                                     delta of mm: +512
//
// An operator's delta is what its thread allocated minus what it freed, on the operator's device,
// between its start and its end, operators inside it included; only layers that hand memory to the
// program count (pool, workspace, tensor), not the driver's, which contain them. A kernel has a
// launch only: its delta is that of its thread since the launch before it, because what a kernel
// writes is allocated before it is launched.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/stacks.h"
#include "replay/block_tracker.h"
#include "replay/event_source.h"
#include "tsl/robin_map.h"

namespace memscope {

enum class OperatorLevel : uint8_t { kOperator = 0, kKernel = 1 };

// The operators open on each thread, innermost last. Ends without a beginning and beginnings
// without an end (a recording that began or ended inside) do no harm.
class OpenOperators {
 public:
  struct Open {
    StringId name;
    Device device;
    int64_t net_at_start = 0;
  };
  void begin(ThreadId thread, const Open& open);
  std::optional<Open> end(ThreadId thread, StringId name);
  // The innermost one of a thread; null where it is in none.
  const Open* innermost(ThreadId thread) const;
  bool any(ThreadId thread) const { return innermost(thread) != nullptr; }

 private:
  static constexpr size_t kMaxDepth = 1024;
  tsl::robin_map<ThreadId, std::vector<Open>, std::hash<ThreadId>> threads_;
};

struct OperatorValue {
  StringId name;
  int64_t bytes = 0;
};

// One run's operators in the order of their ends (kernels: launches), by device.
struct OperatorRun {
  std::map<Device, std::vector<OperatorValue>> devices;
  // Net change of each device's memory outside any operator of the thread that made it.
  std::map<Device, int64_t> outside;

  // Another process's after this one's, where they share a device.
  void add(OperatorRun&& other);
};

class OperatorCollector {
 public:
  // What `bytes` of an operator is.
  enum class Measure : uint8_t {
    kDelta,    // as above
    kNextRow,  // msMemScope 26.0: the size of the next pool event on the device after it, an
               // allocation's or a free's alike, 0 where none follows
  };
  // `names` numbers the operators' names; it must outlive the collector.
  OperatorCollector(OperatorLevel level, Measure measure, StringTable& names)
      : level_(level), measure_(measure), names_(names) {}

  // Every event of a source, in order.
  void feed(const Event& event);
  OperatorRun finish() { return std::move(run_); }

  // As a BlockSink. What was there already is nobody's delta.
  bool begins(BlockLife& block, const Event& event);
  void ends(const BlockLife& block, const BlockEnd& end);
  void returns(BlockLife& block, const Event& event);
  void unknown_free(const Event& event);

 private:
  void launch(const Event& event);
  void changed(ThreadId thread, Device device, int64_t bytes);
  void next_row(Where where, uint64_t size);
  int64_t& net(ThreadId thread, Device device);
  void end(ThreadId thread, StringId name, Device device);

  OperatorLevel level_;
  Measure measure_;
  StringTable& names_;
  OpenOperators open_;
  OperatorRun run_;
  BlockTracker<BlockLife> blocks_;  // of the layers that hand memory to the program
  std::map<std::pair<ThreadId, Device>, int64_t> net_;
  std::map<std::pair<ThreadId, Device>, int64_t> net_at_launch_;
  std::map<Device, size_t> without_row_;  // the first of a device's values with no row after it
};

// Reads the whole source, which must stand at its beginning.
template <EventSource Source>
OperatorRun collect_operators(Source& source, OperatorLevel level,
                              OperatorCollector::Measure measure, StringTable& names) {
  OperatorCollector collector(level, measure, names);
  for_each_event(source, [&](const Event& event) { collector.feed(event); });
  return collector.finish();
}

}  // namespace memscope
