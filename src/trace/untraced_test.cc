#include "trace/untraced.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace memscope {
namespace {

namespace fs = std::filesystem;

class UntracedTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(run_); }
  void TearDown() override { fs::remove_all(run_); }
  static std::string line(const std::string& program, int pid) {
    return "{\"program\":\"" + program +
           "\",\"why\":\"is statically linked\",\"pid\":" + std::to_string(pid) +
           ",\"parent\":5}\n";
  }
  bool add(const std::string& text) { return add_untraced(run_.c_str(), text, untraced_key(text)); }
  const fs::path run_ =
      fs::path(testing::TempDir()) / ("memscope_untraced_test_" + std::to_string(getpid()));
};

TEST_F(UntracedTest, AProgramIsListedOnceWithItsFirstProcess) {
  EXPECT_TRUE(add(line("/bin/a", 7)));
  EXPECT_TRUE(add(line("/bin/a", 8)));
  EXPECT_TRUE(add(line("/bin/a b", 9)));
  const auto found = read_untraced(run_);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].program, "/bin/a");
  EXPECT_EQ(found[0].why, "is statically linked");
  EXPECT_EQ(found[0].pid, 7);
  EXPECT_EQ(found[0].parent, 5);
  EXPECT_EQ(found[1].program, "/bin/a b");
}

TEST_F(UntracedTest, ThousandsOfProgramsStayWithin64KiB) {
  for (int i = 0; i < 3000; ++i) add(line("/a/program/with/a/name/" + std::to_string(i), i));
  EXPECT_LE(fs::file_size(run_ / kUntracedName), 64u << 10);
  EXPECT_GT(read_untraced(run_).size(), 500u);
  EXPECT_FALSE(add(line("/one/more", 1)));
  EXPECT_TRUE(add(line("/a/program/with/a/name/0", 1))) << "it is there";
}

TEST_F(UntracedTest, ARunWithoutADirectoryGetsNone) {
  EXPECT_FALSE(add_untraced((run_ / "nowhere").c_str(), line("/bin/a", 7), "/bin/a"));
  EXPECT_FALSE(fs::exists(run_ / "nowhere"));
  EXPECT_TRUE(read_untraced(run_ / "nowhere").empty());
}

TEST_F(UntracedTest, LinesThatMakeNoSenseAreLeftOut) {
  std::ofstream(run_ / kUntracedName) << "nonsense\n{\"program\":\"/bin/a\"}\n"
                                      << line("/bin/b", 3) << "{\"program\":\"/bin/c\",\"why\":\"";
  const auto found = read_untraced(run_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].program, "/bin/b");
}

}  // namespace
}  // namespace memscope
