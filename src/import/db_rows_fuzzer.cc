// libFuzzer: any bytes as a msMemScope db. Built with -DMEMSCOPE_FUZZ=ON and clang; makes a seed
// itself, as random bytes are no SQLite file:
//
//   MEMSCOPE_FUZZ_SEEDS=corpus ./db_rows_fuzzer -runs=0
//   ./db_rows_fuzzer -max_total_time=20 -max_len=40000 corpus
#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "import/fuzz_file.h"
#include "import/import_file.h"
#include "import/imported_events.h"
#include "trace/test_directory.h"

namespace memscope {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// SQLite follows links, so a descriptor's name will not do.
const std::filesystem::path& file_path() {
  static const std::filesystem::path path = fuzz_file("fuzz.db");
  return path;
}

// Small pages, so that a seed is small and has several.
std::string seed() {
  TestDirectory directory;
  const auto path = directory / "seed.db";
  sqlite3* db = nullptr;
  check(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  std::string sql =
      "PRAGMA page_size=512;"
      "CREATE TABLE memscope_dump (\"ID\" INTEGER, \"Event\" TEXT, \"Event Type\" TEXT, "
      "\"Name\" TEXT, \"Timestamp(ns)\" INTEGER, \"Process Id\" INTEGER, \"Thread Id\" INTEGER, "
      "\"Device Id\" TEXT, \"Ptr\" TEXT, \"Attr\" TEXT, \"Call Stack(Python)\" TEXT, "
      "\"Call Stack(C)\" TEXT);"
      "CREATE TABLE python_trace_9 (\"FuncInfo\" TEXT, \"StartTime(ns)\" TEXT, \"EndTime(ns)\" "
      "TEXT, \"Thread Id\" INTEGER, \"Process Id\" INTEGER);"
      "INSERT INTO python_trace_9 VALUES ('f','10','20',9,9);"
      "CREATE INDEX i ON memscope_dump (\"Event\");";
  for (int i = 1; i <= 20; ++i) {
    sql += "INSERT INTO memscope_dump VALUES (" + std::to_string(i) + ",'" +
           (i % 2 != 0 ? "MALLOC" : "FREE") + "','PTA','N/A'," + std::to_string(1000 + i) +
           ",9,9,'0','0x10','{\"size\":\"64\",\"owner\":\"PTA@ops\"}','a.py(3): f','');";
  }
  check(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  return read_bytes(path);
}

}  // namespace
}  // namespace memscope

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* out = std::getenv("MEMSCOPE_FUZZ_SEEDS")) {
    std::filesystem::create_directories(out);
    memscope::write_bytes(std::filesystem::path(out) / "db", memscope::seed());
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace memscope;
  // Bytes that are no db end at the first look, unless they follow a db's own first page.
  static const std::string good = [] {
    const std::string made = seed();
    write_bytes(file_path(), made);
    const auto file = import_db(file_path());
    check(file.ok() && file.value()->rows == 20);
    return made;
  }();
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 100 || bytes.compare(0, 16, good, 0, 16) != 0) {
    bytes = good.substr(0, 1024) + bytes;
  }
  write_bytes(file_path(), bytes);
  const auto file = import_db(file_path());
  if (!file) {
    check(!file.error().message.empty());
    return 0;
  }
  for (size_t part = 0; part < file.value()->processes.size(); ++part) {
    ImportedEvents events(file.value(), static_cast<uint16_t>(part));
    uint64_t time = 0;
    std::array<Event, 64> batch;
    while (const size_t got = events.next_batch(batch)) {
      for (size_t i = 0; i < got; ++i) {
        check(batch[i].time >= time);
        time = batch[i].time;
      }
    }
  }
  return 0;
}
