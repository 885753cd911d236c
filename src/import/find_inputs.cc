#include "import/find_inputs.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>

#include "import/byte_stream.h"
#include "import/columns.h"
#include "trace/input_file.h"
#include "trace/layout.h"

namespace memscope {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxFiles = 100'000;  // of one directory that are looked into

std::vector<fs::path> entries_in(const fs::path& directory, bool directories) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end && found.size() < kMaxFiles; entry.increment(error)) {
    std::error_code ignored;
    if (directories ? entry->is_directory(ignored) : entry->is_regular_file(ignored)) {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_dumps_in(const fs::path& directory, std::vector<fs::path>& dumps) {
  for (fs::path& file : entries_in(directory, false)) {
    const std::string suffix = file.extension().string();
    const bool maybe =
        suffix == ".csv" || suffix == ".db" || suffix == ".pickle" || suffix == ".pkl";
    const FileKind kind = maybe ? file_kind(file) : FileKind::kUnknown;
    if (kind == FileKind::kCsv || kind == FileKind::kDb || kind == FileKind::kSnapshot) {
      dumps.push_back(std::move(file));
    }
  }
}

// In the directory of one process.
void add_dumps_of(const fs::path& process, std::vector<fs::path>& dumps) {
  for (const fs::path& device : entries_in(process, true)) {
    if (device.filename().string().starts_with("device_")) add_dumps_in(device / "dump", dumps);
  }
}

std::vector<fs::path> dumps_of(const fs::path& directory) {
  std::vector<fs::path> dumps;
  add_dumps_in(directory, dumps);
  add_dumps_in(directory / "dump", dumps);
  add_dumps_of(directory, dumps);
  for (const fs::path& process : entries_in(directory, true)) {
    const std::string name = process.filename().string();
    if (name.starts_with("msmemscope_") || name.starts_with("msleaks_")) {
      add_dumps_of(process, dumps);
    }
  }
  return dumps;
}

}  // namespace

namespace {

// Protocols 2 to 5, or JSON.
bool starts_snapshot(std::string_view start) {
  if (start.size() < 2) return false;
  const auto protocol = static_cast<uint8_t>(start[1]);
  if (static_cast<uint8_t>(start[0]) == 0x80) return protocol >= 2 && protocol <= 5;
  constexpr std::string_view kInside = "\"{[ \r\n\t";
  return (start[0] == '{' || start[0] == '[') && kInside.find(start[1]) != std::string_view::npos;
}

}  // namespace

FileKind file_kind(const fs::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return FileKind::kUnknown;
  if (file.value().size() == 0) return FileKind::kEmpty;
  std::array<char, 4096> bytes;
  const std::string_view start(bytes.data(), file.value().read_at(0, bytes.data(), bytes.size()));
  uint64_t magic = 0;
  if (start.size() >= sizeof(magic)) start.copy(reinterpret_cast<char*>(&magic), sizeof(magic));
  if (magic == kLogMagic) return FileKind::kTrace;
  using namespace std::string_view_literals;
  if (start.starts_with("SQLite format 3\0"sv)) return FileKind::kDb;
  if (start.starts_with("\xFF\xFE"sv) || start.starts_with("\xFE\xFF"sv)) return FileKind::kUtf16;
  if (start.starts_with("PK\x03\x04"sv)) return FileKind::kZip;
  if (starts_snapshot(start)) return FileKind::kSnapshot;
  if (start.starts_with("\x1F\x8B"sv)) {
    auto unpacked = ByteStream::open(path);
    if (unpacked && unpacked.value().need(2)) {
      const auto* const inside = reinterpret_cast<const char*>(unpacked.value().at());
      if (starts_snapshot({inside, 2})) return FileKind::kSnapshot;
    }
  }
  for (const std::string_view magic_of :
       {"\x1F\x8B"sv, "\x28\xB5\x2F\xFD"sv, "\xFD\x37zXZ"sv, "BZh"sv}) {
    if (start.starts_with(magic_of)) return FileKind::kCompressed;
  }
  if (starts_python_trace(start)) return FileKind::kPythonTrace;
  return starts_dump(start) ? FileKind::kCsv : FileKind::kUnknown;
}

Result<std::vector<fs::path>> find_inputs(const fs::path& input, WhichRuns which) {
  std::error_code error;
  const fs::file_status status = fs::status(input, error);
  if (!fs::exists(status)) {
    const std::string reason = error ? error.message() : "No such file or directory";
    return Error{input.string() + ": " + reason + "; " + kInputAdvice};
  }
  // What is no trace is for open_input() to judge, which knows what to say about each kind.
  if (fs::is_other(status) || fs::is_fifo(status) || fs::is_socket(status)) {
    return std::vector<fs::path>{input};
  }
  if (fs::is_regular_file(status)) {
    const FileKind kind = file_kind(input);
    const bool ours = input.filename() == kLogName || input.filename() == kSlabName;
    if (kind != FileKind::kTrace && !ours) return std::vector<fs::path>{input};
  }
  auto traces = find_processes(input, which);
  if (traces || !fs::is_directory(status)) return traces;
  std::vector<fs::path> dumps = dumps_of(input);
  if (dumps.empty()) return traces.error();
  return dumps;
}

}  // namespace memscope
