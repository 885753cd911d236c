// A caching allocator without a device: given the same requests, it makes the decisions that
// PyTorch's and torch_npu's make, segment by segment and address by address.
//
//   PoolSimulator pool(settings, driver);
//   auto block = pool.alloc({.stream = 0, .request = 1000});   // nullopt: out of memory
//   pool.free(*block);                                         // free_completed
//   pool.empty_cache();
//   for (const SegmentEvent& event : pool.events()) ...        // since the last call
//
// The rules, as their names are in the comments of the code:
//
//   round    a request is padded and rounded (pool_rules.h); up to 1 MiB is the small pool's
//   fit      the smallest free block of the stream that is large enough, the lowest of equals; of
//            expandable segments the one that need not grow
//   miss     collect garbage, take new memory, give up an oversize block, give up the whole cache,
//            out of memory
//   take     the low end is handed out; the rest is split off where that is allowed
//   free     merges with free neighbours at once
//
//   block    | free 512 | used 1024 | free 2048 |  a segment's blocks, in a chain by address
//   range    | used | free | unmapped ...       |  of an expandable segment, likewise
//
// Which addresses new memory has is not the allocator's choice: a PoolDriver says.
//
// Promises: deterministic; no more memory than its blocks; logarithmic in them for every call but
// empty_cache(). A size of 2^60 or more is out of memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "analysis/pool_settings.h"
#include "replay/pool_history.h"
#include "replay/pool_state.h"

namespace memscope {

struct SegmentEvent {
  PoolAction action = PoolAction::kSegmentAlloc;  // or Free, Map, Unmap
  uint64_t addr = 0, size = 0;
  friend bool operator==(const SegmentEvent&, const SegmentEvent&) = default;
};

// Where the driver puts what the allocator takes: a segment, or the beginning of a range.
class PoolDriver {
 public:
  virtual ~PoolDriver() = default;
  virtual uint64_t place(PoolAction action, uint64_t size) = 0;
  // Whether the driver refuses this time; the capacity is the simulator's own matter.
  virtual bool refuses() { return false; }
};

// Above all there was, ascending.
class AscendingDriver : public PoolDriver {
 public:
  explicit AscendingDriver(uint64_t from) : next_(from) {}
  uint64_t place(PoolAction action, uint64_t size) override;

 private:
  uint64_t next_;
};

class PoolSimulator {
 public:
  PoolSimulator(const PoolSettings& settings, PoolDriver& driver)
      : settings_(settings), driver_(driver) {}

  // What is there at the beginning. `bases`: where the ranges of expandable segments begin, of
  // which segments are mapped parts. False where blocks overlap or lie outside of all segments.
  struct Base {
    uint64_t addr = 0, size = 0;
    uint64_t stream = 0;
    bool large = false;
  };
  bool load(const PoolStart& start, const PoolTables& tables, std::span<const Base> bases);

  struct Request {
    uint64_t stream = 0;
    uint16_t pool = 0;  // 0 is the default
    uint64_t request = 0;
  };
  using BlockNumber = uint32_t;
  std::optional<BlockNumber> alloc(const Request& request);
  void free(BlockNumber block);  // of alloc() or at()
  void empty_cache();

  // The block that is in use at an address.
  std::optional<BlockNumber> at(uint64_t addr) const;
  uint64_t addr_of(BlockNumber block) const { return blocks_[block].addr; }
  uint64_t size_of(BlockNumber block) const { return blocks_[block].size; }

  // Of the last call.
  std::span<const SegmentEvent> events() const { return events_; }
  uint64_t reserved() const { return reserved_; }
  uint64_t allocated() const { return allocated_; }
  uint64_t requested() const { return requested_; }
  uint64_t retries() const { return retries_; }  // the whole cache was given up
  size_t segments() const { return segments_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Block {
    uint64_t addr = 0, size = 0, requested = 0;
    uint64_t stream = 0;
    uint32_t prev = kNone, next = kNone;
    uint32_t range = kNone;  // of an expandable segment
    uint32_t pool = 0;       // of pools_
    uint32_t age = 0;        // searches of the pool when it became free
    bool used = false, mapped = true;
  };
  struct Range {
    uint64_t base = 0, size = 0, mapped = 0, page = 0;
  };
  using FreeKey = std::tuple<uint64_t, uint64_t, uint64_t, uint32_t>;  // stream, size, addr, block
  using UnmappedKey = std::tuple<uint64_t, uint64_t, uint32_t>;        // stream, addr, block
  struct Pool {
    uint16_t id = 0;
    bool small = false;
    uint32_t searches = 0;
    std::set<FreeKey> free;
    std::set<UnmappedKey> unmapped;
  };

  uint32_t pool_of(uint16_t id, bool small);
  uint32_t new_block();
  void drop_block(uint32_t block);
  void insert_free(uint32_t number);
  void erase_free(uint32_t number);
  uint32_t split_off(uint32_t number, uint64_t size);  // what lies behind
  uint32_t merge(uint32_t low, uint32_t high);
  uint32_t merge_free(uint32_t block);
  uint64_t reach(uint32_t number) const;

  uint32_t best_fit(uint32_t number, uint64_t stream, uint64_t size);
  uint32_t new_memory(uint32_t pool, uint64_t stream, uint64_t size);
  uint32_t grow(uint32_t pool, uint64_t stream, uint64_t size);
  uint32_t room_to_grow(uint32_t number, uint64_t stream, uint64_t size);
  uint32_t map(uint32_t number, uint64_t size);
  void unmap(uint32_t number);
  bool refused(uint64_t bytes);
  uint64_t segment_bytes(uint64_t size) const;

  void collect_garbage();
  bool give_up_oversize(uint32_t number, uint64_t stream, uint64_t size);
  void give_up_cache();
  void give_up(uint32_t pool);
  void give_back(uint32_t number);
  uint32_t take(uint32_t block, uint64_t size, uint64_t request);

  PoolSettings settings_;
  PoolDriver& driver_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> unused_;
  std::vector<Range> ranges_;
  std::vector<Pool> pools_;
  std::map<uint64_t, uint32_t> used_;  // by address
  std::vector<SegmentEvent> events_;
  uint64_t reserved_ = 0, allocated_ = 0, requested_ = 0, retries_ = 0;
  size_t segments_ = 0;
};

}  // namespace memscope
