// Runs written by hand for the tests of operators: allocations and launches, a microsecond apart.
#pragma once

#include "replay/event_source.h"
#include "trace/records.h"

namespace memscope {

class OperatorProgram {
 public:
  static constexpr Where kNpuPool{Layer::kPool, {Device::kNpu, 0}};

  VectorSource source;
  ThreadId thread{1};
  Where where = kNpuPool;  // of what follows

  void start(std::string_view name, uint64_t level = 0) { launch(name, 0, level); }
  void end(std::string_view name, uint64_t level = 0) { launch(name, 1, level); }
  void kernel(std::string_view name) { launch(name, 2, 1); }
  void alloc(uint64_t addr, uint64_t size, StackId stack = {}) {
    source.add({.kind = EventKind::kAlloc,
                .where = where,
                .thread = thread,
                .stack = stack,
                .time = tick(),
                .addr = addr,
                .size = size});
  }
  void free(uint64_t addr, uint64_t size = 0) {
    source.add({.kind = EventKind::kFree,
                .where = where,
                .thread = thread,
                .time = tick(),
                .addr = addr,
                .size = size});
  }
  void access(uint64_t addr) {
    source.add_record(tick(), AccessRecord{.addr = addr, .mode = 1}, where, thread);
  }
  void mark(std::string_view text) {
    source.add_record(tick(), MarkRecord{.text = text}, where, thread);
  }
  void step(uint64_t index) { source.add_record(tick(), StepRecord{.source = 1, .index = index}); }
  uint64_t now() const { return time_; }

 private:
  uint64_t tick() { return time_ += 1000; }
  void launch(std::string_view name, uint64_t action, uint64_t level) {
    source.add_record(tick(), LaunchRecord{.action = action, .level = level, .name = name}, where,
                      thread);
  }
  uint64_t time_ = 1'000'000;
};

}  // namespace memscope
