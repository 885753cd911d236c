#include "core/stacks.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

TEST(StringTable, GivesTheSameIdForTheSameText) {
  StringTable strings;
  EXPECT_EQ(strings.intern(""), StringId(0));
  const StringId first = strings.intern("train.py");
  EXPECT_EQ(strings.intern("train.py"), first);
  EXPECT_NE(strings.intern("model.py"), first);
  EXPECT_EQ(strings.text(first), "train.py");
}

TEST(StackTable, SharesOuterFramesAndListsInnermostFirst) {
  StackTable stacks;
  const FrameId main = stacks.intern_frame({.function = StringId(1), .line = 10});
  const FrameId train = stacks.intern_frame({.function = StringId(2), .line = 20});
  const FrameId leak = stacks.intern_frame({.function = StringId(3), .line = 30});
  const StackId outer = stacks.intern(stacks.intern(StackId{}, main), train);
  const StackId inner = stacks.intern(outer, leak);
  EXPECT_EQ(stacks.intern(outer, leak), inner);
  EXPECT_EQ(stacks.parent(inner), outer);
  EXPECT_EQ(stacks.frames(inner), (std::vector<FrameId>{leak, train, main}));
  EXPECT_TRUE(stacks.frames(StackId{}).empty());
}

TEST(StackTable, TwoCallsInOneObjectAreTwoFrames) {
  StackTable stacks;
  const Frame call{.file = StringId(1), .kind = FrameKind::kNative, .offset = 0x1000};
  Frame other = call;
  other.offset = 0x1005;
  EXPECT_EQ(stacks.intern_frame(call), stacks.intern_frame(call));
  EXPECT_NE(stacks.intern_frame(call), stacks.intern_frame(other));
}

}  // namespace
}  // namespace memscope
