#include "cli/output.h"

#include <fcntl.h>
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

TEST_F(WriteFile, ALinkStaysAndADeviceIsWrittenTo) {
  const fs::path report = directory_ / "report.txt", link = directory_ / "link";
  ASSERT_TRUE(write_file(report, "first").ok());
  fs::create_symlink(report, link);
  ASSERT_TRUE(write_file(link, "second").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(content(report), "second");

  const fs::path pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(write_file(pipe, "third").ok());
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 5);
  EXPECT_STREQ(text, "third");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(WriteFile, AnInputIsNotReplaced) {
  const fs::path dump = directory_ / "dump.csv";
  const std::string rows =
      "ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr\n"
      "1,MALLOC,PTA,N/A,1764464000000000000,1,1,0,0x1000,\"{allocation_id:1,size:64}\"\n";
  std::ofstream(dump) << rows;
  const auto refused = write_file(dump, "a report");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("inputs are never changed"));
  EXPECT_EQ(content(dump), rows);
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
