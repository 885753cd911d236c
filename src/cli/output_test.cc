#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;

class WriteFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 ("memscope_output_test_" + std::to_string(getpid()));  // tests run side by side
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string content(const fs::path& path) const {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  fs::path directory_;
};

TEST_F(WriteFile, AppearsWholeAndPrivate) {
  const fs::path path = directory_ / "report.txt";
  ASSERT_TRUE(write_file(path, "first").ok());
  ASSERT_TRUE(write_file(path, "second").ok());
  EXPECT_EQ(content(path), "second");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(files(), 1u);  // no draft stays behind
}

TEST_F(WriteFile, WhatCannotBeWrittenIsOneLineAndLeavesNothing) {
  const auto missing = write_file(directory_ / "no" / "report.txt", "x");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, testing::HasSubstr("report.txt: No such file"));
  const fs::path taken = directory_ / "taken";
  fs::create_directories(taken / "inside");
  EXPECT_FALSE(write_file(taken, "x").ok());
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace memscope::cli
