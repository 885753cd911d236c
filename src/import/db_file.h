// A SQLite file of somebody else's, opened so that nothing in it can do harm and nothing is written
// beside it.
//
//   auto file = DbFile::open(path);
//   auto rows = file.value().table("memscope_dump");      // error: a view, a virtual table, ...
//
// Promises
//  * The file is opened read-only and immutable: no lock, no -shm, no recovery beside it. Where a
//    -wal or a -journal lies beside it, both are copied to a private directory first (TMPDIR, 0700,
//    removed at the end) and the copy is opened.
//  * Defensive mode, no trusted schema, no extensions, no triggers, no views, no virtual tables, an
//    authorizer that allows reading tables only, limits on lengths and memory: what a schema says
//    is never run.
//  * Only ordinary tables are read. A corrupt file ends in an error, not in a loop: no table has
//    more rows than the file has room for.
//  * A file that is shorter than its header says (a copy that was cut off) is read all the same,
//  and
//    a table with damage in it from both its ends: what lies between is lost, and error() says so.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace memscope {

// As SQL writes the name of a table or a column.
std::string quoted_name(std::string_view name);

class DbFile {
 public:
  static Result<DbFile> open(const std::filesystem::path& path);

  // Names of its ordinary tables that start so, sorted; kMaxTables at most.
  static constexpr size_t kMaxTables = 1000;
  Result<std::vector<std::string>> tables(std::string_view prefix) const;

  // The rows of an ordinary table in the order they were written.
  class Rows {
   public:
    std::vector<std::string> columns() const;
    // False at the end, or where the file is damaged: error() tells.
    bool next();
    int64_t rowid() const;
    // A cell as text; "" for NULL and for a column there is not. Valid until next().
    std::string_view text(size_t column) const;
    const std::string& error() const { return error_; }

   private:
    friend class DbFile;
    bool read_from_the_end();
    struct Finalize {
      void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    std::string name_, error_;  // `name_`: of file and table
    std::string backwards_;     // SQL for what lies behind the damage; "" once it was tried
    std::string cut_off_;       // of the file: how much of it is missing
    uint64_t room_ = 0;         // rows that the file can hold at most
    uint64_t read_ = 0;
    int64_t last_ = INT64_MIN;  // rowid
    bool has_rowid_ = true;
  };
  Result<Rows> table(std::string_view name) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  // A directory that goes with everything in it.
  struct Directory {
    std::filesystem::path path;
    Directory() = default;
    Directory(Directory&& other) noexcept { std::swap(path, other.path); }
    Directory& operator=(Directory&& other) noexcept {
      std::swap(path, other.path);
      return *this;
    }
    ~Directory();
  };
  Result<void> copy_aside();
  Result<void> connect(bool cut_off);
  // "12 of the 40 KiB that it should have", where the file is shorter than its header says.
  std::string missing() const;

  std::filesystem::path path_, real_;  // as given; without links
  Directory copy_;                     // closed after the db
  std::unique_ptr<sqlite3, Close> db_;
  uint64_t bytes_ = 0;
  std::string cut_off_;  // see missing()
};

}  // namespace memscope
