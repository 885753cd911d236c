// Call stacks as dumps print them -> interned stacks, Python's frames around the native ones.
//
//   Call Stack(Python)   /home/me/train.py(103): step\n/home/me/train.py(9): <module>    innermost
//   first Call Stack(C)        /lib/libruntime.so(halMemAlloc+0x118) [0xf79b]\n... innermost first
//   "NA" or empty        none
//
// Promises: linear time in the text; a text seen before costs one look-up by its hash (128 bits);
// at most kMaxFrames frames of each kind a stack, the outer ones are left out; tables of at most
// kMaxNodes nodes and kMaxTextBytes of names, past which stacks are none and counted in left_out().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/stacks.h"
#include "core/wide_hash.h"
#include "tsl/robin_map.h"

namespace memscope {

class CallStacks {
 public:
  static constexpr size_t kMaxFrames = 1000, kMaxNodes = 4 << 20, kMaxTextBytes = 256 << 20;

  StackId intern(std::string_view python, std::string_view native);

  const StackTable& stacks() const { return stacks_; }
  const StringTable& strings() const { return strings_; }
  uint64_t left_out() const { return left_out_; }

 private:
  static WideHash hash_of(std::string_view python, std::string_view native);
  void add_frames(std::string_view text, FrameKind kind);
  StringId text(std::string_view text);

  StringTable strings_;
  StackTable stacks_;
  tsl::robin_map<WideHash, StackId, WideHashFirst> known_;
  std::vector<Frame> frames_;  // of the stack at hand, innermost first
  size_t text_bytes_ = 0;
  uint64_t left_out_ = 0;
};

// One line of a stack, as a frame's parts.
struct FrameText {
  std::string_view file, function;
  uint32_t line = 0;
};
FrameText parse_python_frame(std::string_view line);
FrameText parse_native_frame(std::string_view line);

}  // namespace memscope
