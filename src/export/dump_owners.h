// Owners by block, found before the rows are written: what a block is for is known only after its
// alloc, and the MALLOC row has it.
//
// A block is named by its allocation_id: the same events give the same ids (dump_blocks.h). Memory
// is bounded by the blocks that have an owner or a label.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/stacks.h"
#include "export/dump_blocks.h"
#include "tsl/robin_map.h"

namespace memscope {

class DumpOwners {
 public:
  using TimeOf = std::function<uint64_t(uint64_t ticks)>;

  // Every event, in order; those of other devices than the dump's must be left out here, too.
  void feed(const Event& event, const TimeOf& time_of);

  bool empty() const { return owners_.empty(); }
  // Appends "PTA@model@weight@my label" to `out`; nothing where nothing is known.
  void append(uint64_t allocation_id, std::string& out) const;

 private:
  struct Owner {
    StringId owner, label;
  };
  void add(const Event& event, const TimeOf& time_of);

  DumpBlocks blocks_;
  std::vector<Where> places_;  // that had a block
  StringTable texts_;
  tsl::robin_map<uint64_t, Owner> owners_;
};

}  // namespace memscope
