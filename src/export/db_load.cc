#include "export/db_load.h"

#include <cerrno>
#include <string_view>

#include "export/batch_table.h"
#include "export/draft_file.h"

namespace memscope {
namespace {

constexpr uint64_t kRowsATransaction = 50'000;

// msMemScope's own, to the letter.
constexpr const char* kCreate =
    "CREATE TABLE memscope_dump (\"ID\" INTEGER, \"Event\" TEXT, \"Event Type\" TEXT, \"Name\" "
    "TEXT, \"Timestamp(ns)\" INTEGER, \"Process Id\" INTEGER, \"Thread Id\" INTEGER, \"Device "
    "Id\" TEXT, \"Ptr\" TEXT, \"Attr\" TEXT, \"Call Stack(Python)\" TEXT, \"Call Stack(C)\" TEXT)";
constexpr const char* kCallColumnsSql =
    "(\"FuncInfo\" TEXT, \"StartTime(ns)\" TEXT, \"EndTime(ns)\" TEXT, \"Thread Id\" INTEGER, "
    "\"Process Id\" INTEGER)";

void bind(sqlite3_stmt* statement, int column, std::string_view text) {
  // Static: the statement is reset before the text goes away.
  sqlite3_bind_text64(statement, column, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void bind(sqlite3_stmt* statement, int column, uint64_t number) {
  sqlite3_bind_int64(statement, column, static_cast<sqlite3_int64>(number));
}

}  // namespace

DbLoad::DbLoad(const std::string& path, std::string name) : name_(std::move(name)) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int status = sqlite3_open_v2(path.c_str(), &db_, flags, nullptr);
  if (status != SQLITE_OK) {
    fail(status);
    return;
  }
  const bool ready = run("PRAGMA journal_mode=OFF") && run("PRAGMA synchronous=OFF") &&
                     run("PRAGMA locking_mode=EXCLUSIVE") && run(kCreate);
  if (!ready) return;
  const int added = add_batch_table(db_, &batch_);
  if (added != SQLITE_OK) {
    fail(added);
    return;
  }
  insert_ = prepare("INSERT INTO memscope_dump SELECT * FROM memscope_batch");
  if (insert_ != nullptr) run("BEGIN");
}

DbLoad::~DbLoad() {
  close();
}

bool DbLoad::run(const char* sql) {
  const int status = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) fail(status);
  return status == SQLITE_OK;
}

sqlite3_stmt* DbLoad::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int status = sqlite3_prepare_v3(db_, sql.c_str(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (status != SQLITE_OK) fail(status);
  return statement;
}

void DbLoad::fail(int status) {
  // sqlite3_system_errno() does not know of what fails within a statement; errno still does.
  const int system = errno;
  if (error_) return;
  if ((status & 0xff) == SQLITE_FULL) {
    error_ = write_error(name_, ENOSPC);
  } else if ((status & 0xff) == SQLITE_IOERR && system != 0) {
    error_ = write_error(name_, system);
  } else {
    error_ = Error{"cannot write " + name_ + ": SQLite says: " +
                   (db_ == nullptr ? sqlite3_errstr(status) : sqlite3_errmsg(db_))};
  }
}

void DbLoad::step(sqlite3_stmt* statement) {
  const int status = sqlite3_step(statement);
  if (status != SQLITE_DONE) [[unlikely]]
    fail(status);
  sqlite3_reset(statement);
}

void DbLoad::take(const DbBatch& batch) {
  if (error_) return;
  batch_ = &batch;
  if (!batch.rows().empty()) step(insert_);
  insert_calls(batch);
  uncommitted_ += batch.rows().size() + batch.calls().size();
  if (uncommitted_ < kRowsATransaction || error_) return;
  uncommitted_ = 0;
  if (run("COMMIT")) run("BEGIN");
}

void DbLoad::insert_calls(const DbBatch& batch) {
  for (const DbBatch::Call& call : batch.calls()) {
    if (error_) return;
    sqlite3_stmt*& statement = call_inserts_[call.pid];
    if (statement == nullptr) {
      const std::string table = "\"python_trace_" + std::to_string(call.pid) + "\"";
      if (!run(("CREATE TABLE " + table + kCallColumnsSql).c_str())) return;
      statement = prepare("INSERT INTO " + table + " VALUES(?,?,?,?,?)");
      if (statement == nullptr) return;
    }
    const std::string start = std::to_string(call.start), end = std::to_string(call.end);
    bind(statement, 1, batch.text(call.function));
    bind(statement, 2, start);
    bind(statement, 3, end);
    bind(statement, 4, call.tid);
    bind(statement, 5, call.pid);
    step(statement);
  }
}

void DbLoad::finish() {
  if (!error_) run("COMMIT");
  close();
}

void DbLoad::close() {
  if (db_ == nullptr) return;
  sqlite3_finalize(insert_);
  for (const auto& [pid, statement] : call_inserts_) sqlite3_finalize(statement);
  call_inserts_.clear();
  sqlite3_close(db_);
  db_ = nullptr;
  insert_ = nullptr;
}

}  // namespace memscope
