// The files themselves: quoting, modes, what happens when the disk is full or the name is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <set>

#include "export/csv_writer.h"
#include "export/db_writer.h"
#include "export/draft_file.h"
#include "export/dump_story.h"
#include "export/dump_text.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WrittenRow row_named(std::string_view name) {
  WrittenRow row;
  row.id = 1;
  row.event = "OP_LAUNCH";
  row.type = "ATEN_START";
  row.name = name;
  row.time = 7;
  return row;
}

std::string csv_of(const WrittenRow& row) {
  const TestDirectory directory;
  auto writer = CsvWriter::create(directory / "dump.csv", {}, {});
  writer.value()->row(row);
  EXPECT_TRUE(writer.value()->finish().ok());
  const std::string text = read_bytes(directory / "dump.csv");
  return text.substr(text.find('\n') + 1);
}

// Each field by RFC 4180: quoted where it has a comma, a quote or a line end, quotes doubled.
TEST(CsvWriter, QuotesWhatNeedsQuotes) {
  for (const auto& [name, written] : std::vector<std::pair<std::string, std::string>>{
           {"aten::add", "aten::add"},
           {"a,b", "\"a,b\""},
           {"say \"hi\"", "\"say \"\"hi\"\"\""},
           {"two\nlines", "\"two\nlines\""},
           {"\r", "\"\r\""},
           {"=1+2", "=1+2"},  // it is data; 26.0 lost it
           {"内存,泄漏", "\"内存,泄漏\""},
           {" blank ", "\" blank \""},
           {"", ""}}) {
    EXPECT_EQ(csv_of(row_named(name)), "1,OP_LAUNCH,ATEN_START," + written + ",7,0,0,N/A,N/A,,,\n");
  }
}

TEST(CsvWriter, AnAttrThatWouldBreakItsBracesIsAJsonString) {
  WrittenRow row = row_named("x");
  const std::array<WrittenAttr, 3> attrs = {
      {{"size", "8", false}, {"owner", "PTA@a,b\"c\n", true}, {"label", "内存", true}}};
  row.attrs = attrs;
  EXPECT_EQ(csv_of(row),
            "1,OP_LAUNCH,ATEN_START,x,7,0,0,N/A,N/A,"
            "\"{size:8,owner:\"\"PTA@a,b\\\"\"c\\n\"\",label:内存}\",,\n");
}

TEST(DbWriter, KeepsTextsAsTheyAreAndJsonValid) {
  const TestDirectory directory;
  auto writer = DbWriter::create(directory / "dump.db", {}, false);
  ASSERT_TRUE(writer.ok());
  WrittenRow row = row_named("say \"hi\",\n=1+2 内存");
  row.quote_name = true;
  const std::array<WrittenAttr, 2> attrs = {{{"size", "8", false}, {"owner", "a\"\\\n\x02", true}}};
  row.attrs = attrs;
  row.python_stack = {true, "a.py(1): f\nb.py(2): g"};
  writer.value()->row(row);
  ASSERT_TRUE(writer.value()->finish().ok());
  EXPECT_THAT(
      query(directory / "dump.db",
            "SELECT Name, Attr, \"Call Stack(Python)\", \"Call "
            "Stack(C)\" FROM memscope_dump"),
      ElementsAre(ElementsAre("say \"hi\",\n=1+2 内存", R"({"size":"8","owner":"a\"\\\n\u0002"})",
                              "a.py(1): f\nb.py(2): g", "")));
}

TEST(DbWriter, OldSpellingsKeepTheCsvsQuotes) {
  const TestDirectory directory;
  auto writer = DbWriter::create(directory / "dump.db", {}, true);
  WrittenRow row = row_named("mark");
  row.quote_name = true;
  row.python_stack = {true, "a.py(1): f"};
  writer.value()->row(row);
  ASSERT_TRUE(writer.value()->finish().ok());
  EXPECT_THAT(query(directory / "dump.db",
                    "SELECT Name, \"Call Stack(Python)\", \"Call Stack(C)\" "
                    "FROM memscope_dump"),
              ElementsAre(ElementsAre("\"mark\"", "\"a.py(1): f\"", "")));
}

std::set<std::string> names_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST(DraftFile, HasItsNameOnlyWhenItIsWhole) {
  const TestDirectory directory;
  write_bytes(directory / "a.csv", "old");
  {
    auto draft = DraftFile::create(directory / "a.csv", {});
    ASSERT_TRUE(draft.ok());
    struct stat status {};
    ASSERT_EQ(fstat(draft.value().fd(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0600u);
    EXPECT_EQ(read_bytes(directory / "a.csv"), "old");
  }  // not committed
  EXPECT_THAT(names_in(directory.path()), ElementsAre("a.csv"));
  EXPECT_EQ(read_bytes(directory / "a.csv"), "old");
  auto draft = DraftFile::create(directory / "a.csv", {});
  ASSERT_EQ(write(draft.value().fd(), "new", 3), 3);
  ASSERT_TRUE(draft.value().commit().ok());
  EXPECT_THAT(names_in(directory.path()), ElementsAre("a.csv"));
  EXPECT_EQ(read_bytes(directory / "a.csv"), "new");
}

TEST(DraftFile, NeverReplacesAnInputWhateverItsName) {
  const TestDirectory directory;
  write_bytes(directory / "in.csv", "input");
  std::filesystem::create_hard_link(directory / "in.csv", directory / "other.csv");
  const auto draft = DraftFile::create(directory / "other.csv", {directory / "in.csv"});
  ASSERT_FALSE(draft.ok());
  EXPECT_THAT(draft.error().message, HasSubstr("other.csv is the input itself"));
}

// A full disk, played by a limit on the size of files: one line, and nothing of it stays.
class FullDisk : public ::testing::TestWithParam<DumpFormat> {
 protected:
  void SetUp() override {
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit small = old_;
    small.rlim_cur = 64 * 1024;
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
  }
  void TearDown() override { setrlimit(RLIMIT_FSIZE, &old_); }
  rlimit old_{};
};

TEST_P(FullDisk, IsOneLineAndLeavesNothing) {
  DumpStory story;
  for (uint64_t i = 1; i <= 3000; ++i) story.alloc(i, i * 64, 8);  // 100 B a row
  const TestDirectory directory;
  const auto done = story.dump(directory / "dump", GetParam());
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message,
              HasSubstr("cannot write " + (directory / "dump").string() + ": File too large"));
  EXPECT_THAT(names_in(directory.path()), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Formats, FullDisk, ::testing::Values(DumpFormat::kCsv, DumpFormat::kDb));

TEST(CleanText, IsValidUtf8WithoutNul) {
  EXPECT_EQ(clean_text("plain"), "plain");
  EXPECT_EQ(clean_text("é内"), "é内");
  EXPECT_EQ(clean_text("a\xff"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(clean_text(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(clean_text("\xed\xa0\x80").find('\xed'), std::string::npos);  // a lone surrogate
  EXPECT_EQ(clean_line("a\r\nb"), "a  b");
}

}  // namespace
}  // namespace memscope
