#include "import/db_rows.h"

#include <algorithm>

namespace memscope {
namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

}  // namespace

Result<DbRows> DbRows::open(const std::filesystem::path& path) {
  auto opened = DbFile::open(path);
  if (!opened) return opened.error();
  DbFile file = std::move(opened).value();
  auto names = file.tables("");
  if (!names) return names.error();
  std::string table;
  for (const char* known : {"leaks_dump", "memscope_dump"}) {
    if (std::find(names.value().begin(), names.value().end(), known) != names.value().end()) {
      table = known;
    }
  }
  if (table.empty()) {
    return Error{path.string() +
                 ": a SQLite file without an ordinary table memscope_dump or leaks_dump; give a db "
                 "that msMemScope or `msmemscope convert` wrote"};
  }
  auto rows = file.table(table);
  if (!rows) return rows.error();
  DbRows result(std::move(file), std::move(rows).value(), std::move(table));
  const std::vector<std::string> columns = result.rows_.columns();
  result.place_.assign(kColumns, kNowhere);
  bool named = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto column = column_from_name(columns[i]);
    if (!column || result.place_[static_cast<size_t>(*column)] != kNowhere) continue;
    result.place_[static_cast<size_t>(*column)] = i;
    named = true;
  }
  if (!named) {
    for (size_t i = 0; i < std::min(columns.size(), kColumns); ++i) result.place_[i] = i;
  }
  return result;
}

std::string DbRows::column(Column column) const {
  const size_t place = place_[static_cast<size_t>(column)];
  return place == kNowhere ? "" : rows_.columns()[place];
}

bool DbRows::next(FileRow& row) {
  if (!rows_.next()) return false;
  row = {};
  row.line = ++number_;
  row.rowid = rows_.rowid();
  for (size_t i = 0; i < kColumns; ++i) {
    if (place_[i] != kNowhere) row.cells[i] = rows_.text(place_[i]);
  }
  return true;
}

}  // namespace memscope
