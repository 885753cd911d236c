#include "export/inefficient_rows.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "analysis/inefficient.h"
#include "export/draft_file.h"
#include "import/attributes.h"
#include "import/csv_rows.h"
#include "import/db_rows.h"
#include "import/find_inputs.h"
#include "tsl/robin_map.h"

namespace memscope {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kKey = "inefficient_type";
constexpr std::array<std::string_view, 3> kTypes = {"early_allocation", "late_deallocation",
                                                    "temporary_idleness"};

// -- an Attr --------------------------------------------------------------------------------------

// The three in their order, each once.
std::string merged(std::string_view one, std::string_view other) {
  std::string text;
  for (const std::string_view type : kTypes) {
    if (one.find(type) == std::string_view::npos && other.find(type) == std::string_view::npos) {
      continue;
    }
    if (!text.empty()) text += ',';
    text += type;
  }
  return text;
}

struct Span {
  size_t begin = 0, end = 0;
};

// Where the pair is that says it already, with the comma before or after it: up to the last of the
// known types and the quotes behind it.
std::optional<Span> find_pair(std::string_view attr) {
  for (size_t at = attr.find(kKey); at != std::string_view::npos; at = attr.find(kKey, at + 1)) {
    size_t begin = at, end = at + kKey.size();
    const auto quote = [](char c) { return c == '"'; };
    while (begin > 0 && quote(attr[begin - 1])) --begin;
    if (begin == 0 || (attr[begin - 1] != '{' && attr[begin - 1] != ',')) continue;
    while (end < attr.size() && quote(attr[end])) ++end;
    if (end == attr.size() || attr[end] != ':') continue;
    ++end;
    while (end < attr.size() && quote(attr[end])) ++end;
    for (bool more = true; more;) {
      more = false;
      for (const std::string_view type : kTypes) {
        const size_t skip = attr.substr(end).starts_with(',') ? 1 : 0;
        if (!attr.substr(end + skip).starts_with(type)) continue;
        end += skip + type.size();
        more = true;
      }
    }
    while (end < attr.size() && quote(attr[end])) ++end;
    if (attr[begin - 1] == ',') {
      --begin;
    } else if (end < attr.size() && attr[end] == ',') {
      ++end;
    }
    return Span{begin, end};
  }
  return std::nullopt;
}

// -- rows -----------------------------------------------------------------------------------------

struct Key {
  uint64_t pid = 0, time = 0, addr = 0;
  bool atb = false;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const noexcept {
    uint64_t hash = key.time * 0x9E3779B97F4A7C15u;
    hash ^= key.addr + 0x517CC1B727220A95u + (hash << 6) + (hash >> 2);
    hash ^= key.pid * 2 + (key.atb ? 1 : 0) + (hash << 6) + (hash >> 2);
    return hash ^ hash >> 32;
  }
};

class Index {
 public:
  explicit Index(const std::vector<InefficientRow>& rows) {
    index_.reserve(rows.size());
    for (const InefficientRow& row : rows) {
      index_[{row.pid, row.time, row.addr, row.atb}] |= row.types;
    }
  }
  // The types to add to a row; "" for other rows.
  std::string types_of(std::string_view event, std::string_view type, std::string_view pid,
                       std::string_view time, std::string_view ptr) const {
    if (event != "MALLOC" || (type != "PTA" && type != "ATB")) return "";
    const auto at = file_time(time), addr = file_count(ptr);
    if (!at || !addr) return "";
    const auto found = index_.find({file_count(pid).value_or(0), *at, *addr, type == "ATB"});
    return found == index_.end() ? "" : inefficiency_text(found->second);
  }

 private:
  tsl::robin_map<Key, uint8_t, KeyHash> index_;
};

// -- csv ------------------------------------------------------------------------------------------

// The bytes of the input, and some of its fields replaced.
class Copy {
 public:
  Copy(int from, int to, std::string name) : from_(from), to_(to), name_(std::move(name)) {}

  // Everything up to `offset` that was not copied yet; all of the rest with `at_end`.
  Result<void> copy_to(uint64_t offset, bool at_end = false) {
    std::array<char, 1 << 16> buffer;
    while (at_end || at_ < offset) {
      const size_t want =
          at_end ? buffer.size()
                 : static_cast<size_t>(std::min<uint64_t>(buffer.size(), offset - at_));
      const ssize_t got = ::pread(from_, buffer.data(), want, static_cast<off_t>(at_));
      if (got < 0) return Error{name_ + ": cannot be read: " + std::strerror(errno)};
      if (got == 0) break;
      if (auto written = write({buffer.data(), static_cast<size_t>(got)}); !written) {
        return written;
      }
      at_ += static_cast<uint64_t>(got);
    }
    return {};
  }
  Result<void> replace(ByteRange range, std::string_view text) {
    if (auto copied = copy_to(range.offset); !copied) return copied;
    at_ = range.offset + range.size;
    return write(text);
  }
  Result<void> finish() {
    if (auto copied = copy_to(0, true); !copied) return copied;
    return flush();
  }

 private:
  Result<void> write(std::string_view text) {
    pending_ += text;
    return pending_.size() < (1 << 20) ? Result<void>{} : flush();
  }
  Result<void> flush() {
    for (size_t done = 0; done < pending_.size();) {
      const ssize_t n = ::write(to_, pending_.data() + done, pending_.size() - done);
      if (n < 0) return write_error(name_, errno);
      done += static_cast<size_t>(n);
    }
    pending_.clear();
    return {};
  }

  int from_, to_;
  std::string name_, pending_;
  uint64_t at_ = 0;
};

// A csv's field: its quotes doubled inside, and quotes around it.
std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

Result<WrittenRows> write_csv(const fs::path& input, const fs::path& output, const Index& index) {
  auto rows = CsvRows::open(input);
  if (!rows) return rows.error();
  const int from = ::open(input.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return Error{input.string() + ": cannot be read: " + std::strerror(errno)};
  const auto close = [](const int* fd) { ::close(*fd); };
  const std::unique_ptr<const int, decltype(close)> closing(&from, close);
  auto draft = DraftFile::create(output, {});
  if (!draft) return draft.error();
  struct stat mode {};
  if (::fstat(from, &mode) == 0) ::fchmod(draft.value().fd(), mode.st_mode & 0777);

  WrittenRows written;
  Copy copy(from, draft.value().fd(), output.string());
  for (CsvRows::Row row; rows.value().next(row);) {
    if (!row.problem.empty()) continue;
    const FileRow& cells = row.cells;
    const std::string types =
        index.types_of(cells[Column::kEvent], cells[Column::kEventType], cells[Column::kPid],
                       cells[Column::kTime], cells[Column::kPtr]);
    if (types.empty()) continue;
    ++written.matched;
    const std::string_view attr = cells[Column::kAttr];
    const std::string text = attr_with_types(attr, types, false);
    if (text == attr) continue;
    ++written.changed;
    if (const auto done = copy.replace(cells.attr, csv_field(text)); !done) return done.error();
  }
  if (const auto done = copy.finish(); !done) return done.error();
  if (const auto done = draft.value().commit(); !done) return done.error();
  return written;
}

// -- db -------------------------------------------------------------------------------------------

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Error db_error(const fs::path& path, sqlite3* db) {
  std::string line = path.string() + ": " + sqlite3_errmsg(db);
  switch (sqlite3_errcode(db)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      line += "; another program has it open: close it there, or write into a copy (output_path)";
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      line += "; the file is damaged: make it anew with `msmemscope convert`";
      break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      line += "; it cannot be written: write into a copy (output_path)";
      break;
    case SQLITE_FULL:
      line += "; free some space or choose another place";
      break;
    default:
      break;
  }
  return Error{line};
}

Result<Statement> prepare(const fs::path& path, sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return db_error(path, db);
  }
  return Statement(statement);
}

Result<void> execute(const fs::path& path, sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return db_error(path, db);
  return {};
}

// For writing, with everything switched off that a schema could do by itself.
Result<Db> open_for_writing(const fs::path& path) {
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Db db(raw);
  if (opened != SQLITE_OK) return db_error(path, raw);
  sqlite3_busy_timeout(raw, 5000);
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(raw, off, 0, nullptr);
  }
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 64 << 20);
  return db;
}

std::string_view text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr
             ? std::string_view()
             : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

// The table, and what it calls the columns that a row is known by and written to.
struct Table {
  std::string name;
  std::array<std::string, 6> columns;
  static constexpr std::array<Column, 6> kWhich = {
      Column::kEvent, Column::kEventType, Column::kPid, Column::kTime, Column::kPtr, Column::kAttr};

  static Result<Table> of(const fs::path& path) {
    auto rows = DbRows::open(path);
    if (!rows) return rows.error();
    Table table{rows.value().table(), {}};
    for (size_t i = 0; i < kWhich.size(); ++i) {
      const std::string column = rows.value().column(kWhich[i]);
      // A name in quotes that is no column would be a text to SQLite.
      if (column.empty()) {
        return Error{path.string() + ": table " + table.name + " has no column " +
                     std::string(column_name(kWhich[i])) + ", so no result can be written into it"};
      }
      table.columns[i] = quoted_name(column);
    }
    return table;
  }
};

// A stretch of rows at a time: no row is written while a statement that reads is under way.
Result<WrittenRows> update_rows(const fs::path& path, sqlite3* db, const Table& table,
                                const Index& index) {
  std::string columns = "rowid";
  for (const std::string& column : table.columns) columns += ", " + column;
  auto select = prepare(path, db,
                        "SELECT " + columns + " FROM main." + table.name +
                            " WHERE rowid > ?1 ORDER BY rowid LIMIT 10000");
  if (!select) return select.error();
  auto update = prepare(
      path, db,
      "UPDATE main." + table.name + " SET " + table.columns.back() + " = ?1 WHERE rowid = ?2");
  if (!update) return update.error();
  struct Change {
    int64_t rowid = 0;
    std::string attr;
  };
  WrittenRows written;
  std::vector<Change> changes;
  int64_t last = INT64_MIN;
  for (bool more = true; more;) {
    more = false;
    changes.clear();
    sqlite3_stmt* rows = select.value().get();
    sqlite3_bind_int64(rows, 1, last);
    int stepped = SQLITE_DONE;
    while ((stepped = sqlite3_step(rows)) == SQLITE_ROW) {
      more = true;
      last = sqlite3_column_int64(rows, 0);
      const std::string types = index.types_of(text_of(rows, 1), text_of(rows, 2), text_of(rows, 3),
                                               text_of(rows, 4), text_of(rows, 5));
      if (types.empty()) continue;
      ++written.matched;
      std::string attr = attr_with_types(text_of(rows, 6), types, true);
      if (attr != text_of(rows, 6)) changes.push_back({last, std::move(attr)});
    }
    if (stepped != SQLITE_DONE) return db_error(path, db);
    sqlite3_reset(rows);
    for (const Change& change : changes) {
      sqlite3_stmt* one = update.value().get();
      sqlite3_bind_text(one, 1, change.attr.data(), static_cast<int>(change.attr.size()),
                        SQLITE_STATIC);
      sqlite3_bind_int64(one, 2, change.rowid);
      if (sqlite3_step(one) != SQLITE_DONE) return db_error(path, db);
      sqlite3_reset(one);
      ++written.changed;
    }
  }
  return written;
}

Result<void> copy_whole(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return Error{to.string() + ": " + error.message()};
  return {};
}

Result<WrittenRows> write_db_file(const fs::path& path, const Table& table, const Index& index) {
  auto db = open_for_writing(path);
  if (!db) return db.error();
  sqlite3* raw = db.value().get();
  if (const auto begun = execute(path, raw, "BEGIN IMMEDIATE"); !begun) return begun.error();
  auto written = update_rows(path, raw, table, index);
  if (!written) return written.error();  // what was changed goes with the connection
  if (const auto done = execute(path, raw, "COMMIT"); !done) return done.error();
  return written;
}

Result<WrittenRows> write_db(const fs::path& input, const fs::path& output, bool in_place,
                             const Index& index) {
  // Is it one of ours? (Closed before anything is written.)
  const auto found = Table::of(input);
  if (!found) return found.error();
  const Table& table = found.value();
  if (in_place) return write_db_file(input, table, index);
  auto draft = DraftFile::create(output, {input});
  if (!draft) return draft.error();
  const fs::path copy = draft.value().draft();
  if (const auto copied = copy_whole(input, copy); !copied) return copied.error();
  // A file that a running or killed process left has its newest rows beside it.
  bool beside = false;
  for (const char* suffix : {"-wal", "-journal"}) {
    std::error_code error;
    const fs::path other = input.string() + suffix;
    if (!fs::is_regular_file(other, error)) continue;
    beside = true;
    if (const auto copied = copy_whole(other, copy.string() + suffix); !copied) {
      return copied.error();
    }
  }
  auto written = write_db_file(copy, table, index);
  if (beside) {
    if (auto db = open_for_writing(copy)) {
      // One file again, for the draft is one.
      (void)execute(copy, db.value().get(), "PRAGMA journal_mode=DELETE");
    }
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
      std::error_code error;
      fs::remove(copy.string() + suffix, error);
    }
  }
  if (!written) return written.error();
  if (const auto done = draft.value().commit(); !done) return done.error();
  return written;
}

}  // namespace

std::string attr_with_types(std::string_view attr, std::string_view types, bool json) {
  std::string text(attr);
  std::string_view before;
  if (const auto pair = find_pair(attr)) {
    before = attr.substr(pair->begin, pair->end - pair->begin);
    text.erase(pair->begin, pair->end - pair->begin);
  }
  const std::string all = merged(before, types);
  if (all.empty() || all == merged(before, "")) return std::string(attr);
  const std::string pair =
      json ? "\"" + std::string(kKey) + "\":\"" + all + "\"" : std::string(kKey) + ":" + all;
  const size_t close = text.rfind('}');
  if (close == std::string::npos) return "{" + pair + "}";
  const bool empty = close > 0 && text[close - 1] == '{';
  text.insert(close, (empty ? "" : ",") + pair);
  return text;
}

Result<WrittenRows> write_inefficient_rows(const fs::path& input, const fs::path& output,
                                           const std::vector<InefficientRow>& rows) {
  const Index index(rows);
  std::error_code error;
  const bool in_place = fs::equivalent(input, output, error);
  switch (file_kind(input)) {
    case FileKind::kCsv:
      return write_csv(input, output, index);
    case FileKind::kDb:
      return write_db(input, output, in_place, index);
    default:
      return Error{input.string() + ": results are written into a csv or db of msMemScope only"};
  }
}

}  // namespace memscope
