#include "export/dump_owners.h"

#include <algorithm>

#include "export/dump_text.h"
#include "trace/records.h"

namespace memscope {

void DumpOwners::feed(const Event& event, const TimeOf& time_of) {
  for (const BlockChange& change : blocks_.feed(event)) {
    const Where where = change.where();
    if (std::find(places_.begin(), places_.end(), where) == places_.end()) {
      places_.push_back(where);
    }
  }
  if (event.kind == EventKind::kRecord && event.record_kind == static_cast<uint8_t>(Kind::kOwner)) {
    add(event, time_of);
  }
}

void DumpOwners::add(const Event& event, const TimeOf& time_of) {
  const auto record = decode_record<OwnerRecord>(event.words);
  if (!record) return;
  const uint64_t birth = record->birth == 0 ? 0 : time_of(record->birth);
  for (const Where where : places_) {
    const DumpBlock* block = blocks_.find(record->addr, where);
    if (block == nullptr || (birth != 0 && block->birth != birth)) continue;
    Owner& owner = owners_[block->id];
    if (!record->owner.empty()) owner.owner = texts_.intern(clean_text(record->owner));
    if (!record->label.empty()) owner.label = texts_.intern(clean_text(record->label));
  }
}

void DumpOwners::append(uint64_t allocation_id, std::string& out) const {
  const auto at = owners_.find(allocation_id);
  if (at == owners_.end()) return;
  const std::string_view owner = texts_.text(at->second.owner);
  const std::string_view label = texts_.text(at->second.label);
  out.append(owner).append(owner.empty() || label.empty() ? "" : "@").append(label);
}

}  // namespace memscope
