#include "capture/python_epochs.h"

#include <gtest/gtest.h>

#include "capture/python_stack.h"

namespace memscope::capture {
namespace {

// Addresses of this test alone: each has its own bit and counter.
constexpr uint64_t kFirst = 0x7f0000010010, kSecond = 0x7f0000020020, kThird = 0x7f0000030030;

TEST(PythonEpochs, TheDeathOfAKnownCodeMovesItsAddressOn) {
  const uint64_t before = python_epochs::epoch_of(kFirst);
  python_epochs::know(kFirst);
  EXPECT_EQ(python_epochs::epoch_of(kFirst), before) << "knowing changes nothing";
  python_epochs::note_death(kFirst);
  EXPECT_TRUE(python_epochs::any_death());
  EXPECT_NE(python_epochs::epoch_of(kFirst), before);
}

TEST(PythonEpochs, TheDeathOfAnUnknownCodeMattersToNobody) {
  const uint64_t before = python_epochs::epoch_of(kSecond);
  python_epochs::note_death(kSecond);
  EXPECT_EQ(python_epochs::epoch_of(kSecond), before);
}

TEST(PythonEpochs, AFramesKeyNamesOneLifeOfItsCode) {
  const RawFrame frame{kThird, 24};
  const uint64_t first_life = python_stack::frame_key(frame);
  EXPECT_EQ(python_stack::frame_key(frame), first_life);
  EXPECT_NE(python_stack::frame_key({kThird, 26}), first_life);
  EXPECT_NE(python_stack::frame_key({kThird + 16, 24}), first_life);
  python_epochs::know(kThird);
  python_epochs::note_death(kThird);
  EXPECT_NE(python_stack::frame_key(frame), first_life);
}

}  // namespace
}  // namespace memscope::capture
