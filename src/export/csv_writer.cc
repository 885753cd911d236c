// HOT PATH: row().
#include "export/csv_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "export/dump_text.h"

namespace memscope {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
// Commas, quotes, brackets and the longest numbers of a row.
constexpr size_t kFixedBytes = 256;

char* put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* put_field(char* out, std::string_view field, bool quote) {
  if (!quote && !needs_csv_quotes(field)) return put(out, field);
  *out++ = '"';
  out = put_doubling_quotes(out, field);
  *out++ = '"';
  return out;
}

char* put_stack(char* out, const WrittenStack& stack) {
  if (!stack.asked) return out;
  return put_field(out, stack.text.empty() ? "NA" : stack.text, true);
}

// `text` attributes are as good as never there, and hardly ever hostile.
char* put_attrs(char* out, std::span<const WrittenAttr> attrs) {
  if (attrs.empty()) return out;
  out = put(out, "\"{");
  for (const WrittenAttr& attr : attrs) {
    if (&attr != attrs.data()) *out++ = ',';
    out = put(out, attr.key);
    *out++ = ':';
    if (attr.text && breaks_attr(attr.value)) {
      out = put_doubling_quotes(out, json_string(attr.value));
    } else {
      out = put(out, attr.value);
    }
  }
  return put(out, "}\"");
}

template <size_t N>
std::string header(const std::array<std::string_view, N>& columns) {
  std::string line;
  for (const std::string_view column : columns) line.append(line.empty() ? "" : ",").append(column);
  return line + "\n";
}

void put_line(FileBuffer& buffer, std::string_view line) {
  buffer.advance(put(buffer.room(line.size()), line));
}

}  // namespace

FileBuffer::FileBuffer(DraftFile file)
    : file_(std::move(file)), capacity_(kBufferBytes), data_(new char[kBufferBytes]) {}

void FileBuffer::make_room(size_t size) {
  flush();
  if (size <= capacity_) return;
  capacity_ = size;
  data_.reset(new char[size]);
}

void FileBuffer::flush() {
  std::string_view rest(data_.get(), std::exchange(used_, 0));
  while (!rest.empty() && !error_) {
    const ssize_t written = ::write(file_.fd(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = write_error(file_.path(), written < 0 ? errno : ENOSPC);
      return;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

Result<void> FileBuffer::finish() {
  flush();
  if (error_) return *error_;
  return file_.commit();
}

Result<std::unique_ptr<CsvWriter>> CsvWriter::create(
    const std::filesystem::path& path, const std::filesystem::path& calls,
    const std::vector<std::filesystem::path>& inputs) {
  auto file = DraftFile::create(path, inputs);
  if (!file) return file.error();
  return std::unique_ptr<CsvWriter>(new CsvWriter(std::move(file).value(), calls, inputs));
}

CsvWriter::CsvWriter(DraftFile file, std::filesystem::path calls,
                     std::vector<std::filesystem::path> inputs)
    : rows_(std::move(file)), calls_path_(std::move(calls)), inputs_(std::move(inputs)) {
  put_line(rows_, header(kRowColumns));
}

void CsvWriter::row(const WrittenRow& row) {
  size_t size = kFixedBytes + row.event.size() + row.type.size() + 2 * row.name.size() +
                row.device.size() + row.ptr.size() +
                2 * (row.python_stack.text.size() + row.c_stack.text.size());
  // A character of a text can become \u001f, and its quotes are doubled.
  for (const WrittenAttr& attr : row.attrs) {
    size += attr.key.size() + (attr.text ? 6 * attr.value.size() + 8 : attr.value.size()) + 2;
  }
  char* out = rows_.room(size);
  out = put_number(out, row.id);
  *out++ = ',';
  out = put(out, row.event);
  *out++ = ',';
  out = put(out, row.type);
  *out++ = ',';
  out = put_field(out, row.name, row.quote_name);
  *out++ = ',';
  out = put_number(out, row.time);
  *out++ = ',';
  out = put_number(out, row.pid);
  *out++ = ',';
  out = put_number(out, row.tid);
  *out++ = ',';
  out = put(out, row.device);
  *out++ = ',';
  out = put(out, row.ptr);
  *out++ = ',';
  out = put_attrs(out, row.attrs);
  *out++ = ',';
  out = put_stack(out, row.python_stack);
  *out++ = ',';
  out = put_stack(out, row.c_stack);
  *out++ = '\n';
  rows_.advance(out);
}

void CsvWriter::call(const WrittenCall& call) {
  if (calls_path_.empty() || error_) return;
  if (!calls_) {
    auto file = DraftFile::create(calls_path_, inputs_);
    if (!file) {
      error_ = file.error();
      return;
    }
    calls_.emplace(std::move(file).value());
    put_line(*calls_, header(kCallColumns));
  }
  char* out = calls_->room(kFixedBytes + 2 * call.function.size());
  out = put_field(out, call.function, false);
  for (const uint64_t number : {call.start, call.end, call.tid, call.pid}) {
    *out++ = ',';
    out = put_number(out, number);
  }
  *out++ = '\n';
  calls_->advance(out);
}

bool CsvWriter::failed() const {
  return error_ || rows_.failed() || (calls_ && calls_->failed());
}

Result<void> CsvWriter::finish() {
  if (error_) return *error_;
  if (calls_) {
    auto done = calls_->finish();
    if (!done) return done;
  }
  return rows_.finish();
}

}  // namespace memscope
