// libFuzzer: any bytes as a msMemScope csv, and as an Attr. Built with -DMEMSCOPE_FUZZ=ON and
// clang; seeds are in tests/fuzz/csv_rows_fuzzer:
//
//   ./csv_rows_fuzzer -max_total_time=20 -max_len=20000 corpus ../tests/fuzz/csv_rows_fuzzer
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "import/attributes.h"
#include "import/csv_rows.h"
#include "import/find_inputs.h"
#include "import/import_file.h"
#include "import/imported_events.h"
#include "trace/reader.h"

namespace memscope {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// A file in memory, named by its descriptor.
std::string path_of(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  check(::ftruncate(fd, 0) == 0);
  check(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  return "/proc/self/fd/" + std::to_string(fd);
}

// Every byte is in a row, in a header or blank, and rows come in order.
void read_rows(const std::string& path, size_t size) {
  auto rows = CsvRows::open(path);
  check(rows.ok());
  uint64_t at = 0, line = 0;
  for (CsvRows::Row row; rows.value().next(row);) {
    check(row.cells.whole.offset >= at);
    check(row.cells.line > line || row.cells.whole.offset == at);
    at = row.cells.whole.offset + row.cells.whole.size;
    line = row.cells.line;
    check(at <= size);
    check(row.cells.attr.offset + row.cells.attr.size <= at);
    Attributes pairs(row.cells[Column::kAttr]);
    size_t count = 0;
    for (std::string_view key, value; pairs.next(key, value); ++count) {
    }
    check(count <= row.cells[Column::kAttr].size() + 1);
  }
}

// Events come in the order of time, and as often as wanted.
void read_events(const std::string& path) {
  const auto file = import_csv(path);
  if (!file) {
    check(!file.error().message.empty());
    return;
  }
  for (size_t part = 0; part < file.value()->processes.size(); ++part) {
    ImportedEvents events(file.value(), static_cast<uint16_t>(part));
    std::array<size_t, 2> counts{};
    for (size_t& count : counts) {
      uint64_t time = 0;
      std::array<Event, 16> batch;
      while (const size_t got = events.next_batch(batch)) {
        for (size_t i = 0; i < got; ++i) {
          check(batch[i].time >= time);
          time = batch[i].time;
          check(batch[i].stack.value < events.stacks().size());
          check(batch[i].kind == EventKind::kRecord || batch[i].words.empty());
        }
        count += got;
      }
      events.rewind();
    }
    check(counts[0] == counts[1]);
    check(!events.damaged());
  }
}

}  // namespace
}  // namespace memscope

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = memscope::path_of(data, size);
  memscope::read_rows(path, size);
  memscope::read_events(path);
  memscope::file_kind(path);
  return 0;
}
