#include "capture/python_frames.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace memscope::capture {
namespace {

// An address space made of single values: a read of any other address fails, as an unmapped one.
struct FakeMemory {
  static constexpr bool kTrusted = false;
  std::map<uint64_t, uint64_t> words;

  template <class T>
  bool load(uint64_t address, T* value) {
    auto found = words.find(address);
    if (found == words.end()) return false;
    *value = static_cast<T>(found->second);
    return true;
  }
};

// A thread with a chain of frames, laid out as one version of CPython does.
class Thread {
 public:
  explicit Thread(int minor) : layout(*python_layout(3, minor)) {
    uint64_t head = kThread + layout.thread_head;
    if (layout.head_in_cframe) {
      memory.words[head] = kCFrame;
      head = kCFrame + layout.cframe_head;
    }
    link_ = head;
    memory.words[link_] = 0;
  }
  // Adds the caller of the last frame added. `instruction` in bytes, RESUME at `first_traceable`.
  void caller(uint64_t code, int64_t instruction, int owner = 0, int first_traceable = 0) {
    const uint64_t frame = next_frame_;
    next_frame_ += 0x1000;
    memory.words[link_] = frame;
    link_ = frame + layout.frame_previous;
    memory.words[link_] = 0;
    memory.words[frame + layout.frame_code] = code | (layout.tagged_code ? 1 : 0);
    if (layout.frame_objects) {
      memory.words[frame + layout.frame_instruction] =
          static_cast<uint64_t>(instruction / layout.lasti_bytes);
      return;
    }
    memory.words[frame + layout.frame_instruction] =
        code + layout.code_bytecode + static_cast<uint64_t>(instruction);
    memory.words[frame + layout.frame_owner] = static_cast<uint64_t>(owner);
    memory.words[code + layout.code_first_traceable] = static_cast<uint64_t>(first_traceable);
  }
  // A frame of the interpreter's own: nothing in it but its owner may be read.
  void shim(int owner) {
    const uint64_t frame = next_frame_;
    next_frame_ += 0x1000;
    memory.words[link_] = frame;
    link_ = frame + layout.frame_previous;
    memory.words[link_] = 0;
    memory.words[frame + layout.frame_owner] = static_cast<uint64_t>(owner);
  }
  void make_ring() { memory.words[link_] = kFirstFrame; }

  WalkResult walk(size_t max = 100) {
    frames.assign(max, {});
    return walk_frames<true>(layout, memory, kThread, frames.data(), max);
  }

  const PythonLayout& layout;
  FakeMemory memory;
  std::vector<RawFrame> frames;

 private:
  static constexpr uint64_t kThread = 0x100000, kCFrame = 0x200000, kFirstFrame = 0x300000;
  uint64_t next_frame_ = kFirstFrame;
  uint64_t link_;
};

constexpr uint64_t kLeaf = 0x5000000, kRoot = 0x6000000;

class EveryVersion : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(CPython3, EveryVersion, testing::Range(9, 15));

TEST_P(EveryVersion, FramesComeInnermostFirst) {
  Thread thread(GetParam());
  thread.caller(kLeaf, 20);
  thread.caller(kRoot, 6);
  const WalkResult result = thread.walk();
  ASSERT_TRUE(result.readable);
  ASSERT_EQ(result.count, 2u);
  EXPECT_FALSE(result.truncated);
  EXPECT_EQ(thread.frames[0].code, kLeaf);
  EXPECT_EQ(thread.frames[0].instruction, 20u);
  EXPECT_EQ(thread.frames[1].code, kRoot);
  EXPECT_EQ(thread.frames[1].instruction, 6u);
}

TEST_P(EveryVersion, AThreadWithoutPythonFramesHasNone) {
  const WalkResult result = Thread(GetParam()).walk();
  EXPECT_TRUE(result.readable);
  EXPECT_EQ(result.count, 0u);
}

TEST_P(EveryVersion, MoreFramesThanRoomIsTruncated) {
  Thread thread(GetParam());
  for (int i = 0; i < 5; ++i) thread.caller(kLeaf, 20);
  EXPECT_FALSE(thread.walk(5).truncated);
  const WalkResult cut = thread.walk(4);
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.count, 4u);
}

TEST_P(EveryVersion, TheHashTellsStacksApart) {
  auto hash = [](std::initializer_list<RawFrame> frames, size_t max = 100) {
    Thread thread(GetParam());
    for (const RawFrame& frame : frames) {
      thread.caller(frame.code, static_cast<int64_t>(frame.instruction));
    }
    return thread.walk(max).hash;
  };
  const uint64_t both = hash({{kLeaf, 20}, {kRoot, 6}});
  EXPECT_EQ(hash({{kLeaf, 20}, {kRoot, 6}}), both);
  EXPECT_NE(hash({{kRoot, 6}, {kLeaf, 20}}), both) << "order";
  EXPECT_NE(hash({{kLeaf, 22}, {kRoot, 6}}), both) << "instruction";
  EXPECT_NE(hash({{kLeaf, 20}}), both) << "length";
  EXPECT_NE(hash({{kLeaf, 20}, {kRoot, 6}}, 1), hash({{kLeaf, 20}})) << "missing frames";
  EXPECT_NE(hash({{kLeaf, 20}, {kLeaf, 20}}), hash({{kLeaf, 20}, {kLeaf, 20}, {kLeaf, 20}}));
}

TEST_P(EveryVersion, WhatCannotBeReadIsSaid) {
  Thread thread(GetParam());
  thread.caller(kLeaf, 20);
  thread.make_ring();
  const WalkResult ring = thread.walk(100);
  EXPECT_TRUE(ring.truncated || !ring.readable) << "a ring must end";
  Thread wild(GetParam());
  wild.caller(kLeaf, 20);
  wild.memory.words.erase(wild.memory.words.begin());  // the thread's own head
  EXPECT_FALSE(wild.walk().readable);
}

TEST(OldFrames, OneThatHasNotBegunIsShown) {
  for (int minor : {9, 10}) {
    Thread thread(minor);
    thread.caller(kLeaf, minor == 9 ? -1 : -2);
    const WalkResult result = thread.walk();
    ASSERT_EQ(result.count, 1u);
    EXPECT_LT(static_cast<int64_t>(thread.frames[0].instruction), 0);
  }
}

class SinceInterpreterFrames : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(CPython3, SinceInterpreterFrames, testing::Range(11, 15));

TEST_P(SinceInterpreterFrames, OneBeforeItsFirstResumeIsNot) {
  // Two cells are made before RESUME, the third instruction: byte 4.
  Thread thread(GetParam());
  thread.caller(kLeaf, 2, 0, 2);
  thread.caller(kRoot, 4, 0, 2);
  ASSERT_EQ(thread.walk().count, 1u);
  EXPECT_EQ(thread.frames[0].code, kRoot);
}

TEST_P(SinceInterpreterFrames, AGeneratorsFrameAlwaysIs) {
  Thread thread(GetParam());
  thread.caller(kLeaf, 0, kOwnedByGenerator, 2);
  EXPECT_EQ(thread.walk().count, 1u);
}

class SinceShims : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(CPython3, SinceShims, testing::Range(12, 15));

TEST_P(SinceShims, ShimsAreNot) {
  Thread thread(GetParam());
  thread.shim(3);
  thread.caller(kLeaf, 20);
  thread.shim(4);
  thread.caller(kRoot, 6);
  thread.shim(3);
  const WalkResult result = thread.walk(2);
  EXPECT_EQ(result.count, 2u);
  EXPECT_FALSE(result.truncated) << "only a shim is left";
}

}  // namespace
}  // namespace memscope::capture
