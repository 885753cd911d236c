// The columns of msMemScope's dumps, as csv and db have them (reference: the files' header line and
// DDL, the same for all ages), and what the first bytes of a csv tell.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace memscope {

enum class Column : uint8_t {
  kId,
  kEvent,
  kEventType,
  kName,
  kTime,
  kPid,
  kTid,
  kDevice,
  kPtr,
  kAttr,
  kPythonStack,
  kCStack,
};
inline constexpr size_t kColumns = 12;

// "Timestamp(ns)" and the like; blanks around it, quotes, a byte order mark and case do not count.
std::optional<Column> column_from_name(std::string_view name);
std::string_view column_name(Column column);

// Bytes of a file.
struct ByteRange {
  uint64_t offset = 0, size = 0;
};

// One row, its cells where its file has the column, else empty. Views are valid until the next row.
struct FileRow {
  uint64_t line = 0;  // in a csv, of its first line; in a db the row's number
  int64_t rowid = 0;  // in a db
  ByteRange whole;    // in a csv, with the line's end
  ByteRange attr;     // in a csv, as written: with its quotes
  std::array<std::string_view, kColumns> cells;
  std::string_view operator[](Column column) const { return cells[static_cast<size_t>(column)]; }
  std::string_view& operator[](Column column) { return cells[static_cast<size_t>(column)]; }
};

// Where the columns of a file are. Without a header: in the original's order.
class ColumnMap {
 public:
  ColumnMap();  // the original's order
  // Whether `names` is a header: Event, Event Type and Timestamp are among them. It is taken over.
  bool take_header(std::span<const std::string_view> names);

  size_t count() const { return count_; }  // of the file's columns
  // How many of them a row needs: up to the last that is not a call stack.
  size_t needed() const { return needed_; }
  std::optional<Column> at(size_t place) const {
    return place < places_.size() && places_[place] < kColumns
               ? std::optional(static_cast<Column>(places_[place]))
               : std::nullopt;
  }
  // ID, Event, Event Type, Name, Timestamp, Process Id, Thread Id lead, in this order: rows can be
  // told from other lines, and names by what follows them.
  bool standard() const { return standard_; }

 private:
  void update();
  static constexpr size_t kMaxPlaces = 64;
  std::array<uint8_t, kMaxPlaces> places_;
  size_t count_ = kColumns, needed_ = 0;
  bool standard_ = true;
};

// Whether text can be a row's beginning in the original's order: `123,MALLOC,`.
enum class Looks : uint8_t { kNo, kYes, kTooShort };
Looks looks_like_row(std::string_view text);
// A name's end: what follows is a timestamp, a process, a thread, a device and an address.
Looks looks_like_after_name(std::string_view text);

// Whether a file that starts so is a csv of memory events, or of Python functions.
bool starts_dump(std::string_view start);
bool starts_python_trace(std::string_view start);
// Without a byte order mark and leading NULs and blank lines.
std::string_view skip_noise(std::string_view start);

}  // namespace memscope
