// The text of a stack's two columns, made once a stack: "file(line): function" a Python frame,
// "object(function)" a native one, the innermost first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/stacks.h"
#include "export/dump_settings.h"

namespace memscope {

struct StackText {
  std::string python, c;
};

class DumpStacks {
 public:
  DumpStacks(const StackTable& stacks, const StringTable& strings, const DumpSettings& settings)
      : stacks_(stacks),
        strings_(strings),
        python_depth_(settings.python_depth.value_or(0)),
        c_depth_(settings.c_depth.value_or(0)) {}

  // Valid until the next call.
  const StackText& text(StackId stack) {
    if (stack.value < texts_.size() && texts_[stack.value]) [[likely]]
      return *texts_[stack.value];
    return make(stack);
  }

 private:
  const StackText& make(StackId stack);
  void add_frame(const Frame& frame, std::string& out) const;
  static constexpr size_t kMaxBytes = 128u << 20;  // then the texts are made anew

  const StackTable& stacks_;
  const StringTable& strings_;
  uint32_t python_depth_, c_depth_;
  std::vector<std::unique_ptr<StackText>> texts_;  // by StackId
  size_t bytes_ = 0;
};

}  // namespace memscope
