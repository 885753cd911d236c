// Where dumps go, and what is left where they cannot.
#include "cli/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "import/find_inputs.h"
#include "trace/synth.h"
#include "trace/test_directory.h"

namespace memscope::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::set<std::string> files_in(const fs::path& directory) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), directory).string());
  }
  return files;
}

ConvertRequest into(const fs::path& input, const fs::path& target) {
  ConvertRequest request;
  request.inputs = {input.string()};
  request.target = target.string() + "/";
  request.is_directory = true;
  request.quiet = true;
  return request;
}

// A run whose process has two devices, and its dump: a file each.
class TwoDevices {
 public:
  TwoDevices() {
    SynthOptions options;
    options.output = directory_ / "runs";
    options.steps = 3;
    options.devices = {"cpu", "npu:0"};
    run_ = synthesize(options).value().run;
    EXPECT_EQ(convert(into(run_, tree())), 0);
  }
  fs::path run() const { return run_; }
  fs::path tree() const { return directory_ / "tree"; }
  fs::path at(const char* name) const { return directory_ / name; }

 private:
  TestDirectory directory_;
  fs::path run_;
};

TEST(Convert, TheFilesOfOneProcessGoToOneDirectory) {
  // Two files make two inputs, but one process: its directory and its time are what they were.
  const TwoDevices made;
  ASSERT_THAT(files_in(made.tree()), SizeIs(2));
  EXPECT_EQ(convert(into(made.tree(), made.at("again"))), 0);
  EXPECT_EQ(files_in(made.at("again")), files_in(made.tree()));
}

TEST(Convert, TwoDumpsOfOneDeviceDoNotReplaceEachOther) {
  // Copies that lie together are told as one process; each is kept all the same.
  const TwoDevices made;
  fs::create_directory(made.at("copies"));
  for (const char* name : {"a.csv", "b.csv"}) {
    fs::copy_file(made.tree() / *files_in(made.tree()).begin(), made.at("copies") / name);
  }
  EXPECT_EQ(convert(into(made.at("copies"), made.at("again"))), 0);
  EXPECT_THAT(files_in(made.at("again")), SizeIs(2));
}

TEST(Convert, OneDeviceOfADumpIsThatFile) {
  const TwoDevices made;
  ConvertRequest request = into(made.tree(), made.at("cpu"));
  request.device = device_from_name("cpu");
  EXPECT_EQ(convert(request), 0);
  ASSERT_THAT(files_in(made.at("cpu")), SizeIs(1));
  EXPECT_NE(files_in(made.at("cpu")).begin()->find("device_cpu"), std::string::npos);
  request = into(made.tree(), made.at("cuda"));
  request.device = device_from_name("cuda:0");
  EXPECT_EQ(convert(request), 2);
}

TEST(Convert, NoDumpIsAddedToTheDumpsThatAreTheInput) {
  const TwoDevices made;
  const auto before = files_in(made.tree());
  EXPECT_EQ(convert(into(made.tree(), made.tree())), 2);
  EXPECT_EQ(convert(into(made.tree(), made.tree() / "deeper" / "still")), 2);
  EXPECT_EQ(files_in(made.tree()), before);
  EXPECT_FALSE(fs::exists(made.tree() / "deeper"));
  // A name that only begins alike is another directory, and traces are no dumps: beside them is
  // where a run's dumps belong.
  EXPECT_EQ(convert(into(made.tree(), made.at("tree-2"))), 0);
  EXPECT_EQ(convert(into(made.run(), made.run().parent_path())), 0);
}

TEST(Convert, AFailureLeavesNoDirectories) {
  const TwoDevices made;
  ConvertRequest request = into(made.tree(), made.at("new"));
  request.target = (made.at("new") / "a" / "b").string();
  request.first_step = request.last_step = 1000;
  EXPECT_EQ(convert(request), 2);
  EXPECT_FALSE(fs::exists(made.at("new")));
}

}  // namespace
}  // namespace memscope::cli
