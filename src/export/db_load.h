// A new SQLite file with msMemScope's tables, loaded batch by batch.
//
// A batch shows itself to SQLite as a virtual table, so that one statement takes it in:
//
//   INSERT INTO memscope_dump SELECT * FROM memscope_batch
//
// which costs half of what a prepared INSERT a row does (no binding, no statement to start and end
// for each row) and is as fast as SQLite copies one table into another of other columns.
//
//  * Nobody sees the file before it is whole, so it is written without a journal and without
//  waiting
//    for the disk; its header says "rollback journal", so that a reader leaves nothing beside it.
//  * No index and no table of our own: readers take columns by position, Insight adds tables
//  itself.
//  * One thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "export/db_batch.h"

namespace memscope {

class DbLoad {
 public:
  // `path` is an empty file; `name` is what messages call it.
  DbLoad(const std::string& path, std::string name);
  ~DbLoad();
  DbLoad(const DbLoad&) = delete;
  DbLoad& operator=(const DbLoad&) = delete;

  // Errors stick.
  void take(const DbBatch& batch);
  void finish();
  const std::optional<Error>& error() const { return error_; }

 private:
  bool run(const char* sql);
  sqlite3_stmt* prepare(const std::string& sql);
  void step(sqlite3_stmt* statement);
  void insert_calls(const DbBatch& batch);
  void fail(int status);
  void close();

  std::string name_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  std::map<uint64_t, sqlite3_stmt*> call_inserts_;  // by pid
  const DbBatch* batch_ = nullptr;                  // what the virtual table shows
  uint64_t uncommitted_ = 0;
  std::optional<Error> error_;
};

}  // namespace memscope
