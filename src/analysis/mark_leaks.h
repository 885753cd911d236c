// Leaks between marks: what is allocated in one round of a program and not freed in the next.
//
//   mark A           mark B           mark C
//   ──┼────────────────┼────────────────┼──
//     │ alloc x        │                │        x: allocated from A to B, alive at C: leaked
//     │ alloc y        │   free y       │        y: freed before C
//
// A, B, C are three marks of one text in a row, as msMemScope's check_leaks takes them: the ones at
// `start_index`. With `all` every mark from there on is an A, and the end of the input stands for
// the marks that the last ones lack.
//
// Marks count for the device their row names; one without a device for all. Memory is bounded by
// the live blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "replay/block_tracker.h"
#include "replay/event_source.h"

namespace memscope {

struct MarkLeaksOptions {
  std::string mark;
  uint64_t start_index = 0;
  bool all = false;
};

struct MarkLeak {
  Where where;
  uint64_t addr = 0, size = 0, time = 0;  // of the allocation
};

// One A, B, C.
struct MarkWindow {
  static constexpr size_t kMaxLeaks = 100'000;  // listed; all are counted
  uint64_t index = 0;                           // of A
  bool at_end = false;                          // C, or B and C, is the end of the input
  std::vector<MarkLeak> leaks;                  // by time
  uint64_t bytes = 0, blocks = 0;
};

struct MarkedDevice {
  Device device;
  uint64_t marks = 0;
  std::vector<MarkWindow> windows;  // none where there are too few marks
};

class MarkLeaks {
 public:
  explicit MarkLeaks(MarkLeaksOptions options) : options_(std::move(options)) {}
  // Every event of a source, in order.
  void feed(const Event& event);
  // The devices with memory events or marks, ascending.
  std::vector<MarkedDevice> finish();

  // As a BlockSink. What was there before its round, or is of a round that nobody asks for, is not
  // kept.
  bool begins(BlockLife& block, const Event& event);
  void ends(const BlockLife&, const BlockEnd&) {}
  void returns(BlockLife&, const Event&) {}
  void unknown_free(const Event&) {}

 private:
  // Segment s of a device lies between its marks s - 1 and s: 0 is before the first.
  struct Birth {
    uint64_t key = 0, addr = 0, time = 0;
    Where where;
  };
  struct State {
    uint64_t marks = 0;
    std::map<uint64_t, std::vector<Birth>> births;  // by segment, of those still open
    std::vector<MarkWindow> windows;
  };
  bool wanted(uint64_t window) const;
  State& state_of(Device device);
  void mark(const Event& event);
  void mark(State& state);
  void close(State& state, uint64_t segment, bool at_end);
  void prune(std::vector<Birth>& births) const;
  bool alive(const Birth& birth, uint64_t* size = nullptr) const;

  MarkLeaksOptions options_;
  std::map<Device, State> devices_;
  uint64_t marks_of_all_ = 0;  // without a device
  BlockTracker<BlockLife> blocks_;
};

// Reads the whole source, which must stand at its beginning.
template <EventSource Source>
std::vector<MarkedDevice> find_mark_leaks(Source& source, MarkLeaksOptions options) {
  MarkLeaks leaks(std::move(options));
  for_each_event(source, [&](const Event& event) { leaks.feed(event); });
  return leaks.finish();
}

}  // namespace memscope
