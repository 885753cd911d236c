#include "capture/python_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace memscope::capture {
namespace {

TEST(PythonLayout, KnowsCPython39To314Only) {
  EXPECT_EQ(python_layout(3, 8), nullptr);
  for (int minor = 9; minor <= 14; ++minor) {
    ASSERT_NE(python_layout(3, minor), nullptr) << minor;
    EXPECT_EQ(python_layout(3, minor)->minor, minor);
  }
  EXPECT_EQ(python_layout(3, 15), nullptr);
  EXPECT_EQ(python_layout(4, 11), nullptr);
}

TEST(PythonVersion, IsTheFirstWord) {
  int major = 0, minor = 0;
  std::string_view number;
  ASSERT_TRUE(parse_python_version("3.11.2 (main, Mar 13 2023) [GCC]", &major, &minor, &number));
  EXPECT_EQ(major, 3);
  EXPECT_EQ(minor, 11);
  EXPECT_EQ(number, "3.11.2");
  ASSERT_TRUE(parse_python_version("3.14.0rc1+", &major, &minor, &number));
  EXPECT_EQ(minor, 14);
  EXPECT_EQ(number, "3.14.0rc1+");
  for (const char* text : {"", "3", "3.", "x.1", "PyPy 7.3", "99999.1"}) {
    EXPECT_FALSE(parse_python_version(text, &major, &minor, &number)) << text;
  }
}

// What &_PyRuntime begins with in 3.13.0, word by word (pycore_runtime.h of 3.13); words that the
// comparison does not look at are 0.
std::vector<uint64_t> runtime_313() {
  std::vector<uint64_t> words(73);
  std::memcpy(&words[0], "xdebugpy", 8);
  words[1] = 0x030d00f0;
  words[23] = 72;  // thread_state.current_frame
  words[29] = 8;   // interpreter_frame.previous, executable, instr_ptr, (localsplus,) owner
  words[30] = 0;
  words[31] = 56;
  words[33] = 70;
  words[35] = 112;  // code_object.filename, (name,) qualname, linetable, firstlineno
  words[37] = 128;
  words[38] = 136;
  words[39] = 68;
  words[43] = 200;  // code_object.co_code_adaptive
  words[45] = 8;    // pyobject.ob_type
  words[47] = 24;   // type_object.tp_name
  words[65] = 16;   // bytes_object.ob_size, ob_sval
  words[66] = 32;
  words[68] = 32;  // unicode_object.state, length, asciiobject_size
  words[69] = 16;
  words[70] = 40;
  return words;
}

TEST(DebugOffsets, AgreeWithTheTable) {
  EXPECT_EQ(compare_with_debug_offsets(*python_layout(3, 13), runtime_313().data()), nullptr);
}

TEST(DebugOffsets, RefuseWhatDiffers) {
  const PythonLayout& layout = *python_layout(3, 13);
  for (size_t word : {0, 1, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 47, 65, 66, 68, 69, 70}) {
    std::vector<uint64_t> words = runtime_313();
    words[word] += uint64_t{1} << 24;
    EXPECT_NE(compare_with_debug_offsets(layout, words.data()), nullptr) << word;
  }
  std::vector<uint64_t> words = runtime_313();
  words[2] = 1;
  EXPECT_STREQ(compare_with_debug_offsets(layout, words.data()),
               "free-threaded CPython is not supported yet");
  EXPECT_NE(compare_with_debug_offsets(*python_layout(3, 12), runtime_313().data()), nullptr)
      << "versions before 3.13 publish none";
}

}  // namespace
}  // namespace memscope::capture
