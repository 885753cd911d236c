// The rows of a msMemScope csv, one by one, as the original and others wrote them.
//
//   auto rows = CsvRows::open(path);
//   for (CsvRows::Row row; rows.value().next(row);)
//     if (row.problem.empty()) use(row.cells) else count(row.cells.line, row.problem);
//
// A field that reads as RFC 4180 has it, quotes inside doubled, and is followed by what can follow
// it is that field, whatever is in it: no label can pass for rows.
//
// The original escapes nothing: a message with quotes, commas or line ends in it is written raw
// between two quotes. So otherwise a quote ends a field only where what follows can follow it:
//
//   Name    `",` and then a timestamp, a process, a thread, a device and an address; without quotes
//           likewise at a comma
//   Attr    `}"` and a comma or the line's end; `}` without quotes
//   others  RFC 4180
//
// and such a field that runs into what can only be the next row was cut: the row is bad and the
// next one is good. RFC 4180 files, Python's csv module (all quoted or not), CRLF, byte order
// marks, NULs and headers in the middle (joined files) read as they are meant.
//
// Promises
//  * Any bytes: never crashes, delivers every line either in a row or in a problem, blank lines and
//    headers apart.
//  * Memory: kWindow, or the longest row up to kMaxRow; a longer one is a problem and is skipped.
//  * The file is read with pread, front to back, once.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "import/columns.h"
#include "trace/input_file.h"

namespace memscope {

class CsvRows {
 public:
  static constexpr size_t kWindow = 1 << 20, kMaxRow = 8 << 20;

  struct Row {
    FileRow cells;
    std::string problem;  // why the row cannot be used; "" for a good one
  };

  static Result<CsvRows> open(const std::filesystem::path& path);

  // False at the end. Headers are taken in and not delivered.
  bool next(Row& row);
  // From the first row again.
  void rewind();

  uint64_t headers() const { return headers_; }
  uint64_t bytes_read() const { return offset_ + begin_; }

 private:
  struct Field {
    size_t begin = 0, size = 0;          // of the text, in the window
    size_t raw_begin = 0, raw_size = 0;  // with its quotes
    bool scratch = false;                // the text is scratch_[place], without the doubled quotes
  };
  enum class End : uint8_t {
    kComma,
    kLine,
    kFile,
    kCut,   // within quotes, by the next row or the end of the file
    kMore,  // cannot be told before more of the file is in the window
  };
  static constexpr size_t kMaxFields = 64;  // kept of a row
  // The longest field that is looked through for its end by RFC 4180: a cut one must not cost the
  // rest of the file.
  static constexpr size_t kStrict = 512 << 10;

  explicit CsvRows(InputFile file);

  bool refill();
  void skip_noise();
  bool parse(Row& row, bool& is_row);
  bool deliver(size_t count, size_t used, End end, Row& row);
  void skip_long_row(Row& row);

  // Where the quote is that ends the field at `at` as RFC 4180 has it.
  struct Close {
    enum Answer : uint8_t { kYes, kNo, kMore } answer = kNo;
    size_t quote = 0;
    bool doubled = false;  // there are doubled quotes in it
  };
  Close strict_close(std::string_view text, size_t at, size_t place) const;
  bool may_follow(std::string_view text, size_t begin, size_t place, Close& close) const;
  End quoted(std::string_view text, size_t& at, size_t place, Field& field);
  End loosely_quoted(std::string_view text, size_t& at, size_t place, Field& field);
  End bare(std::string_view text, size_t& at, size_t place, Field& field) const;
  End bare_name(std::string_view text, size_t& at, Field& field) const;
  End after_field(std::string_view text, size_t& at) const;
  bool whole_line(std::string_view text, size_t at) const;

  InputFile file_;
  ColumnMap columns_;
  std::vector<char> window_;
  size_t begin_ = 0, end_ = 0;  // of what is not parsed yet, in the window
  bool final_ = false;          // the file has no more than the window
  uint64_t offset_ = 0;         // of the window in the file
  uint64_t line_ = 1;           // of begin_
  uint64_t headers_ = 0;
  std::vector<Field> fields_;
  std::vector<std::string> scratch_;
};

}  // namespace memscope
