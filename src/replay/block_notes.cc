#include "replay/block_notes.h"

#include <algorithm>
#include <string>

#include "trace/records.h"

namespace memscope {

// The live block a record speaks of; end() where there is none. `birth` as the record has it: in
// ticks by the table; a writer that only knows epoch times (SuspectBlock) may give those. A segment
// shares its address with the first block in it: `where` says which is meant, else it is the block.
LiveBlocks::iterator BlockNotes::find(LiveBlocks& live, const std::vector<Pool>& pools,
                                      uint64_t addr, uint64_t birth, Where where) const {
  const auto look = [&](Where place) {
    const auto at = live.find(block_key(addr, place));
    if (at == live.end() || birth == 0) return at;
    const auto near = [&](uint64_t time) {
      const uint64_t born = at->second.birth;
      return std::max(time, born) - std::min(time, born) <= skew_;
    };
    return near(birth) || near(time_of_(birth)) ? at : live.end();
  };
  if (where != Where{}) {
    if (const auto at = look(where); at != live.end()) return at;
  }
  auto outer = live.end();
  for (const Pool& pool : pools) {
    const auto at = look(pool.where);
    if (at == live.end()) continue;
    if (pool.where.layer != Layer::kDriver && pool.where.layer != Layer::kHost) return at;
    outer = at;
  }
  return outer;
}

// -- holders --------------------------------------------------------------------------------------

bool BlockNotes::join(HolderSeen& seen, LiveBlocks& live, const std::vector<Pool>& pools) const {
  const auto at = find(live, pools, seen.addr, seen.birth, {});
  if (at == live.end()) return false;
  seen.birth = at->second.birth;
  seen.group = at->second.group;
  seen.size = at->second.size;
  return true;
}

void BlockNotes::holder(const Event& event, LiveBlocks& live, const std::vector<Pool>& pools,
                        SideRecords& side) {
  const auto record = decode_record<HolderRecord>(event.words);
  if (!record) return;
  if (side.holders.size() + late_holders_.size() >= SideRecords::kMaxHolders) {
    ++side.left_out;
    return;
  }
  HolderSeen seen{.addr = record->addr,
                  .birth = record->birth,
                  .root = std::string(record->root),
                  .path = std::string(record->path),
                  .file = std::string(record->file),
                  .function = std::string(record->function),
                  .text = std::string(record->text),
                  .cause = std::string(record->cause),
                  .line = record->line,
                  .end_line = record->end_line};
  if (join(seen, live, pools)) {
    side.holders.push_back(std::move(seen));
  } else if (seen.birth != 0) {
    late_holders_.push_back(std::move(seen));
  }
}

// -- owners ---------------------------------------------------------------------------------------

uint32_t BlockNotes::number_of(const BlockOwner& owner, SideRecords& side) {
  const auto known = owner_numbers_.find(owner);
  if (known != owner_numbers_.end()) return known->second;
  if (side.owners.size() > SideRecords::kMaxTexts) {
    ++side.left_out;
    return 0;
  }
  const auto number = static_cast<uint32_t>(side.owners.size());
  side.owners.push_back(owner);
  owner_numbers_.emplace(owner, number);
  return number;
}

bool BlockNotes::join(const LateOwner& late, LiveBlocks& live, const std::vector<Pool>& pools,
                      SideRecords& side) {
  const auto at = find(live, pools, late.addr, late.birth, late.where);
  if (at == live.end()) return false;
  Block& block = at.value();
  // A view's owner is the block's only where it is most of the block.
  if (late.size != 0 && late.size <= block.size / 2) return true;
  BlockOwner owner = late.owner;
  const BlockOwner& before = side.owners[block.owner];
  if (owner.owner.empty()) owner.owner = before.owner;
  if (owner.label.empty()) owner.label = before.label;
  block.owner = number_of(owner, side);
  return true;
}

void BlockNotes::owner(const Event& event, LiveBlocks& live, const std::vector<Pool>& pools,
                       SideRecords& side) {
  const auto record = decode_record<OwnerRecord>(event.words);
  if (!record) return;
  LateOwner late{record->addr,
                 record->birth,
                 record->size,
                 event.where,
                 {std::string(record->owner), std::string(record->label)}};
  if (join(late, live, pools, side) || late.birth == 0) return;
  if (late_owners_.size() >= SideRecords::kMaxHolders) {
    ++side.left_out;
  } else {
    late_owners_.push_back(std::move(late));
  }
}

void BlockNotes::finish(LiveBlocks& live, const std::vector<Pool>& pools, SideRecords& side) {
  for (HolderSeen& seen : late_holders_) {
    if (join(seen, live, pools)) side.holders.push_back(std::move(seen));
  }
  for (const LateOwner& late : late_owners_) join(late, live, pools, side);
}

}  // namespace memscope
