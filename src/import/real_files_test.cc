// Four files that msMemScope wrote, where they lie beside the checkout. The numbers were counted by
// another program: Python's csv and sqlite3, rows sorted by timestamp and ID, blocks paired by
// event type and address.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/open_input.h"
#include "replay/replay.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct Counted {
  std::vector<Input> inputs;
  std::vector<ReplayResult> replays;

  explicit Counted(const std::string& name) {
    const auto path =
        std::filesystem::path(__FILE__).parent_path() / "../../../shared/data/memscope" / name;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return;
    auto opened = open_input(path);
    EXPECT_TRUE(opened.ok());
    if (!opened) return;
    inputs = std::move(opened).value();
    for (Input& input : inputs) {
      replays.push_back(input.visit([](auto& source) { return replay(source, {}); }));
    }
  }
  // "pool npu:0: 4 blocks, 3072 B", what is alive at the end.
  std::vector<std::string> alive(size_t input) const {
    std::vector<std::string> lines;
    for (const Pool& pool : replays[input].pools) {
      lines.push_back(std::string(layer_name(pool.where.layer)) + " " +
                      device_name(pool.where.device) + ": " + std::to_string(pool.live_blocks) +
                      " blocks, " + std::to_string(pool.live_bytes) + " B");
    }
    return lines;
  }
};

TEST(RealFiles, Baseline) {
  const Counted file("compare_baseline.csv");
  if (file.inputs.empty()) GTEST_SKIP() << "no file";
  ASSERT_THAT(file.inputs, SizeIs(1));
  EXPECT_EQ(file.inputs[0].info().process->pid, 3101864u);
  EXPECT_EQ(file.inputs[0].info().ended, "stop");
  EXPECT_THAT(file.inputs[0].damage(), IsEmpty());
  EXPECT_EQ(file.inputs[0].imported_file()->rows, 121u);
  EXPECT_EQ(file.replays[0].events, 39u);  // 23 MALLOC, 16 FREE
  EXPECT_EQ(file.replays[0].unknown_frees, 0u);
  EXPECT_EQ(file.replays[0].ambiguous, 0u);
  EXPECT_EQ(file.replays[0].range.first, 1764753083996495030u);
  EXPECT_EQ(file.replays[0].range.last, 1764753084535647530u);
  EXPECT_THAT(file.alive(0), UnorderedElementsAre("driver npu:0: 3 blocks, 7009972 B",
                                                  "pool npu:0: 4 blocks, 3072 B"));
}

TEST(RealFiles, Leaks) {
  const Counted file("compare_leaks.csv");
  if (file.inputs.empty()) GTEST_SKIP() << "no file";
  ASSERT_THAT(file.inputs, SizeIs(1));
  EXPECT_EQ(file.inputs[0].info().process->pid, 3290097u);
  EXPECT_EQ(file.inputs[0].imported_file()->rows, 130u);
  EXPECT_EQ(file.replays[0].events, 40u);  // 25 MALLOC, 15 FREE
  EXPECT_EQ(file.replays[0].unknown_frees, 0u);
  EXPECT_THAT(file.alive(0), UnorderedElementsAre("driver npu:0: 4 blocks, 25884340 B",
                                                  "pool npu:0: 6 blocks, 8003584 B"));
}

TEST(RealFiles, OldFormatOfTwoProcesses) {
  // Microseconds, decimal addresses, frees without a device, memory of the host as HAL.
  const Counted file("old_format_step1.csv");
  if (file.inputs.empty()) GTEST_SKIP() << "no file";
  ASSERT_THAT(file.inputs, SizeIs(2));
  EXPECT_EQ(file.inputs[0].imported_file()->rows, 330u);
  EXPECT_THAT(file.inputs[0].damage(), IsEmpty());
  EXPECT_EQ(file.inputs[0].info().process->pid, 2523740u);
  EXPECT_EQ(file.replays[0].events, 47u);  // 35 MALLOC, 12 FREE
  EXPECT_EQ(file.replays[0].unknown_frees, 6u);
  EXPECT_EQ(file.replays[0].range.first, 1746006014162153000u);  // ACL is initialised
  EXPECT_THAT(file.alive(0), UnorderedElementsAre("driver npu:0: 12 blocks, 23138306 B",
                                                  "driver npu:1: 2 blocks, 18907136 B",
                                                  "pinned cpu: 3 blocks, 11341824 B",
                                                  "pool npu:1: 12 blocks, 110080 B"));
  EXPECT_EQ(file.inputs[1].info().process->pid, 2523738u);
  EXPECT_EQ(file.replays[1].events, 265u);  // 254 MALLOC, 11 FREE
  EXPECT_EQ(file.replays[1].unknown_frees, 1u);
  EXPECT_THAT(file.alive(1), UnorderedElementsAre("driver npu:0: 24 blocks, 37027306 B",
                                                  "pinned cpu: 1 blocks, 4096 B",
                                                  "pool npu:0: 219 blocks, 3649536 B"));
}

TEST(RealFiles, HostPinnedDb) {
  const Counted file("host_pinned.db");
  if (file.inputs.empty()) GTEST_SKIP() << "no file";
  ASSERT_THAT(file.inputs, SizeIs(1));
  EXPECT_EQ(file.inputs[0].info().kind, InputKind::kDb);
  EXPECT_EQ(file.inputs[0].info().process->pid, 1116991u);
  EXPECT_EQ(file.inputs[0].imported_file()->rows, 10u);
  EXPECT_EQ(file.replays[0].events, 7u);  // 6 MALLOC, 1 FREE
  EXPECT_THAT(file.alive(0), ElementsAre("pinned cpu: 5 blocks, 19664896 B"));
  // The user's line is on the stack of every block.
  const StackTable& stacks = file.inputs[0].stacks();
  const StringTable& strings = file.inputs[0].strings();
  for (const LiveBlock& block : file.replays[0].live) {
    const auto frames = stacks.frames(file.replays[0].groups[block.group].stack);
    ASSERT_FALSE(frames.empty());
    const Frame& outermost = stacks.frame(frames.back());
    EXPECT_EQ(strings.text(outermost.file), "/home/user/a.py");
    EXPECT_EQ(outermost.line, 11u);
  }
}

}  // namespace
}  // namespace memscope
