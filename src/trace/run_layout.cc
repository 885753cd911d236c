#include "trace/run_layout.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <tuple>

#include "trace/input_file.h"
#include "trace/layout.h"

namespace memscope {

namespace fs = std::filesystem;

namespace {

// The first directory that could not be looked into.
struct Refused {
  fs::path path;
  std::error_code why;
  void note(const fs::path& where, const std::error_code& error) {
    if (!error || why || error == std::errc::no_such_file_or_directory) return;
    path = where;
    why = error;
  }
};

bool is_process(const fs::path& path, Refused& refused) {
  std::error_code error;
  if (fs::exists(path / kLogName, error) || fs::exists(path / kSlabName, error)) return true;
  refused.note(path, error);
  return false;
}

std::vector<fs::path> directories_in(const fs::path& path, Refused& refused) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.push_back(entry->path());
  }
  refused.note(path, error);
  std::sort(found.begin(), found.end());
  return found;
}

// <host>-<rank|x>-<pid>[.n], as numbers to sort by; the host may have dashes itself.
auto process_order(const fs::path& path) {
  const std::string name = path.filename().string();
  uint64_t rank = UINT64_MAX, pid = UINT64_MAX, again = 0;
  const size_t last = name.rfind('-');
  if (last != std::string::npos && last != 0) {
    const size_t middle = name.rfind('-', last - 1);
    const char* end = name.data() + name.size();
    if (middle != std::string::npos) {
      std::from_chars(name.data() + middle + 1, name.data() + last, rank);
    }
    const auto parsed = std::from_chars(name.data() + last + 1, end, pid);
    if (parsed.ptr != end) std::from_chars(parsed.ptr + 1, end, again);
  }
  return std::tuple(rank, pid, again, name);
}

std::vector<fs::path> processes_in(const fs::path& run, Refused& refused) {
  std::vector<fs::path> found;
  for (fs::path& path : directories_in(run, refused)) {
    if (is_process(path, refused)) found.push_back(std::move(path));
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return process_order(a) < process_order(b);
  });
  return found;
}

// When the first process of a run began. What the trace says survives a copy; the file's own time
// stands in where there is no log.
uint64_t began(const RunLayout& run) {
  uint64_t earliest = UINT64_MAX;
  for (const fs::path& process : run.processes) {
    LogHeader header{};
    const auto log = InputFile::open(process / kLogName);
    uint64_t time = 0;
    if (log && log.value().read_at(0, &header, sizeof(header)) == sizeof(header) &&
        header.magic == kLogMagic) {
      time = header.real_ns;
    } else {
      std::error_code error;
      const auto written = fs::last_write_time(process, error);
      using std::chrono::file_clock;
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
          file_clock::to_sys(written).time_since_epoch());
      time = error ? 0 : static_cast<uint64_t>(ns.count());
    }
    earliest = std::min(earliest, time);
  }
  return earliest;
}

bool has_log_magic(const fs::path& path) {
  uint64_t magic = 0;
  const auto file = InputFile::open(path);
  return file && file.value().read_at(0, &magic, sizeof(magic)) == sizeof(magic) &&
         magic == kLogMagic;
}

}  // namespace

Result<std::vector<RunLayout>> find_runs(const fs::path& input, WhichRuns which) {
  std::error_code error;
  const fs::file_status status = fs::status(input, error);
  if (!fs::exists(status)) {
    const std::string reason = error ? error.message() : "No such file or directory";
    return Error{input.string() + ": " + reason + "; give a run directory or a trace.msm"};
  }
  if (!fs::is_directory(status)) {
    // A file with our name is ours to judge, whatever is in it.
    if (input.filename() == kLogName || has_log_magic(input)) {
      return std::vector<RunLayout>{{input.parent_path(), {input}}};
    }
    if (input.filename() == kSlabName) {
      return std::vector<RunLayout>{{input.parent_path(), {input.parent_path()}}};
    }
    return Error{input.string() +
                 " at offset 0: not a trace of MemScope; give a run directory or a trace.msm"};
  }
  Refused refused;
  if (is_process(input, refused)) return std::vector<RunLayout>{{input, {input}}};
  if (auto processes = processes_in(input, refused); !processes.empty()) {
    return std::vector<RunLayout>{{input, std::move(processes)}};
  }
  std::vector<RunLayout> runs;
  for (const fs::path& path : directories_in(input, refused)) {
    if (auto processes = processes_in(path, refused); !processes.empty()) {
      runs.push_back({path, std::move(processes)});
    }
  }
  if (runs.empty() && refused.why) {
    return Error{refused.path.string() + ": " + refused.why.message() +
                 "; run as the user who recorded it, or copy the run"};
  }
  if (runs.empty()) {
    return Error{input.string() + ": no run in this directory (looked for " + kLogName +
                 " here, in its directories and in theirs); record one with "
                 "`msmemscope python train.py`"};
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunLayout& a, const RunLayout& b) { return began(a) < began(b); });
  if (which == WhichRuns::kNewest) runs.erase(runs.begin(), runs.end() - 1);
  return runs;
}

Result<std::vector<fs::path>> find_processes(const fs::path& input, WhichRuns which) {
  auto runs = find_runs(input, which);
  if (!runs) return runs.error();
  std::vector<fs::path> all;
  for (const RunLayout& run : runs.value()) {
    all.insert(all.end(), run.processes.begin(), run.processes.end());
  }
  return all;
}

}  // namespace memscope
