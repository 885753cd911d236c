// For tests: events written by hand, dumped to a file, and read back.
#pragma once

#include <sqlite3.h>

#include <string>
#include <utility>
#include <vector>

#include "export/dump.h"
#include "replay/event_source.h"
#include "trace/test_directory.h"

namespace memscope {

inline constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
inline constexpr Where kCuda{Layer::kPool, {Device::kCuda, 0}};
inline constexpr Where kNpu{Layer::kPool, {Device::kNpu, 0}};
inline constexpr Where kNpu1{Layer::kPool, {Device::kNpu, 1}};
inline constexpr uint64_t kStartWindow = 1, kStopWindow = 2, kExitWindow = 4;

class DumpStory {
 public:
  DumpStory() {
    StackTable& stacks = source_.stacks();
    StringTable& strings = source_.strings();
    const FrameId main = stacks.intern_frame({.file = strings.intern("/home/me/train.py"),
                                              .function = strings.intern("<module>"),
                                              .line = 30});
    const FrameId inner = stacks.intern_frame({.file = strings.intern("/home/me/model.py"),
                                               .function = strings.intern("forward"),
                                               .line = 7});
    const FrameId native = stacks.intern_frame({.file = strings.intern("/lib/libc10.so"),
                                                .function = strings.intern("c10::alloc()"),
                                                .kind = FrameKind::kNative});
    stack_ = stacks.intern(stacks.intern(stacks.intern({}, main), inner), native);
  }

  // main (train.py:30) -> forward (model.py:7) -> c10::alloc()
  StackId stack() const { return stack_; }
  VectorSource& source() { return source_; }

  void alloc(uint64_t time, uint64_t addr, uint64_t size, Where where = kCpu, uint32_t thread = 1) {
    source_.add({.kind = EventKind::kAlloc,
                 .where = where,
                 .thread = ThreadId(thread),
                 .stack = stack_,
                 .time = time,
                 .addr = addr,
                 .size = size});
  }
  void pool_alloc(uint64_t time, uint64_t addr, uint64_t size, uint64_t allocated,
                  uint64_t reserved, Where where = kCuda) {
    source_.add({.kind = EventKind::kAlloc,
                 .has_totals = true,
                 .where = where,
                 .thread = ThreadId(1),
                 .stack = stack_,
                 .time = time,
                 .addr = addr,
                 .size = size,
                 .allocated = allocated,
                 .reserved = reserved});
  }
  void free(uint64_t time, uint64_t addr, Where where = kCpu, uint32_t thread = 1) {
    source_.add({.kind = EventKind::kFree,
                 .where = where,
                 .thread = ThreadId(thread),
                 .time = time,
                 .addr = addr});
  }
  void seed(uint64_t time, uint64_t addr, uint64_t size, uint64_t birth, Where where = kCpu) {
    source_.add({.kind = EventKind::kSeed,
                 .where = where,
                 .time = time,
                 .addr = addr,
                 .size = size,
                 .birth = birth});
  }
  void window(uint64_t time, uint64_t action) {
    source_.add({.kind = EventKind::kWindow, .time = time, .size = action});
  }
  void step(uint64_t time) {
    record(time, StepRecord{.source = static_cast<uint64_t>(StepSource::kApi)});
  }
  void mark(uint64_t time, std::string_view text) { record(time, MarkRecord{.text = text}); }
  template <typename Record>
  void record(uint64_t time, const Record& record) {
    source_.add_record(time, record);
  }

  // As an Input of import/open_input.h.
  template <typename Visit>
  decltype(auto) visit(Visit&& visit) {
    source_.rewind();
    return std::forward<Visit>(visit)(source_);
  }

  // Threads 1, 2, ... have the tids 101, 102, ...
  Result<DumpReport> dump(DumpFiles& files, const DumpRequest& request) {
    DumpProcess process;
    process.pid = 4711;
    process.tid_of = [](ThreadId thread) {
      return thread.value == 0 ? uint64_t{0} : uint64_t{100} + thread.value;
    };
    return write_dump(*this, process, request, files);
  }
  Result<DumpReport> dump(const std::filesystem::path& target, DumpFormat format,
                          const DumpRequest& request = {}) {
    DumpFiles files(target, false, format, request.settings.compat, {});
    return dump(files, request);
  }
  // Lines of the csv, without the header.
  std::vector<std::string> csv(const DumpRequest& request = {}) {
    const TestDirectory directory;
    const auto path = directory / "dump.csv";
    const auto done = dump(path, DumpFormat::kCsv, request);
    if (!done) return {"error: " + done.error().message};
    std::vector<std::string> lines;
    std::string text = read_bytes(path);
    for (size_t at = text.find('\n') + 1, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
    }
    return lines;
  }

 private:
  VectorSource source_;
  StackId stack_;
};

using TextRow = std::vector<std::string>;

// Every row of the answer, all columns as text; a failure is one row with SQLite's message.
inline std::vector<TextRow> query(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* db = nullptr;
  std::vector<TextRow> rows;
  sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  const int status = sqlite3_exec(
      db, sql.c_str(),
      [](void* out, int count, char** values, char**) {
        TextRow row;
        for (int i = 0; i < count; ++i) row.emplace_back(values[i] != nullptr ? values[i] : "NULL");
        static_cast<std::vector<TextRow>*>(out)->push_back(std::move(row));
        return 0;
      },
      &rows, nullptr);
  if (status != SQLITE_OK) rows.push_back({sqlite3_errmsg(db)});
  sqlite3_close(db);
  return rows;
}

}  // namespace memscope
