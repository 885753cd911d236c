#include "trace/run_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

void make_trace(const fs::path& path, uint64_t began_s) {
  TraceBuilder builder(path, {.anchor = {0, 0, kEpochNs + began_s * 1'000'000'000}});
  ASSERT_TRUE(builder.finish().ok());
}

std::vector<std::string> names(const fs::path& input, WhichRuns which = WhichRuns::kNewest) {
  const auto found = find_processes(input, which);
  if (!found) return {found.error().message};
  std::vector<std::string> result;
  for (const fs::path& path : found.value()) result.push_back(path.filename());
  return result;
}

struct RunLayoutTest : testing::Test {
  RunLayoutTest() {
    make_trace(directory.path() / "run-b" / "my-host-10-900", 100);
    make_trace(directory.path() / "run-b" / "my-host-2-901", 100);
    make_trace(directory.path() / "run-b" / "my-host-2-901.1", 150);
    make_trace(directory.path() / "run-b" / "my-host-x-17", 100);
    make_trace(directory.path() / "run-a" / "my-host-x-5", 200);  // made later
    fs::create_directories(directory.path() / "msmemscope_5_1_ascend" / "device_0");
  }
  TestDirectory directory;
};

TEST_F(RunLayoutTest, ADirectoryOfRunsIsItsNewestRun) {
  EXPECT_THAT(names(directory.path()), ElementsAre("my-host-x-5"));
}

TEST_F(RunLayoutTest, AllRunsComeOldestFirst) {
  EXPECT_THAT(names(directory.path(), WhichRuns::kAll),
              ElementsAre("my-host-2-901", "my-host-2-901.1", "my-host-10-900", "my-host-x-17",
                          "my-host-x-5"));
}

TEST_F(RunLayoutTest, ARunIsAllItsProcessesByRank) {
  EXPECT_THAT(names(directory.path() / "run-b"),
              ElementsAre("my-host-2-901", "my-host-2-901.1", "my-host-10-900", "my-host-x-17"));
}

TEST_F(RunLayoutTest, AProcessIsItself) {
  const fs::path process = directory.path() / "run-b" / "my-host-x-17";
  EXPECT_THAT(names(process), ElementsAre("my-host-x-17"));
  EXPECT_THAT(names(process / kLogName), ElementsAre("trace.msm"));
  fs::rename(process / kLogName, process / "copy.bin");  // known by its first bytes
  EXPECT_THAT(names(process / "copy.bin"), ElementsAre("copy.bin"));
}

TEST_F(RunLayoutTest, WhatMayNotBeReadIsNoEmptyDirectory) {
  const fs::path run = directory.path() / "run-b";
  fs::permissions(run, fs::perms::none);
  fs::permissions(directory.path(), fs::perms::owner_all | fs::perms::others_all);
  const bool root = geteuid() == 0;  // who may read anything
  ASSERT_TRUE(!root || seteuid(65534) == 0);
  const std::string error = names(run).front();
  ASSERT_TRUE(!root || seteuid(0) == 0);
  fs::permissions(run, fs::perms::owner_all);
  EXPECT_THAT(error, HasSubstr("run-b: Permission denied"));
}

TEST_F(RunLayoutTest, WhatHoldsNoTraceIsAnError) {
  EXPECT_THAT(names(directory.path() / "none"), ElementsAre(HasSubstr("No such file")));
  EXPECT_THAT(names(directory.path() / "msmemscope_5_1_ascend"),
              ElementsAre(HasSubstr("no run in this directory")));
  write_bytes(directory / "x.txt", "hello, world");
  EXPECT_THAT(names(directory / "x.txt"), ElementsAre(HasSubstr("not a trace of MemScope")));
}

}  // namespace
}  // namespace memscope
