// Rows of msMemScope -> events. One row is one event, and a record of its owner or of what it says
// about the device where it does.
//
//   MALLOC, FREE    HAL -> driver (pinned where the device is the host), PTA, ATB, MINDSPORE ->
//   pool,
//                   PTA_WORKSPACE -> workspace, HOST -> pinned or, with `total`, tensor,
//                   HOST_PINNED -> pinned, HOST_MALLOC -> host, PYTHON -> python
//   shadow:true     MALLOC: alive before recording began, a seed. FREE: freed while not recording,
//   or
//                   at the end no free at all (imported_events.h tells)
//   the rest        Step, Window, Mark, Launch, Access, Oom, PoolSnapshot, Counter, PythonTrace
//
// What a row says and its event has no place for is kept for whoever writes the row again: keys of
// its Attr in an OtherAttr record before the event, a whole row (ACL_INIT, the lists of OOM_DETAIL)
// as OtherRow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/where.h"
#include "import/columns.h"
#include "import/imported_file.h"
#include "import/row_cells.h"
#include "trace/records.h"
#include "tsl/robin_map.h"

namespace memscope {

class RowEvents {
 public:
  static constexpr size_t kMaxProcesses = 4096, kMaxThreads = 1 << 20;

  // `from_db`: whether the rows are a db's, which has some cells otherwise than a csv.
  RowEvents(ImportedFile& file, bool from_db) : file_(file), from_db_(from_db) {}

  void add(const FileRow& row);
  void bad(const FileRow& row, std::string problem);
  // A row of a Python trace: FuncInfo, StartTime(ns), EndTime(ns), Thread Id, Process Id.
  void add_python(std::string_view function, std::string_view start, std::string_view end,
                  std::string_view tid, std::string_view pid);

 private:
  using Problem = std::string;  // "" for none
  Problem common(const FileRow& row);
  Problem block(const FileRow& row, bool is_malloc);
  Problem place(const FileRow& row, const RowAttributes& attr, AddressClass& address_class);
  // Keeps the keys that are not `known`, for the event that is put next.
  void keep_others(const FileRow& row, std::span<const std::string_view> known, uint64_t addr = 0);
  void keep_row(const FileRow& row);
  void counters(const RowAttributes& attr);
  void counter(std::string_view name, std::string_view value);
  Problem access(const FileRow& row);
  Problem launch(const FileRow& row);
  Problem mark(const FileRow& row);
  Problem system(const FileRow& row);
  void drops(const RowAttributes& attr);
  Problem snapshot(const FileRow& row);
  Problem out_of_memory(const FileRow& row);

  template <typename Record>
  void record(const Record& record, Where where, StackId stack = {});
  void put(SpoolEntry entry, std::span<const uint64_t> words = {});
  bool choose_process(uint64_t pid);
  uint32_t thread_of(uint64_t tid);
  StackId stack_of(const FileRow& row);

  ImportedFile& file_;
  bool from_db_;
  tsl::robin_map<uint64_t, uint16_t> parts_;    // by pid
  tsl::robin_map<uint64_t, uint32_t> threads_;  // by tid
  tsl::robin_map<uint64_t, uint64_t> values_;   // of counters, by name and place
  std::vector<uint64_t> words_;
  uint8_t device_type_ = Device::kNpu;  // of devices that are numbers
  // Of the row at hand.
  uint16_t part_ = 0;
  uint64_t pid_ = 0, time_ = 0, id_ = 0;
  uint32_t thread_ = 0;
  uint8_t order_ = 0;
  std::optional<Device> device_;
  bool on_host_ = false;
  Where where_;
  bool has_process_ = false;
};

template <typename Record>
void RowEvents::record(const Record& record, Where where, StackId stack) {
  words_.clear();
  append_record(record, 0, 0, words_);
  SpoolEntry entry;
  entry.kind = EventKind::kRecord;
  entry.record_kind = static_cast<uint8_t>(Record::kKind);
  entry.where = where.packed();
  entry.stack = stack.value;
  put(entry, words_);
}

}  // namespace memscope
