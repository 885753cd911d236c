// What records say about single blocks: who holds one, and what one is for.
//
// A record names its block by address, and by birth where the address may be another's by now. The
// record and its alloc may be of one time and come in either order: a record without a block waits
// for the end. What waits is bounded; what does not fit is counted (SideRecords::left_out).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/event.h"
#include "replay/history.h"
#include "replay/live_blocks.h"
#include "replay/side_records.h"

namespace memscope {

class BlockNotes {
 public:
  using TimeOf = std::function<uint64_t(uint64_t ticks)>;
  BlockNotes(uint64_t skew_ns, TimeOf time_of) : skew_(skew_ns), time_of_(std::move(time_of)) {}

  // A Holder and an Owner record.
  void holder(const Event& event, LiveBlocks& live, const std::vector<Pool>& pools,
              SideRecords& side);
  void owner(const Event& event, LiveBlocks& live, const std::vector<Pool>& pools,
             SideRecords& side);
  // What came before its block, if that is alive now.
  void finish(LiveBlocks& live, const std::vector<Pool>& pools, SideRecords& side);

 private:
  struct LateOwner {
    uint64_t addr = 0, birth = 0, size = 0;
    Where where;
    BlockOwner owner;
  };
  LiveBlocks::iterator find(LiveBlocks& live, const std::vector<Pool>& pools, uint64_t addr,
                            uint64_t birth, Where where) const;
  bool join(HolderSeen& seen, LiveBlocks& live, const std::vector<Pool>& pools) const;
  bool join(const LateOwner& late, LiveBlocks& live, const std::vector<Pool>& pools,
            SideRecords& side);
  uint32_t number_of(const BlockOwner& owner, SideRecords& side);

  uint64_t skew_;
  TimeOf time_of_;
  std::vector<HolderSeen> late_holders_;
  std::vector<LateOwner> late_owners_;
  std::map<BlockOwner, uint32_t> owner_numbers_;
};

}  // namespace memscope
