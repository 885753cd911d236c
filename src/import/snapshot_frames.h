// Lists of frames of a snapshot -> interned stacks. The same frame is one dict that many lists
// refer to, the same stack one list that several entries refer to: each is looked into once and
// carries its number from then on.
//
// Promises: at most kMaxFrames frames of a stack, the outer ones are left out; tables of at most
// CallStacks::kMaxNodes nodes, past which stacks are none and counted in left_out().
// HOT PATH: stack_of().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/stacks.h"
#include "core/wide_hash.h"
#include "import/values.h"
#include "tsl/robin_map.h"

namespace memscope {

class SnapshotFrames {
 public:
  static constexpr size_t kMaxFrames = 1000;

  SnapshotFrames(StringTable& strings, StackTable& stacks) : strings_(strings), stacks_(stacks) {}

  // Of a value of the key `frames`: a list of dicts, innermost first.
  StackId stack_of(Values& values, Value list);
  uint64_t left_out() const { return left_out_; }

 private:
  FrameId frame_of(Values& values, Value dict);
  StringId text(std::string_view text);

  StringTable& strings_;
  StackTable& stacks_;
  tsl::robin_map<WideHash, StackId, WideHashFirst> known_;
  std::vector<FrameId> frames_;  // of the list at hand
  size_t text_bytes_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace memscope
