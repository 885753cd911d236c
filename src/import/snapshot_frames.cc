#include "import/snapshot_frames.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/mix_hash.h"
#include "import/call_stacks.h"

namespace memscope {
namespace {

// C++ frames have '??' and line 0 where they were not resolved, else a source file of C++.
bool is_native(std::string_view file, uint32_t line) {
  constexpr std::array<std::string_view, 10> kSuffixes = {".cpp", ".cc",  ".c",   ".cu",  ".cxx",
                                                          ".h",   ".hpp", ".cuh", ".hip", ".inl"};
  return file == "??" || (file.empty() && line == 0) ||
         file.find(".so") != std::string_view::npos ||
         std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](std::string_view suffix) { return file.ends_with(suffix); });
}

}  // namespace

StringId SnapshotFrames::text(std::string_view text) {
  if (text_bytes_ > CallStacks::kMaxTextBytes) return {};
  const size_t before = strings_.size();
  const StringId id = strings_.intern(text);
  if (strings_.size() != before) text_bytes_ += text.size();
  return id;
}

FrameId SnapshotFrames::frame_of(Values& values, Value dict) {
  if (const uint32_t tag = values.tag_of(dict); tag != 0) return FrameId(tag - 1);
  std::string_view file, function;
  uint64_t line = 0;
  const auto items = values.items(dict);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view key = values.text(items[i]);
    if (key == "filename") {
      file = values.text(items[i + 1]);
    } else if (key == "name") {
      function = values.text(items[i + 1]);
    } else if (key == "line" && items[i + 1].kind == ValueKind::kNumber) {
      line = items[i + 1].negative ? 0 : items[i + 1].bits;
    }
  }
  Frame frame;
  frame.line = line <= std::numeric_limits<uint32_t>::max() ? static_cast<uint32_t>(line) : 0;
  frame.end_line = frame.line;
  frame.kind = is_native(file, frame.line) ? FrameKind::kNative : FrameKind::kPython;
  frame.file = text(file == "??" ? std::string_view() : file);
  frame.function = text(function);
  const FrameId id = stacks_.intern_frame(frame);
  values.tag(dict, id.value + 1);
  return id;
}

StackId SnapshotFrames::stack_of(Values& values, Value list) {
  if (list.kind != ValueKind::kList && list.kind != ValueKind::kTuple) return {};
  if (const uint32_t tag = values.tag_of(list); tag != 0) return StackId(tag - 1);
  frames_.clear();
  WideHash hash{0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu};
  for (const Value& frame : values.items(list)) {
    if (frame.kind != ValueKind::kDict || frames_.size() == kMaxFrames) continue;
    const FrameId id = frame_of(values, frame);
    frames_.push_back(id);
    hash.first = MixHash{}(hash.first ^ id.value);
    hash.second = (hash.second ^ id.value) * 0xFF51AFD7ED558CCDu;
    hash.second ^= hash.second >> 29;
  }
  StackId stack;
  const auto known = known_.find(hash);
  if (known != known_.end()) {
    stack = known->second;
  } else if (stacks_.size() + frames_.size() > CallStacks::kMaxNodes) {
    ++left_out_;
  } else {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      stack = stacks_.intern(stack, *frame);
    }
    known_.emplace(hash, stack);
  }
  values.tag(list, stack.value + 1);
  return stack;
}

}  // namespace memscope
