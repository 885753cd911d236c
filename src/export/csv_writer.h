// Writes a dump as csv: msMemScope's header and columns, RFC 4180 quoting, a row a line.
//
//   ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,...
//   7,MALLOC,HOST,N/A,1779862932214628220,4711,4711,cpu,0x000055d0c0ffee00,"{size:512,...}",,
//
// Calls of the Python trace go to a file of their own, which is made when the first one comes.
// HOT PATH: row().
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "export/draft_file.h"
#include "export/written_row.h"

namespace memscope {

// Bytes on their way into a file, a large piece at a time.
class FileBuffer {
 public:
  explicit FileBuffer(DraftFile file);

  // Room for `size` bytes; what was written there is given back to advance().
  char* room(size_t size) {
    if (capacity_ - used_ < size) [[unlikely]]
      make_room(size);
    return data_.get() + used_;
  }
  void advance(const char* end) { used_ = static_cast<size_t>(end - data_.get()); }
  bool failed() const { return error_.has_value(); }
  Result<void> finish();

 private:
  void make_room(size_t size);
  void flush();

  DraftFile file_;
  size_t used_ = 0, capacity_;
  std::unique_ptr<char[]> data_;
  std::optional<Error> error_;
};

class CsvWriter final : public RowWriter {
 public:
  // `calls` is where the Python trace goes; empty: its rows are counted and left out.
  static Result<std::unique_ptr<CsvWriter>> create(
      const std::filesystem::path& path, const std::filesystem::path& calls,
      const std::vector<std::filesystem::path>& inputs);

  void row(const WrittenRow& row) override;
  void call(const WrittenCall& call) override;
  bool failed() const override;
  Result<void> finish() override;

 private:
  CsvWriter(DraftFile file, std::filesystem::path calls, std::vector<std::filesystem::path> inputs);

  FileBuffer rows_;
  std::filesystem::path calls_path_;
  std::vector<std::filesystem::path> inputs_;
  std::optional<FileBuffer> calls_;
  std::optional<Error> error_;
};

}  // namespace memscope
