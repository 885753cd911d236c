// In a process without an interpreter. Inside real ones: tests/python/test_walk.py.
#include "capture/python_stack.h"

#include <gtest/gtest.h>

#include <cstring>

namespace memscope::capture {
namespace {

TEST(PythonStack, StaysOffWithoutAnInterpreter) {
  EXPECT_STREQ(python_stack::check(), "no CPython interpreter is loaded in this process");
  EXPECT_FALSE(python_stack::on());
  EXPECT_STREQ(python_stack::version(), "");
}

TEST(PythonStack, GivesNothingWhileItIsOff) {
  RawFrame frames[4];
  uint64_t hash = 1;
  bool truncated = true;
  EXPECT_EQ(python_stack::walk(frames, 4, &hash, &truncated), 0u);
  EXPECT_EQ(hash, 0u);
  EXPECT_FALSE(truncated);
  python_stack::Resolved resolved;
  char scratch[16];
  EXPECT_FALSE(python_stack::resolve({0x1000, 2}, scratch, sizeof scratch, &resolved));
  char text[8] = "before";
  EXPECT_EQ(python_stack::text(text, sizeof text), 0u);
  EXPECT_STREQ(text, "");
}

}  // namespace
}  // namespace memscope::capture
