// What MindStudio Insight needs of a db (reference, section 3.5): its nine rules, each checked as
// it reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "export/dump_story.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

// A run with everything: two devices, blocks that end, stay, were there before and were freed while
// nothing was recorded; owners, labels that try to break out, steps, marks, operators, calls.
class Insight : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr uint64_t kBegin = 1'764'753'365'000'000'000;
    story_.window(kBegin, kStartWindow);
    story_.seed(kBegin, 0x10, 64, 0, kNpu);
    story_.pool_alloc(kBegin + 10, 0x20, 512, 576, 4096, kNpu);
    story_.record(kBegin + 15, OwnerRecord{.addr = 0x20,
                                           .birth = kBegin + 10,
                                           .owner = "PTA@model@weight",
                                           .label = "a\"b\\c,{d:e}\n\x01é\xff"});
    story_.alloc(kBegin + 20, 0x20, 32);  // on the CPU: the same address, another device
    story_.mark(kBegin + 25, "say \"hi\", =1+2\nbye");
    story_.record(kBegin + 30, LaunchRecord{.name = "aten::add"});
    story_.free(kBegin + 40, 0x20, kNpu);
    story_.step(kBegin + 45);
    story_.pool_alloc(kBegin + 50, 0x20, 256, 320, 4096, kNpu);  // the address again
    story_.pool_alloc(kBegin + 55, 0x30, 128, 448, 4096, kNpu);
    story_.record(kBegin + 57,
                  PythonTraceRecord{
                      .name = "a.py(1): f", .start_ticks = kBegin + 50, .end_ticks = kBegin + 57});
    story_.record(kBegin + 58, PythonTraceRecord{.name = "a.py(2): too quick",
                                                 .start_ticks = kBegin + 58,
                                                 .end_ticks = kBegin + 58});
    story_.window(kBegin + 60, kStopWindow);
    story_.window(kBegin + 80, kStartWindow);
    story_.seed(kBegin + 80, 0x20, 256, kBegin + 50, kNpu);
    story_.window(kBegin + 90, kStopWindow);

    DumpFiles files(directory_.path(), true, DumpFormat::kDb, false, {});
    DumpRequest request;
    request.settings.python_depth = 50;
    const auto report = story_.dump(files, request);
    ASSERT_TRUE(report.ok()) << report.error().message;
    for (const auto& file : report.value().files) {
      (file.path.find("device_cpu") == std::string::npos ? npu_ : cpu_) = file.path;
    }
  }

  TestDirectory directory_;
  DumpStory story_;
  std::filesystem::path npu_, cpu_;
};

TEST_F(Insight, Rule1TheNameAndTheColumnsByPosition) {
  EXPECT_THAT(npu_.filename().string(), MatchesRegex("memscope_dump_[0-9]+\\.db"));
  std::vector<std::string> names;
  for (const TextRow& row : query(npu_, "PRAGMA table_info(memscope_dump)")) {
    names.push_back(row[1] + " " + row[2]);
  }
  EXPECT_THAT(names, ElementsAre("ID INTEGER", "Event TEXT", "Event Type TEXT", "Name TEXT",
                                 "Timestamp(ns) INTEGER", "Process Id INTEGER", "Thread Id INTEGER",
                                 "Device Id TEXT", "Ptr TEXT", "Attr TEXT",
                                 "Call Stack(Python) TEXT", "Call Stack(C) TEXT"));
  // Numbers are stored as numbers, texts as texts, and nothing is null.
  EXPECT_THAT(query(npu_,
                    "SELECT * FROM memscope_dump WHERE typeof(ID)||typeof(Event)||typeof("
                    "\"Timestamp(ns)\")||typeof(\"Process Id\")||typeof(\"Thread Id\")||"
                    "typeof(\"Device Id\")||typeof(Attr)||typeof(\"Call Stack(C)\") <> "
                    "'integertextintegerintegerintegertexttexttext'"),
              IsEmpty());
}

TEST_F(Insight, Rule2TheDevices) {
  const std::string sql =
      "SELECT DISTINCT \"Device Id\" FROM memscope_dump WHERE \"Device Id\" NOT IN "
      "('N/A','','host')";
  EXPECT_THAT(query(npu_, sql), ElementsAre(ElementsAre("0")));
  EXPECT_THAT(query(cpu_, sql), ElementsAre(ElementsAre("cpu")));
}

TEST_F(Insight, Rule3AttrIsJsonWithStringsAndASize) {
  size_t blocks = 0;
  for (const auto& path : {npu_, cpu_}) {
    for (const TextRow& row : query(path, "SELECT Event, Attr FROM memscope_dump")) {
      const auto attr = nlohmann::json::parse(row[1], nullptr, false);
      ASSERT_TRUE(attr.is_object()) << row[1];
      for (const auto& [key, value] : attr.items()) EXPECT_TRUE(value.is_string()) << row[1];
      if (row[0] != "MALLOC" && row[0] != "FREE") continue;
      ++blocks;
      EXPECT_GT(std::stoull(attr["size"].get<std::string>()), 0u) << row[1];
    }
  }
  // npu: the seed; 0x20 twice, freed once; 0x30; what was freed in the pause, 0x10 and 0x30: 7.
  // cpu: one, freed in the pause: 2.
  EXPECT_EQ(blocks, 9u);
}

// As Insight does: by device, Ptr and type; a second MALLOC on an open pair would be ignored.
TEST_F(Insight, Rule4EveryFreeHasItsMalloc) {
  std::map<std::string, std::string> open;  // Ptr and type -> size
  for (const TextRow& row : query(npu_,
                                  "SELECT Event, Ptr || \"Event Type\", Attr FROM "
                                  "memscope_dump WHERE Event IN ('MALLOC','FREE') ORDER BY "
                                  "\"Timestamp(ns)\"")) {
    const std::string size = nlohmann::json::parse(row[2])["size"];
    if (row[0] == "MALLOC") {
      EXPECT_TRUE(open.emplace(row[1], size).second) << row[1] << " twice";
    } else {
      ASSERT_EQ(open.count(row[1]), 1u) << row[1] << " was not open";
      EXPECT_EQ(open[row[1]], size);
      open.erase(row[1]);
    }
  }
  // Alive at the end: 0x20, which was seeded again.
  EXPECT_THAT(open, ElementsAre(testing::Pair("0x0000000000000020PTA", "256")));
}

TEST_F(Insight, Rule5ABlocksEventsAreFoundByText) {
  // allocation_id 2 is the first block at 0x20 of the NPU.
  EXPECT_THAT(query(npu_,
                    "SELECT Event FROM memscope_dump WHERE Attr LIKE "
                    "'%\"allocation_id\":\"2\"%' ORDER BY ID"),
              ElementsAre(ElementsAre("MALLOC"), ElementsAre("FREE")));
}

TEST_F(Insight, Rule6OwnersAreItsNamesWithTheLabelBelow) {
  std::set<std::string> owners;
  for (const TextRow& row : query(npu_, "SELECT Attr FROM memscope_dump WHERE Event='MALLOC'")) {
    owners.insert(nlohmann::json::parse(row[0]).value("owner", ""));
  }
  // A byte that is no UTF-8 is U+FFFD; the rest of the label is as it was.
  EXPECT_THAT(owners, ElementsAre("PTA", "PTA@model@weight@a\"b\\c,{d:e}\n\x01é\xEF\xBF\xBD"));
}

TEST_F(Insight, Rule7TimesArePositiveRiseAndFit) {
  const auto range = query(npu_,
                           "SELECT min(\"Timestamp(ns)\") > 0, max(\"Timestamp(ns)\") > "
                           "min(\"Timestamp(ns)\"), max(\"Timestamp(ns)\") < 9223372036854775807 "
                           "FROM memscope_dump");
  EXPECT_THAT(range, ElementsAre(ElementsAre("1", "1", "1")));
  const auto types = query(npu_,
                           "SELECT DISTINCT \"Event Type\" FROM memscope_dump WHERE Event = "
                           "'MALLOC'");
  EXPECT_THAT(types, ElementsAre(ElementsAre("PTA")));
  // In the order of the file, too, with rising IDs.
  EXPECT_THAT(query(npu_,
                    "SELECT a.ID FROM memscope_dump a JOIN memscope_dump b ON b.rowid = "
                    "a.rowid + 1 WHERE b.ID <= a.ID OR b.\"Timestamp(ns)\" < "
                    "a.\"Timestamp(ns)\""),
              IsEmpty());
}

TEST_F(Insight, Rule8CallsEndAfterTheyStartAndTakeADepth) {
  EXPECT_THAT(query(npu_,
                    "SELECT * FROM python_trace_4711 WHERE CAST(\"EndTime(ns)\" AS INTEGER) "
                    "<= CAST(\"StartTime(ns)\" AS INTEGER)"),
              IsEmpty());
  EXPECT_THAT(query(npu_,
                    "SELECT FuncInfo, typeof(\"StartTime(ns)\"), \"Thread Id\", \"Process "
                    "Id\" FROM python_trace_4711"),
              ElementsAre(ElementsAre("a.py(1): f", "text", "4711", "4711"),
                          ElementsAre("a.py(2): too quick", "text", "4711", "4711")));
  EXPECT_THAT(query(npu_, "ALTER TABLE python_trace_4711 ADD COLUMN Depth INTEGER"), IsEmpty());
}

TEST_F(Insight, Rule9TheFileTakesItsTablesAndNothingLiesBesideIt) {
  EXPECT_THAT(query(npu_,
                    "PRAGMA journal_mode=WAL; CREATE TABLE memory_block (id INTEGER NOT NULL "
                    "PRIMARY KEY AUTOINCREMENT, deviceId TEXT(255)); INSERT INTO memory_block "
                    "(deviceId) VALUES ('0'); SELECT deviceId FROM memory_block"),
              ElementsAre(ElementsAre("wal"), ElementsAre("0")));
  EXPECT_EQ(::access(npu_.c_str(), W_OK), 0);
  size_t beside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cpu_.parent_path())) {
    beside += entry.path() != cpu_;
  }
  EXPECT_EQ(beside, 0u);
  EXPECT_THAT(query(cpu_, "PRAGMA user_version; PRAGMA journal_mode; PRAGMA integrity_check"),
              ElementsAre(ElementsAre("0"), ElementsAre("delete"), ElementsAre("ok")));
}

}  // namespace
}  // namespace memscope
