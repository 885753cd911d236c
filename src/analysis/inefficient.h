// Memory that is held while it is not needed, by msMemScope's three rules:
//
//   early_allocation     memory was freed between a block's allocation and its first use: it could
//                        have been allocated after that, and the peak would be lower
//   late_deallocation    memory was allocated between a block's last use and its free: it could
//                        have been freed before that
//   temporary_idleness   two uses of a block lie more than `idle_threshold` calls apart
//
// Time is counted in calls of the framework's API, for ATen with its pool and for ATB with its own
// apart: an operator is one call with all that happens in it, and so is each allocation, use and
// free outside operators.
//
//   call   1       2          3       4          5        6         7
//          alloc x  op(a)      free y  op(x)      alloc z  op(w)     free x
//                                      first use of x: call 4; y was freed in 3 > 1: early
//                                                 z was allocated in 5 > 4, before 7: x is late
//
// Uses are events of kind `access`. Memory is bounded by the live blocks and those found.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/event.h"
#include "replay/event_source.h"

namespace memscope {

// A set of the three.
struct Inefficiency {
  static constexpr uint8_t kEarlyAllocation = 1, kLateDeallocation = 2, kTemporaryIdleness = 4;
  static constexpr uint8_t kAll = 7;
};
// "early_allocation,late_deallocation", as msMemScope writes the attribute.
std::string inefficiency_text(uint8_t types);

struct InefficientOptions {
  uint64_t least_size = 0;  // bytes; smaller blocks are not looked at
  uint8_t types = Inefficiency::kAll;
  uint64_t idle_threshold = 3000;  // calls
};

// A block with at least one of the types asked for; its allocation tells it.
struct InefficientBlock {
  uint64_t addr = 0, size = 0, time = 0;
  Where where;
  StackId stack;
  uint8_t types = 0;
};

class InefficientFinder {
 public:
  explicit InefficientFinder(const InefficientOptions& options) : options_(options) {}
  // Every event of a source, in order.
  void feed(const Event& event);
  // By time of the allocation.
  std::vector<InefficientBlock> finish();
  uint64_t blocks() const { return blocks_; }      // looked at
  uint64_t accesses() const { return accesses_; }  // without any there is nothing to find

 private:
  struct Block {
    InefficientBlock result;
    uint64_t malloc_call = 0;
    uint64_t last_access = 0;  // call
    bool accessed = false, first_use_seen = false;
  };
  // ATen or ATB.
  struct Api {
    uint64_t calls = 0;
    bool in_operator = false, operator_allocates = false, operator_frees = false;
    uint64_t latest_malloc = 0, latest_free = 0;  // calls that are over
    std::map<uint64_t, Block> live;               // by address, so that views are found
  };
  enum class Doing : uint8_t { kMalloc, kAccess, kFree };
  static uint64_t begin_call(Api& api);
  static void end_call(Api& api, Doing doing, uint64_t call);
  Api* api_of(Layer layer);
  void launch(const Event& event);
  void access(const Event& event);
  bool access_in(Api& api, uint64_t addr);
  void settle(Block& block);

  InefficientOptions options_;
  std::array<Api, 2> apis_;
  std::vector<InefficientBlock> found_;
  uint64_t blocks_ = 0, accesses_ = 0;
};

// Reads the whole source, which must stand at its beginning.
template <EventSource Source>
std::vector<InefficientBlock> find_inefficient(Source& source, const InefficientOptions& options) {
  InefficientFinder finder(options);
  for_each_event(source, [&](const Event& event) { finder.feed(event); });
  return finder.finish();
}

}  // namespace memscope
