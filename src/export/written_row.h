// A row of msMemScope's dump, and what takes rows. The texts belong to whoever makes the row and
// are valid during the call only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"

namespace memscope {

struct WrittenAttr {
  std::string_view key, value;
  bool text = false;  // clean, but may need escaping; else it is a number or a word
};

// A stack column. Not asked for: empty. Asked for, but there is none: "NA" in a csv, empty in a db.
struct WrittenStack {
  bool asked = false;
  std::string_view text;  // a frame a line, the innermost first
};

struct WrittenRow {
  uint64_t id = 0;
  std::string_view event, type;
  std::string_view name = "N/A";
  bool quote_name = false;  // MSTX: in quotes even where the csv could do without
  uint64_t time = 0, pid = 0, tid = 0;
  std::string_view device = "N/A";
  std::string_view ptr = "N/A";
  std::span<const WrittenAttr> attrs;
  WrittenStack python_stack, c_stack;
};

// A row of the Python trace: a call of a function.
struct WrittenCall {
  std::string_view function;
  uint64_t start = 0, end = 0;  // ns since the epoch, start < end
  uint64_t tid = 0, pid = 0;
};

// In the order of the file.
inline constexpr std::array<std::string_view, 12> kRowColumns = {
    "ID",        "Event",     "Event Type", "Name", "Timestamp(ns)",      "Process Id",
    "Thread Id", "Device Id", "Ptr",        "Attr", "Call Stack(Python)", "Call Stack(C)"};
inline constexpr std::array<std::string_view, 5> kCallColumns = {
    "FuncInfo", "StartTime(ns)", "EndTime(ns)", "Thread Id", "Process Id"};

// A file that rows go to. Errors stick: after one, rows are taken and forgotten, and finish() says
// what it was.
class RowWriter {
 public:
  RowWriter() = default;
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  virtual ~RowWriter() = default;

  virtual void row(const WrittenRow& row) = 0;
  virtual void call(const WrittenCall& call) = 0;
  virtual bool failed() const = 0;
  // The file is whole and stands under its name; without this call nothing of it stays.
  virtual Result<void> finish() = 0;
};

}  // namespace memscope
