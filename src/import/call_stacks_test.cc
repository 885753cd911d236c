#include "import/call_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> shown(const CallStacks& stacks, StackId stack) {
  std::vector<std::string> lines;
  for (const FrameId id : stacks.stacks().frames(stack)) {
    const Frame& frame = stacks.stacks().frame(id);
    lines.push_back(std::string(frame.kind == FrameKind::kPython ? "py " : "c ") +
                    std::string(stacks.strings().text(frame.file)) + " " +
                    std::string(stacks.strings().text(frame.function)) + " " +
                    std::to_string(frame.line));
  }
  return lines;
}

TEST(CallStacks, NativeFramesAreInsidePythons) {
  CallStacks stacks;
  const StackId stack = stacks.intern(
      "/home/me/a.py(11): leak\n/home/me/a.py(20): <module>\n",
      "/opt/lib/libhook.so(halMemAlloc+0x118) [0xf79b279760c8]\n/opt/lib/libruntime.so(+0x3e1214) "
      "[0xf79abf7d1214]\n");
  EXPECT_THAT(
      shown(stacks, stack),
      ElementsAre("c /opt/lib/libhook.so halMemAlloc 0", "c /opt/lib/libruntime.so +0x3e1214 0",
                  "py /home/me/a.py leak 11", "py /home/me/a.py <module> 20"));
}

TEST(CallStacks, OddFrames) {
  CallStacks stacks;
  EXPECT_THAT(
      shown(stacks, stacks.intern("/a (1)/b.py(7): f.<locals>.<lambda>\nno frame\nx(y): z", "")),
      ElementsAre("py /a (1)/b.py f.<locals>.<lambda> 7", "py  no frame 0", "py  x(y): z 0"));
  EXPECT_THAT(shown(stacks, stacks.intern("\"b.py(7): f\"\r\n", "")), ElementsAre("py b.py f 7"));
}

TEST(CallStacks, NoneIsNone) {
  CallStacks stacks;
  EXPECT_FALSE(stacks.intern("", ""));
  EXPECT_FALSE(stacks.intern("NA", "\"NA\""));
  EXPECT_FALSE(stacks.intern("\n", " "));
}

TEST(CallStacks, TheSameTextIsTheSameStack) {
  CallStacks stacks;
  const StackId one = stacks.intern("a.py(1): f\nb.py(2): g", "");
  const size_t size = stacks.stacks().size();
  EXPECT_EQ(stacks.intern("a.py(1): f\nb.py(2): g", ""), one);
  EXPECT_NE(stacks.intern("a.py(1): f\nb.py(3): g", ""), one);
  // What is shared from the outside is stored once: a.py(9) under the same b.py(2) is one node
  // more.
  const size_t before = stacks.stacks().size();
  EXPECT_GT(before, size);
  stacks.intern("a.py(9): f\nb.py(2): g", "");
  EXPECT_EQ(stacks.stacks().size(), before + 1);
}

TEST(CallStacks, AThousandFramesAtMost) {
  CallStacks stacks;
  std::string text;
  for (int i = 1; i <= 3000; ++i) text += "a.py(" + std::to_string(i) + "): f\n";
  const auto frames = stacks.stacks().frames(stacks.intern(text, ""));
  ASSERT_EQ(frames.size(), CallStacks::kMaxFrames);
  EXPECT_EQ(stacks.stacks().frame(frames[0]).line, 1u);  // the inner ones are kept
}

}  // namespace
}  // namespace memscope
