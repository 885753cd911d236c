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

TEST(StackTable, OneFrameUnderManyCallersTakesNoMoreRoomThanItsStacks) {
  // malloc under 100,000 callers. Taken as they are, their keys have the lowest 32 bits in common;
  // a table that parts buckets by doubling would ask for more memory than there is.
  StackTable stacks;
  const FrameId malloc = stacks.intern_frame({.function = StringId(1)});
  std::vector<StackId> made;
  for (uint32_t i = 1; i <= 100'000; ++i) {
    const FrameId caller = stacks.intern_frame({.function = StringId(2), .line = i});
    made.push_back(stacks.intern(stacks.intern(StackId{}, caller), malloc));
  }
  EXPECT_EQ(stacks.size(), 1 + 2 * made.size());
  const StackId last = stacks.parent(made.back());
  EXPECT_EQ(stacks.intern(last, malloc), made.back());
}

}  // namespace
}  // namespace memscope
