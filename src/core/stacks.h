// Interned strings, frames and call stacks of one process, as a reader of a trace sees them.
//
// A call stack is a node of a trie: (parent node, frame), so that stacks which share their outer
// frames share storage. Node 0 is the empty stack. Tables only grow; ids stay valid.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "tsl/robin_map.h"

namespace memscope {

enum class FrameKind : uint8_t { kPython = 0, kNative = 1 };

struct Frame {
  StringId file;      // absolute path for Python; object file for native
  StringId function;  // qualified name where the interpreter has it
  StringId module;    // "" where unknown; the build-id in hex for native
  uint32_t line = 0;  // 1-based; 0 = unknown
  uint32_t end_line = 0;
  uint32_t first_line = 0;  // of the function's definition; 0 = unknown
  FrameKind kind = FrameKind::kPython;
  uint64_t offset = 0;  // native: address of the call as the object file numbers it; 0 = unknown
  friend bool operator==(const Frame&, const Frame&) = default;
};

class StringTable {
 public:
  StringTable();
  StringId intern(std::string_view text);
  std::string_view text(StringId id) const { return texts_[id.value]; }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque: views into it stay valid
  tsl::robin_map<std::string_view, uint32_t> index_;
};

class StackTable {
 public:
  StackTable();
  FrameId intern_frame(const Frame& frame);
  // The stack `parent` with `frame` called from its innermost frame.
  StackId intern(StackId parent, FrameId frame);
  const Frame& frame(FrameId id) const { return frames_[id.value]; }
  FrameId innermost(StackId id) const { return nodes_[id.value].frame; }
  StackId parent(StackId id) const { return nodes_[id.value].parent; }
  // Frames from the innermost outwards; empty for the empty stack.
  std::vector<FrameId> frames(StackId id) const;
  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    StackId parent;
    FrameId frame;
  };
  struct FrameHash {
    size_t operator()(const Frame& f) const;
  };
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  tsl::robin_map<Frame, uint32_t, FrameHash> frame_index_;
  tsl::robin_map<uint64_t, uint32_t> node_index_;  // key: parent << 32 | frame
};

}  // namespace memscope
