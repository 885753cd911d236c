#include "import/find_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/test_dumps.h"
#include "trace/synth.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Tree {
 public:
  // A dump at a path below the root.
  void add(const std::string& path, const std::string& text) {
    const auto file = directory_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    write_bytes(file, text);
  }
  void add_dump(const std::string& path) {
    add(path, std::string(kHeader) + "1,FREE,PTA,N/A,1,9,9,0,0x1,,,\n");
  }
  std::vector<std::string> found(const std::string& path = "") {
    const auto result = find_inputs(directory_.path() / path);
    if (!result) return {"error: " + result.error().message};
    std::vector<std::string> names;
    for (const auto& each : result.value()) {
      names.push_back(each.lexically_relative(directory_.path()).string());
    }
    return names;
  }
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  TestDirectory directory_;
};

TEST(FindInputs, ATreeOfDumps) {
  Tree tree;
  tree.add_dump("out/msmemscope_9_1_ascend/device_0/dump/memscope_dump_1.csv");
  tree.add_dump("out/msmemscope_9_1_ascend/device_1/dump/memscope_dump_1.csv");
  tree.add_dump("out/msmemscope_9_1_ascend/device_cpu/dump/memscope_dump_1.csv");
  tree.add_dump("out/msmemscope_8_1_ascend/device_0/dump/memscope_dump_1.csv");
  tree.add("out/msmemscope_9_1_ascend/device_0/dump/python_trace_1.csv",
           "FuncInfo,StartTime(ns),EndTime(ns),Thread Id,Process Id\n");
  tree.add("out/msmemscope_9_1_ascend/config.json", "{}");
  tree.add("out/compare/memory_compare_1.csv", ",,,Base,Compare\nEvent,Name,Device Id\n");
  EXPECT_THAT(tree.found("out"),
              ElementsAre("out/msmemscope_8_1_ascend/device_0/dump/memscope_dump_1.csv",
                          "out/msmemscope_9_1_ascend/device_0/dump/memscope_dump_1.csv",
                          "out/msmemscope_9_1_ascend/device_1/dump/memscope_dump_1.csv",
                          "out/msmemscope_9_1_ascend/device_cpu/dump/memscope_dump_1.csv"));
  EXPECT_THAT(tree.found("out/msmemscope_9_1_ascend"), SizeIs(3));
  EXPECT_THAT(tree.found("out/msmemscope_9_1_ascend/device_0"), SizeIs(1));
  EXPECT_THAT(tree.found("out/msmemscope_9_1_ascend/device_0/dump"), SizeIs(1));
}

TEST(FindInputs, AFileIsToldByWhatIsInIt) {
  Tree tree;
  tree.add_dump("results.txt");
  tree.add("header only", std::string(kHeader));
  tree.add("db", std::string("SQLite format 3\0", 16));
  tree.add("csv.csv", "a,b\n1,2\n");
  EXPECT_THAT(tree.found("results.txt"), ElementsAre("results.txt"));
  EXPECT_EQ(file_kind(tree.path() / "results.txt"), FileKind::kCsv);
  EXPECT_EQ(file_kind(tree.path() / "header only"), FileKind::kCsv);
  EXPECT_EQ(file_kind(tree.path() / "db"), FileKind::kDb);
  EXPECT_EQ(file_kind(tree.path() / "csv.csv"), FileKind::kUnknown);
  EXPECT_EQ(file_kind(tree.path() / "gone"), FileKind::kUnknown);
}

TEST(FindInputs, TracesComeBeforeDumps) {
  Tree tree;
  ASSERT_TRUE(synthesize({.output = tree.path() / "out", .run_id = "1", .steps = 1}).ok());
  tree.add_dump("out/msmemscope_9_1_ascend/device_0/dump/memscope_dump_1.csv");
  const auto found = tree.found("out");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0], HasSubstr("run-1"));
}

TEST(FindInputs, NothingThere) {
  Tree tree;
  tree.add("readme", "x");
  EXPECT_THAT(tree.found()[0], HasSubstr("error: "));
  EXPECT_THAT(tree.found()[0], HasSubstr("no run in this directory"));
  EXPECT_THAT(tree.found("gone")[0], HasSubstr("No such file"));
}

}  // namespace
}  // namespace memscope
