#include "import/db_file.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "trace/input_file.h"

namespace memscope {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxCell = 16 << 20;  // bytes
constexpr std::array<std::string_view, 2> kBeside = {"-wal", "-journal"};

// `?`, `#` and `%` mean something in an URI.
std::string as_uri(const fs::path& path) {
  std::string uri = "file:";
  for (const char c : fs::absolute(path).string()) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '?' || c == '#' || c == '%') {
      uri += '%';
      uri += kHex[byte >> 4];
      uri += kHex[byte & 15u];
    } else {
      uri += c;
    }
  }
  return uri;
}

// Reading tables is all that a statement of ours needs.
int authorize(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

bool has_bytes(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) != 0 && !error;
}

}  // namespace

std::string quoted_name(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

DbFile::Directory::~Directory() {
  std::error_code ignored;
  if (!path.empty()) fs::remove_all(path, ignored);
}

Result<DbFile> DbFile::open(const fs::path& path) {
  auto input = InputFile::open(path);  // a regular file, or a line that says why not
  if (!input) return input.error();
  DbFile file;
  file.path_ = path;
  // What belongs to the file lies beside the file itself, not beside a link to it.
  std::error_code error;
  file.real_ = fs::canonical(path, error);
  if (error) file.real_ = path;
  file.bytes_ = input.value().size();
  const bool beside = std::any_of(kBeside.begin(), kBeside.end(), [&](std::string_view suffix) {
    return has_bytes(file.real_.string() + std::string(suffix));
  });
  if (beside) {
    if (auto copied = file.copy_aside(); !copied) return copied.error();
  }
  if (auto connected = file.connect(false); !connected) return connected.error();
  // (What a -wal or a -journal has to add may make up for it.)
  const bool whole = file.tables("").ok();
  if (!whole || file.copy_.path.empty()) file.cut_off_ = file.missing();
  if (!whole && !file.cut_off_.empty()) {
    // SQLite refuses a file that lacks pages.
    if (auto connected = file.connect(true); !connected) return connected.error();
  }
  return file;
}

// https://www.sqlite.org/fileformat2.html#the_database_header
std::string DbFile::missing() const {
  const fs::path path = copy_.path.empty() ? real_ : copy_.path / "copy.db";
  const auto file = InputFile::open(path);
  std::array<unsigned char, 100> header{};
  if (!file || file.value().read_at(0, header.data(), header.size()) != header.size()) return "";
  const auto big_endian = [&](size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | header[at + i];
    return value;
  };
  if (big_endian(24, 4) != big_endian(92, 4)) return "";  // the size in it is not up to date
  const uint64_t page = big_endian(16, 2) == 1 ? 65536 : big_endian(16, 2);
  const uint64_t should = page * big_endian(28, 4);
  const uint64_t is = file.value().size();
  if (is >= should) return "";
  return "the file was cut off: it has " + std::to_string(is) + " of " + std::to_string(should) +
         " bytes";
}

// What is in the -wal is part of the file, and reading it means writing beside it.
Result<void> DbFile::copy_aside() {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  std::string pattern = ((error ? fs::path("/tmp") : temporary) / "msmemscope-db-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    return Error{pattern + ": no directory can be made to read " + path_.string() +
                 " with its -wal; set TMPDIR to one that can be written"};
  }
  copy_.path = pattern;
  const fs::path copy = copy_.path / "copy.db";
  fs::copy_file(real_, copy, error);
  for (const std::string_view suffix : kBeside) {
    const fs::path from = real_.string() + std::string(suffix);
    if (!error && has_bytes(from)) fs::copy_file(from, copy.string() + std::string(suffix), error);
  }
  if (error) {
    return Error{path_.string() + ": cannot be copied to " + copy_.path.string() +
                 " to read it with its -wal: " + error.message() +
                 "; set TMPDIR to a directory with more room"};
  }
  const auto in_wal = fs::file_size(copy.string() + "-wal", error);
  if (!error) bytes_ += in_wal;
  return {};
}

Result<void> DbFile::connect(bool cut_off) {
  db_.reset();
  sqlite3* db = nullptr;
  const bool copied = !copy_.path.empty();
  const std::string uri = copied ? as_uri(copy_.path / "copy.db") : as_uri(real_) + "?immutable=1";
  const int flags = (copied ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI |
                    SQLITE_OPEN_NOMUTEX;
  const int status = sqlite3_open_v2(uri.c_str(), &db, flags, nullptr);
  db_.reset(db);
  if (status != SQLITE_OK) {
    return Error{path_.string() +
                 ": SQLite cannot open it: " + (db != nullptr ? sqlite3_errmsg(db) : "no memory")};
  }
  // With a writable schema SQLite reads a file that is too short as far as it goes; a defensive
  // connection has none. Nothing can be written through it: query_only, and the authorizer.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, cut_off ? 0 : 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, cut_off ? 1 : 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMaxCell);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 2000);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 50);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  for (const char* pragma :
       {"PRAGMA cell_size_check=ON", "PRAGMA mmap_size=0", "PRAGMA cache_size=-8192",
        "PRAGMA temp_store=MEMORY", "PRAGMA query_only=ON"}) {
    sqlite3_exec(db, pragma, nullptr, nullptr, nullptr);
  }
  sqlite3_drop_modules(db, nullptr);  // no virtual table of any kind
  sqlite3_set_authorizer(db, authorize, nullptr);
  return {};
}

Result<std::vector<std::string>> DbFile::tables(std::string_view prefix) const {
  // What a table is, its SQL says: sqlite_schema's own word for it may be a lie.
  sqlite3_stmt* raw = nullptr;
  const int status =
      sqlite3_prepare_v2(db_.get(), "SELECT name, sql FROM main.sqlite_schema", -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, Rows::Finalize> statement(raw);
  std::vector<std::string> names;
  int step = status;
  if (status == SQLITE_OK) {
    while ((step = sqlite3_step(raw)) == SQLITE_ROW && names.size() < kMaxTables) {
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(raw, 0));
      const auto* sql = reinterpret_cast<const char*>(sqlite3_column_text(raw, 1));
      if (name == nullptr || sql == nullptr) continue;
      if (!std::string_view(sql).starts_with("CREATE TABLE ")) continue;
      if (std::string_view(name).starts_with(prefix)) names.emplace_back(name);
    }
  }
  if (step != SQLITE_DONE && step != SQLITE_ROW) {
    return Error{path_.string() + ": its tables cannot be listed: " + sqlite3_errmsg(db_.get()) +
                 "; the file is damaged: give a whole copy of it, or make it anew from the trace "
                 "with `msmemscope convert`"};
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<DbFile::Rows> DbFile::table(std::string_view name) const {
  auto names = tables(name);
  if (!names) return names.error();
  if (std::find(names.value().begin(), names.value().end(), name) == names.value().end()) {
    return Error{path_.string() + ": " + std::string(name) +
                 " is no ordinary table in it (a view or a virtual table is not read)"};
  }
  Rows rows;
  rows.name_ = path_.string() + ", table " + std::string(name);
  // A row takes a pointer of 2 bytes and 2 of its own at least.
  rows.room_ = bytes_ / 4 + 16;
  sqlite3_stmt* statement = nullptr;
  const std::string from = " FROM main." + quoted_name(name);
  // A table without rowids has an order of its own.
  int status = sqlite3_prepare_v2(db_.get(), ("SELECT rowid, *" + from + " ORDER BY rowid").c_str(),
                                  -1, &statement, nullptr);
  if (status != SQLITE_OK) {
    sqlite3_finalize(statement);
    rows.has_rowid_ = false;
    status = sqlite3_prepare_v2(db_.get(), ("SELECT *" + from).c_str(), -1, &statement, nullptr);
  }
  rows.statement_.reset(statement);
  rows.cut_off_ = cut_off_;
  if (rows.has_rowid_) {
    rows.backwards_ = "SELECT rowid, *" + from + " WHERE rowid > ?1 ORDER BY rowid DESC";
  }
  if (status != SQLITE_OK) {
    return Error{rows.name_ + " cannot be read: " + sqlite3_errmsg(db_.get())};
  }
  return rows;
}

std::vector<std::string> DbFile::Rows::columns() const {
  std::vector<std::string> names;
  const int first = has_rowid_ ? 1 : 0;
  for (int i = first; i < sqlite3_column_count(statement_.get()); ++i) {
    const char* name = sqlite3_column_name(statement_.get(), i);
    names.emplace_back(name != nullptr ? name : "");
  }
  return names;
}

bool DbFile::Rows::next() {
  if (statement_ == nullptr || (!error_.empty() && backwards_.empty())) return false;
  if (room_-- == 0) {
    error_ = name_ + ": more rows than the file has room for; it is damaged";
    backwards_.clear();
    return false;
  }
  const int status = sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) {
    ++read_;
    if (error_.empty()) last_ = rowid();
    return true;
  }
  if (!error_.empty()) {  // from the end, too, up to the damage
    backwards_.clear();
    return false;
  }
  if (status == SQLITE_DONE) {
    backwards_.clear();
    if (!cut_off_.empty()) error_ = name_ + ": " + cut_off_ + "; this table is whole";
    return false;
  }
  const std::string why =
      cut_off_.empty() ? sqlite3_errmsg(sqlite3_db_handle(statement_.get())) : cut_off_;
  const uint64_t before = read_;
  const bool more = read_from_the_end();
  error_ = name_ + ": " + why + "; rows can be read up to number " + std::to_string(before) +
           (more ? ", and those from the end up to the damage" : "") +
           ", the others are lost: give a whole copy";
  return more;
}

// The first row from the other end.
bool DbFile::Rows::read_from_the_end() {
  const std::string sql = std::exchange(backwards_, "");
  sqlite3_stmt* statement = nullptr;
  if (sql.empty() || sqlite3_prepare_v2(sqlite3_db_handle(statement_.get()), sql.c_str(), -1,
                                        &statement, nullptr) != SQLITE_OK) {
    return false;
  }
  sqlite3_bind_int64(statement, 1, last_);
  statement_.reset(statement);
  if (sqlite3_step(statement) != SQLITE_ROW) return false;
  ++read_;
  backwards_ = sql;
  return true;
}

int64_t DbFile::Rows::rowid() const {
  return has_rowid_ ? sqlite3_column_int64(statement_.get(), 0) : 0;
}

std::string_view DbFile::Rows::text(size_t column) const {
  const int index = static_cast<int>(column) + (has_rowid_ ? 1 : 0);
  if (index >= sqlite3_column_count(statement_.get())) return {};
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), index));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), index))};
}

}  // namespace memscope
