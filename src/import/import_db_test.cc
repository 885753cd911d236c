// A db of msMemScope, and databases that are none or mean harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <set>

#include "import/db_rows.h"
#include "import/test_dumps.h"
#include "trace/records.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kTable =
    R"sql(("ID" INTEGER, "Event" TEXT, "Event Type" TEXT, "Name" TEXT, "Timestamp(ns)" INTEGER,
"Process Id" INTEGER, "Thread Id" INTEGER, "Device Id" TEXT, "Ptr" TEXT, "Attr" TEXT,
"Call Stack(Python)" TEXT, "Call Stack(C)" TEXT);)sql";

// A db made by SQL, closed.
class MadeDb {
 public:
  explicit MadeDb(const std::string& sql, const char* name = "memscope_dump_1.db") {
    path_ = directory_ / name;
    run(sql);
  }
  void run(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_close(db);
  }
  const std::filesystem::path& path() const { return path_; }
  std::set<std::string> beside() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path())) {
      names.insert(entry.path().filename());
    }
    return names;
  }

 private:
  TestDirectory directory_;
  std::filesystem::path path_;
};

std::string error_of(const MadeDb& db) {
  const auto opened = open_input(db.path());
  return opened ? "" : opened.error().message;
}

std::string create(const std::string& table = "memscope_dump") {
  return "CREATE TABLE " + table + " " + kTable;
}

const char* const kTwoRows = R"sql(
INSERT INTO memscope_dump VALUES (2,'FREE','PTA','N/A',1764753083000000070,9,9,'0','0x0000000000000010',
  '{"allocation_id":"1","addr":"0x0000000000000010","size":"64","used":"0","total":"128"}','','');
INSERT INTO memscope_dump VALUES (1,'MALLOC','PTA','N/A',1764753083000000030,9,9,'0','0x0000000000000010',
  '{"allocation_id":"1","addr":"0x0000000000000010","size":"64","used":"64","total":"128","owner":"PTA@my "big" one"}',
  'a.py(3): f','');
)sql";

void expect_the_two(const std::filesystem::path& path) {
  auto opened = open_input(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  ASSERT_THAT(opened.value(), SizeIs(1));
  Input& input = opened.value()[0];
  EXPECT_EQ(input.info().kind, InputKind::kDb);
  std::vector<EventKind> kinds;
  std::string owner, function;
  input.visit([&](auto& source) {
    std::vector<Event> batch(10);
    while (const size_t count = source.next_batch(batch)) {
      for (size_t i = 0; i < count; ++i) {
        kinds.push_back(batch[i].kind);
        if (const auto record = decode_record<OwnerRecord>(batch[i].words);
            record && batch[i].kind == EventKind::kRecord) {
          owner = record->owner;
        }
        if (batch[i].kind != EventKind::kAlloc) continue;
        const auto frame = source.stacks().frame(source.stacks().innermost(batch[i].stack));
        function = source.strings().text(frame.function);
      }
    }
  });
  EXPECT_THAT(kinds, ElementsAre(EventKind::kAlloc, EventKind::kRecord, EventKind::kFree));
  EXPECT_EQ(owner, "PTA@my \"big\" one");
  EXPECT_EQ(function, "f");
}

TEST(ImportDb, RowsOfTheNewTable) {
  const MadeDb db(create() + kTwoRows);
  expect_the_two(db.path());
  EXPECT_THAT(db.beside(), ElementsAre("memscope_dump_1.db"));
}

TEST(ImportDb, TheOldTableAndATableWithOtherTables) {
  // leaks_dump has the same columns; of both the new one is meant; Insight's own do no harm.
  expect_the_two(MadeDb(create("leaks_dump") +
                        "INSERT INTO leaks_dump VALUES (7,'','','',0,0,0,'','','','','');" +
                        create() + kTwoRows + "CREATE TABLE memory_block (id INTEGER);")
                     .path());
  expect_the_two(
      MadeDb(create() + kTwoRows + "ALTER TABLE memscope_dump RENAME TO leaks_dump;").path());
}

TEST(ImportDb, ColumnsByNameElseByPlace) {
  expect_the_two(
      MadeDb(
          create() + kTwoRows +
          R"sql(CREATE TABLE t AS SELECT 1 AS extra, "Attr", "Ptr", "Event Type", "Event", "Name",
"Timestamp(ns)", "Process Id", "Thread Id", "Device Id", "ID", "Call Stack(Python)" FROM memscope_dump;
DROP TABLE memscope_dump; ALTER TABLE t RENAME TO memscope_dump;)sql")
          .path());
  expect_the_two(
      MadeDb("CREATE TABLE memscope_dump (a,b,c,d,e,f,g,h,i,j,k,l);" + std::string(kTwoRows))
          .path());
}

TEST(ImportDb, APrimaryKeyAndATableWithoutRowids) {
  std::string table = create();
  table.replace(table.find("\"ID\" INTEGER"), 12, "\"ID\" INTEGER PRIMARY KEY");
  expect_the_two(MadeDb(table + kTwoRows).path());
  table.replace(table.rfind(");"), 2, ") WITHOUT ROWID;");
  expect_the_two(MadeDb(table + kTwoRows).path());
}

TEST(ImportDb, WhatIsInTheWalCountsAndNothingIsWrittenBeside) {
  // A writer that was killed: the rows are in the -wal alone.
  MadeDb db("PRAGMA journal_mode=WAL;" + create());
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(db.path().c_str(), &writer), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(writer, kTwoRows, nullptr, nullptr, nullptr), SQLITE_OK);
  TestDirectory elsewhere;
  for (const char* suffix : {"", "-wal"}) {
    std::filesystem::copy_file(db.path().string() + suffix,
                               (elsewhere / "memscope_dump_1.db").string() + suffix);
  }
  sqlite3_close(writer);
  const std::string before = read_bytes(elsewhere / "memscope_dump_1.db-wal");
  ASSERT_FALSE(before.empty());
  expect_the_two(elsewhere / "memscope_dump_1.db");
  // The -wal lies beside the file, not beside a link to it.
  TestDirectory links;
  std::filesystem::create_symlink(elsewhere / "memscope_dump_1.db", links / "link.db");
  expect_the_two(links / "link.db");
  EXPECT_EQ(read_bytes(elsewhere / "memscope_dump_1.db-wal"), before);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(elsewhere.path())) {
    names.insert(entry.path().filename());
  }
  EXPECT_THAT(names, ElementsAre("memscope_dump_1.db", "memscope_dump_1.db-wal"));
}

TEST(ImportDb, PythonFunctions) {
  MadeDb db(create() + kTwoRows + R"sql(CREATE TABLE python_trace_9 ("FuncInfo" TEXT,
"StartTime(ns)" TEXT, "EndTime(ns)" TEXT, "Thread Id" INTEGER, "Process Id" INTEGER, "Depth" INTEGER);
INSERT INTO python_trace_9 VALUES ('a.py(3): f','10','20',9,9,0),('stop: g','30','N/A',9,9,0),
('h','N/A','N/A',9,9,0);)sql");
  auto opened = open_input(db.path());
  ASSERT_TRUE(opened.ok());
  std::vector<std::string> spans;
  opened.value()[0].visit([&](auto& source) {
    source.scan(kind_bit(Kind::kPythonTrace), [&](const Event& event) {
      const auto span = decode_record<PythonTraceRecord>(event.words);
      spans.push_back(std::string(span->name) + " " + std::to_string(span->start_ticks));
    });
  });
  EXPECT_THAT(spans, ElementsAre("a.py(3): f 10", "stop: g 30"));
}

TEST(ImportDb, ViewsAndVirtualTablesAreRefused) {
  EXPECT_THAT(error_of(MadeDb(create("t") + "CREATE VIEW memscope_dump AS SELECT * FROM t;")),
              HasSubstr("without an ordinary table memscope_dump or leaks_dump"));
  EXPECT_THAT(error_of(MadeDb("CREATE VIRTUAL TABLE memscope_dump USING fts5(ID, Event);")),
              HasSubstr("without an ordinary table memscope_dump or leaks_dump"));
  EXPECT_THAT(error_of(MadeDb("CREATE TABLE other (a);")),
              HasSubstr("without an ordinary table memscope_dump or leaks_dump"));
  // sqlite_schema may lie: a view that is filed as a table.
  EXPECT_NE(error_of(MadeDb(create("t") +
                            "CREATE VIEW memscope_dump AS SELECT * FROM t;"
                            "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET type='table' "
                            "WHERE name='memscope_dump';")),
            "");
}

TEST(ImportDb, WhatASchemaRunsIsNotRun) {
  // A generated column with a function, a trigger, an index on an expression: nothing of it is
  // needed to read the rows.
  const std::string extra =
      "CREATE TRIGGER t1 AFTER INSERT ON memscope_dump BEGIN DELETE FROM memscope_dump; END;"
      "CREATE INDEX i1 ON memscope_dump (upper(Name));";
  expect_the_two(MadeDb(create() + kTwoRows + extra).path());
}

// 3000 blocks in some 60 pages.
class ManyRows {
 public:
  ManyRows() {
    std::string sql = create() + "BEGIN;";
    for (int i = 1; i <= 3000; ++i) {
      sql += "INSERT INTO memscope_dump VALUES (" + std::to_string(i) + ",'MALLOC','PTA','N/A'," +
             std::to_string(1'000'000 + i) + ",9,9,'0'," + std::to_string(4096 * i) +
             ",'{\"size\":\"64\"}','','');";
    }
    whole = read_bytes(MadeDb(sql + "COMMIT;").path());
  }
  std::string whole;
};

TEST(ImportDb, AFileThatWasCutOffIsReadAsFarAsItGoes) {
  const std::string whole = ManyRows().whole;
  ASSERT_GT(whole.size(), 100'000u);
  for (const size_t size : {whole.size() / 2, whole.size() / 2 / 4096 * 4096, whole.size() - 100}) {
    OpenedFile cut(whole.substr(0, size), "memscope_dump_1.db");
    ASSERT_EQ(cut.error(), "");
    // Rows lie in the order in which they were written: half the file is about half the rows.
    const uint64_t share = 3000 * size / whole.size();
    EXPECT_GT(cut.input().imported_file()->rows, share - 200);
    EXPECT_LE(cut.input().imported_file()->rows, share + 200);
    EXPECT_TRUE(cut.input().lost());  // exit status 2
    EXPECT_FALSE(cut.input().info().complete);
    // (A page of which a part is there has rows without cells, which cannot be used.)
    EXPECT_THAT(cut.input().damage().at(0),
                HasSubstr("the file was cut off: it has " + std::to_string(size) + " of " +
                          std::to_string(whole.size()) + " bytes"));
  }
}

TEST(ImportDb, DamageInTheMiddleCostsWhatLiesThere) {
  std::string whole = ManyRows().whole;
  const size_t page = whole.size() / 2 / 4096;
  for (size_t i = 0; i < 4096; ++i) whole[page * 4096 + i] = '\xFF';
  OpenedFile file(whole, "memscope_dump_1.db");
  ASSERT_EQ(file.error(), "");
  EXPECT_GT(file.input().imported_file()->rows, 2900u);  // all but a page's
  EXPECT_LT(file.input().imported_file()->rows, 3000u);
  EXPECT_TRUE(file.input().lost());
  EXPECT_THAT(file.input().damage().at(0), HasSubstr("and those from the end up to the damage"));
}

TEST(ImportDb, DamageEndsInAnErrorOrInWhatCanBeRead) {
  const std::string whole = ManyRows().whole;
  TestDirectory directory;
  const auto damaged = directory / "memscope_dump_1.db";
  // Any page full of noise: an answer, whatever it is.
  for (size_t page = 0; page * 4096 < whole.size(); page += 3) {
    std::string noisy = whole;
    for (size_t i = 0; i < 4096; ++i) {
      noisy[page * 4096 + i] = static_cast<char>((i * 2654435761u + page) >> 7);
    }
    write_bytes(damaged, noisy);
    const auto answer = open_input(damaged);
    if (!answer) {
      EXPECT_THAT(answer.error().message, HasSubstr("memscope_dump_1.db"));
    }
  }
  write_bytes(damaged, "SQLite format 3" + std::string(1, '\0') + "no more");
  EXPECT_THAT(open_input(damaged).error().message, HasSubstr("the file is damaged"));
}

}  // namespace
}  // namespace memscope
