// The rows of the memory table of a msMemScope db, one by one.
//
//   auto rows = DbRows::open(path);
//   for (FileRow row; rows.value().next(row);) use(row);
//   if (!rows.value().error().empty()) ...   // the file is damaged: what came before is good
//
// Table memscope_dump, else the older leaks_dump. Columns by name; where none of the names is known
// by their place, as MindStudio Insight takes them. How the file is opened: db_file.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "import/columns.h"
#include "import/db_file.h"

namespace memscope {

class DbRows {
 public:
  static Result<DbRows> open(const std::filesystem::path& path);

  bool next(FileRow& row);
  const std::string& error() const { return rows_.error(); }
  const DbFile& file() const { return file_; }
  const std::string& table() const { return table_; }
  // What the table calls it; "" where it has none.
  std::string column(Column column) const;

 private:
  DbRows(DbFile file, DbFile::Rows rows, std::string table)
      : file_(std::move(file)), rows_(std::move(rows)), table_(std::move(table)) {}

  DbFile file_;
  DbFile::Rows rows_;
  std::string table_;
  std::vector<size_t> place_;  // by Column; npos where there is none
  uint64_t number_ = 0;
};

}  // namespace memscope
