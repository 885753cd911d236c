// HOT PATH: column().
#include "export/batch_table.h"

#include <new>
#include <string_view>

namespace memscope {
namespace {

struct Table : sqlite3_vtab {
  const DbBatch* const* batch = nullptr;
};

struct Cursor : sqlite3_vtab_cursor {
  const DbBatch* batch = nullptr;
  size_t row = 0;
};

constexpr const char* kColumns =
    "CREATE TABLE x(id INTEGER, event TEXT, type TEXT, name TEXT, time INTEGER, pid INTEGER, tid "
    "INTEGER, device TEXT, ptr TEXT, attr TEXT, python TEXT, c TEXT)";

int connect(sqlite3* db, void* batch, int, const char* const*, sqlite3_vtab** out, char**) {
  const int status = sqlite3_declare_vtab(db, kColumns);
  if (status != SQLITE_OK) return status;
  auto* table = new (std::nothrow) Table{};
  if (table == nullptr) return SQLITE_NOMEM;
  table->batch = static_cast<const DbBatch* const*>(batch);
  *out = table;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

// There is one way to read it: from front to back.
int best_index(sqlite3_vtab*, sqlite3_index_info*) {
  return SQLITE_OK;
}

int open(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  auto* cursor = new (std::nothrow) Cursor{};
  if (cursor == nullptr) return SQLITE_NOMEM;
  cursor->batch = *static_cast<Table*>(table)->batch;
  *out = cursor;
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  static_cast<Cursor*>(cursor)->row = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++static_cast<Cursor*>(cursor)->row;
  return SQLITE_OK;
}

int eof(sqlite3_vtab_cursor* cursor) {
  const auto* at = static_cast<Cursor*>(cursor);
  return at->row >= at->batch->rows().size() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* out, int number) {
  const auto* at = static_cast<Cursor*>(cursor);
  const DbBatch::Row& row = at->batch->rows()[at->row];
  const auto integer = [out](uint64_t value) {
    sqlite3_result_int64(out, static_cast<sqlite3_int64>(value));
  };
  // Static: the batch stays as it is until the statement is over.
  const auto text = [out](std::string_view value) {
    sqlite3_result_text(out, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  };
  const auto kept = [&](DbBatch::Text value) { text(at->batch->text(value)); };
  switch (number) {
    case 0:
      integer(row.id);
      break;
    case 1:
      text(row.event);
      break;
    case 2:
      text(row.type);
      break;
    case 3:
      kept(row.name);
      break;
    case 4:
      integer(row.time);
      break;
    case 5:
      integer(row.pid);
      break;
    case 6:
      integer(row.tid);
      break;
    case 7:
      kept(row.device);
      break;
    case 8:
      kept(row.ptr);
      break;
    case 9:
      kept(row.attr);
      break;
    case 10:
      kept(row.python_stack);
      break;
    default:
      kept(row.c_stack);
      break;
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->row);
  return SQLITE_OK;
}

// Without xCreate: the table is there by its name alone, and nothing of it gets into the file.
constexpr sqlite3_module make_module() {
  sqlite3_module module{};
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = eof;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}
constexpr sqlite3_module kModule = make_module();

}  // namespace

int add_batch_table(sqlite3* db, const DbBatch* const* batch) {
  // SQLite hands the pointer back as it is; it never writes through it.
  return sqlite3_create_module(db, "memscope_batch", &kModule,
                               const_cast<void*>(static_cast<const void*>(batch)));
}

}  // namespace memscope
