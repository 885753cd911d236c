#include "export/inefficient_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "analysis/inefficient.h"

namespace memscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kHeader =
    "ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,"
    "Call Stack(Python),Call Stack(C)\n";

class InefficientRows : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rows.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
  }
  void TearDown() override { fs::remove_all(directory); }

  fs::path write(const char* name, const std::string& text) {
    std::ofstream(directory / name, std::ios::binary) << text;
    return directory / name;
  }
  static std::string read(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // The block at 0x1000 is early, as in the rows of the tests.
  std::vector<InefficientRow> early(bool atb = false) const {
    return {{.pid = 7,
             .time = 1764753083997498270,
             .addr = 0x1000,
             .atb = atb,
             .types = Inefficiency::kEarlyAllocation}};
  }
  static std::string row(const char* type, const char* attr, int id = 1) {
    return std::to_string(id) + ",MALLOC," + type +
           ",N/A,1764753083997498270,7,7,0,0x0000000000001000," + attr + ",,\n";
  }
  fs::path directory;
};

TEST(AttrWithTypes, IsWrittenAsTheOriginalDoes) {
  EXPECT_EQ(attr_with_types("{size:8,used:8}", "early_allocation", false),
            "{size:8,used:8,inefficient_type:early_allocation}");
  EXPECT_EQ(attr_with_types(R"({"size":"8"})", "early_allocation,late_deallocation", true),
            R"({"size":"8","inefficient_type":"early_allocation,late_deallocation"})");
  EXPECT_EQ(attr_with_types("{}", "early_allocation", false),
            "{inefficient_type:early_allocation}");
  EXPECT_EQ(attr_with_types("", "early_allocation", true),
            R"({"inefficient_type":"early_allocation"})");
}

TEST(AttrWithTypes, WhatIsThereIsKeptAndSaidOnce) {
  const std::string once = attr_with_types("{size:8}", "late_deallocation", false);
  EXPECT_EQ(attr_with_types(once, "late_deallocation", false), once);
  EXPECT_EQ(attr_with_types(once, "early_allocation", false),
            "{size:8,inefficient_type:early_allocation,late_deallocation}");
  // In the middle, first, and as another writer quotes it.
  EXPECT_EQ(attr_with_types("{a:1,inefficient_type:early_allocation,late_deallocation,b:2}",
                            "temporary_idleness", false),
            "{a:1,b:2,inefficient_type:early_allocation,late_deallocation,temporary_idleness}");
  EXPECT_EQ(attr_with_types("{inefficient_type:late_deallocation,b:2}", "early_allocation", false),
            "{b:2,inefficient_type:early_allocation,late_deallocation}");
  EXPECT_EQ(attr_with_types(R"({a:1,inefficient_type:"early_allocation,late_deallocation"})",
                            "temporary_idleness", false),
            "{a:1,inefficient_type:early_allocation,late_deallocation,temporary_idleness}");
  EXPECT_EQ(attr_with_types(R"({"a":"1","inefficient_type":"early_allocation","b":"2"})",
                            "late_deallocation", true),
            R"({"a":"1","b":"2","inefficient_type":"early_allocation,late_deallocation"})");
}

TEST(AttrWithTypes, ALabelThatNamesTheKeyIsNoPair) {
  EXPECT_EQ(attr_with_types("{owner:my inefficient_type: x,size:8}", "early_allocation", false),
            "{owner:my inefficient_type: x,size:8,inefficient_type:early_allocation}");
}

TEST_F(InefficientRows, ACsvsOtherBytesStayAsTheyAre) {
  // A row of another layer at the same address and time, a broken row, text with quotes as the
  // original writes it, and no line end at the end.
  const std::string other = row("HAL", "\"{size:4096}\"", 1);
  const std::string broken = "3,MALLOC,PTA\n";
  const std::string mark = "4,MSTX,Mark,\"say \"hi\"\",1764753083997498271,7,7,0,N/A,,,\n";
  const std::string last =
      "5,FREE,PTA,N/A,1764753083997498272,7,7,0,0x0000000000001000,"
      "\"{size:8}\",,";
  const fs::path input =
      write("in.csv", kHeader + other + row("PTA", "\"{size:8}\"", 2) + broken + mark + last);
  const std::string before = read(input);
  const auto written = write_inefficient_rows(input, directory / "out.csv", early());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written.value().matched, 1u);
  EXPECT_EQ(written.value().changed, 1u);
  EXPECT_EQ(read(directory / "out.csv"),
            kHeader + other + row("PTA", "\"{size:8,inefficient_type:early_allocation}\"", 2) +
                broken + mark + last);
  EXPECT_EQ(read(input), before);
  // Again, on the result: nothing changes.
  const auto again = write_inefficient_rows(directory / "out.csv", directory / "2.csv", early());
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().matched, 1u);
  EXPECT_EQ(again.value().changed, 0u);
  EXPECT_EQ(read(directory / "2.csv"), read(directory / "out.csv"));
}

TEST_F(InefficientRows, ACsvIsChangedItselfWhenAsked) {
  const fs::path input = write("in.csv", kHeader + row("ATB", "\"{size:8}\""));
  ::chmod(input.c_str(), 0640);
  ASSERT_TRUE(write_inefficient_rows(input, input, early(true)));
  EXPECT_EQ(read(input), kHeader + row("ATB", "\"{size:8,inefficient_type:early_allocation}\""));
  EXPECT_EQ(static_cast<unsigned>(fs::status(input).permissions()), 0640u);
}

TEST_F(InefficientRows, ARowOfAnotherProcessTimeOrAddressIsAnother) {
  const fs::path input = write("in.csv", kHeader + row("PTA", "\"{size:8}\""));
  for (auto change :
       {+[](InefficientRow& r) { r.pid = 8; }, +[](InefficientRow& r) { ++r.time; },
        +[](InefficientRow& r) { ++r.addr; }, +[](InefficientRow& r) { r.atb = true; }}) {
    std::vector<InefficientRow> rows = early();
    change(rows[0]);
    const auto written = write_inefficient_rows(input, directory / "out.csv", rows);
    ASSERT_TRUE(written);
    EXPECT_EQ(written.value().matched, 0u);
    EXPECT_EQ(read(directory / "out.csv"), read(input));
  }
}

class InefficientDb : public InefficientRows {
 protected:
  void run(const fs::path& path, const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << (error ? error : "");
    sqlite3_free(error);
    sqlite3_close(db);
  }
  std::string attr(const fs::path& path, int id) {
    sqlite3* db = nullptr;
    sqlite3_stmt* statement = nullptr;
    std::string text = "?";
    sqlite3_open(path.c_str(), &db);
    const std::string sql =
        "SELECT \"Attr\" FROM memscope_dump WHERE \"ID\" = " + std::to_string(id);
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
      text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return text;
  }
  fs::path make(const char* name) {
    const fs::path path = directory / name;
    run(path,
        "CREATE TABLE memscope_dump (\"ID\" INTEGER, \"Event\" TEXT, \"Event Type\" TEXT, "
        "\"Name\" TEXT, \"Timestamp(ns)\" INTEGER, \"Process Id\" INTEGER, \"Thread Id\" INTEGER, "
        "\"Device Id\" TEXT, \"Ptr\" TEXT, \"Attr\" TEXT, \"Call Stack(Python)\" TEXT, "
        "\"Call Stack(C)\" TEXT);"
        "INSERT INTO memscope_dump VALUES(1,'MALLOC','PTA','N/A',1764753083997498270,7,7,'0',"
        "'0x0000000000001000','{\"size\":\"8\"}','','');"
        "INSERT INTO memscope_dump VALUES(2,'FREE','PTA','N/A',1764753083997498280,7,7,'0',"
        "'0x0000000000001000','{\"size\":\"8\"}','','');");
    return path;
  }
  static constexpr const char* kChanged = R"({"size":"8","inefficient_type":"early_allocation"})";
};

TEST_F(InefficientDb, ACopyIsWrittenAndTheInputStaysAsItIs) {
  const fs::path input = make("memscope_dump_1.db");
  const std::string before = read(input);
  const fs::path output = directory / "out.db";
  const auto written = write_inefficient_rows(input, output, early());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written.value().changed, 1u);
  EXPECT_EQ(attr(output, 1), kChanged);
  EXPECT_EQ(attr(output, 2), R"({"size":"8"})");
  EXPECT_EQ(read(input), before);
  const auto again = write_inefficient_rows(output, directory / "2.db", early());
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().changed, 0u);
}

TEST_F(InefficientDb, TheInputIsChangedWhenAsked) {
  const fs::path input = make("memscope_dump_1.db");
  ASSERT_TRUE(write_inefficient_rows(input, input, early()));
  EXPECT_EQ(attr(input, 1), kChanged);
}

TEST_F(InefficientDb, ATriggerIsNotRun) {
  const fs::path input = make("memscope_dump_1.db");
  run(input,
      "CREATE TRIGGER harm AFTER UPDATE ON memscope_dump BEGIN DELETE FROM memscope_dump; END;");
  ASSERT_TRUE(write_inefficient_rows(input, input, early()));
  EXPECT_EQ(attr(input, 1), kChanged);
  EXPECT_EQ(attr(input, 2), R"({"size":"8"})");
}

TEST_F(InefficientDb, AWalBesideTheInputIsPartOfItAndNothingIsLeftBesideTheOutput) {
  // A connection that is still open keeps its newest rows in the -wal.
  const fs::path input = make("memscope_dump_1.db");
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(input.c_str(), &writer), SQLITE_OK);
  sqlite3_exec(writer,
               "PRAGMA journal_mode=WAL; INSERT INTO memscope_dump VALUES(3,'MALLOC','PTA','N/A',"
               "1764753083997498270,9,7,'0','0x0000000000001000','{\"size\":\"16\"}','','')",
               nullptr, nullptr, nullptr);
  ASSERT_TRUE(fs::exists(input.string() + "-wal"));
  std::vector<InefficientRow> rows = early();
  rows[0].pid = 9;
  const fs::path output = directory / "out.db";
  const auto written = write_inefficient_rows(input, output, rows);
  sqlite3_close(writer);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(attr(output, 3), R"({"size":"16","inefficient_type":"early_allocation"})");
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name == "out.db" || name.starts_with("memscope_dump_1.db")) << name;
  }
}

TEST_F(InefficientRows, OtherFilesAreRefused) {
  const fs::path input = write("in.txt", "hello\n");
  const auto written = write_inefficient_rows(input, directory / "out", early());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("csv or db"));
  EXPECT_FALSE(fs::exists(directory / "out"));
}

TEST_F(InefficientDb, ColumnsGoByTheNamesThatTheTableHas) {
  // As csv readers do: other spellings of a column, in any order.
  const fs::path input = make("memscope_dump_1.db");
  run(input,
      "ALTER TABLE memscope_dump RENAME COLUMN \"Timestamp(ns)\" TO \"Timestamp\";"
      "ALTER TABLE memscope_dump RENAME COLUMN \"Process Id\" TO \"PROCESS ID\";");
  const auto written = write_inefficient_rows(input, input, early());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written.value().changed, 1u);
  EXPECT_THAT(attr(input, 1), HasSubstr("early_allocation"));
}

TEST_F(InefficientDb, ATableThatLacksAColumnIsAnError) {
  const fs::path input = make("memscope_dump_1.db");
  run(input, "ALTER TABLE memscope_dump DROP COLUMN \"Ptr\";");
  const auto written = write_inefficient_rows(input, input, early());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("has no column Ptr"));
}

TEST_F(InefficientDb, OneThatIsOpenElsewhereSaysWhatToDo) {
  const fs::path input = make("memscope_dump_1.db");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(input.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto written = write_inefficient_rows(input, input, early());
  sqlite3_close(other);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("another program has it open: close it there"));
}

}  // namespace
}  // namespace memscope
