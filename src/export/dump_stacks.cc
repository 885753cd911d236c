#include "export/dump_stacks.h"

#include <algorithm>

#include "export/dump_text.h"

namespace memscope {

void DumpStacks::add_frame(const Frame& frame, std::string& out) const {
  const std::string file = clean_line(strings_.text(frame.file));
  const std::string function = clean_line(strings_.text(frame.function));
  if (!out.empty()) out += '\n';
  if (frame.kind == FrameKind::kPython) {
    out.append(file).append("(").append(std::to_string(frame.line)).append("): ").append(function);
  } else if (file.empty()) {
    out += function;  // a line as an earlier dump had it
  } else {
    out.append(file).append("(").append(function).append(")");
  }
}

const StackText& DumpStacks::make(StackId stack) {
  if (bytes_ > kMaxBytes) {
    texts_.clear();
    bytes_ = 0;
  }
  if (stack.value >= texts_.size()) {
    texts_.resize(std::max<size_t>(stack.value + size_t{1}, stacks_.size()));
  }
  auto text = std::make_unique<StackText>();
  uint32_t python = 0, c = 0;
  if (stack.value < stacks_.size() && (python_depth_ != 0 || c_depth_ != 0)) {
    for (StackId at = stack; at && (python < python_depth_ || c < c_depth_);
         at = stacks_.parent(at)) {
      const Frame& frame = stacks_.frame(stacks_.innermost(at));
      if (frame.kind == FrameKind::kPython) {
        if (python++ < python_depth_) add_frame(frame, text->python);
      } else if (c++ < c_depth_) {
        add_frame(frame, text->c);
      }
    }
  }
  bytes_ += sizeof(StackText) + text->python.capacity() + text->c.capacity();
  texts_[stack.value] = std::move(text);
  return *texts_[stack.value];
}

}  // namespace memscope
