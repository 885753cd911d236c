// From what the user names to what open_input() takes: traces (trace/run_layout.h), the dumps of
// msMemScope and snapshots of PyTorch, told apart by what is in them.
//
//   <output>/msmemscope_<pid>_<time>_ascend/device_<id>/dump/memscope_dump_<time>.csv|.db
//
// A file is itself. A directory with traces is its traces, as run_layout.h says; one without is all
// the dumps in it, in its device_*/dump, or in those of its msmemscope_* directories: each an
// input.
#pragma once

#include <filesystem>
#include <vector>

#include "core/result.h"
#include "trace/run_layout.h"

namespace memscope {

// What to do about a path that leads to no input.
inline constexpr const char* kInputAdvice =
    "give a run directory, a trace.msm, a csv or db of msMemScope, or a PyTorch snapshot";

// What a file's first bytes say it is.
enum class FileKind : uint8_t {
  kUnknown,
  kEmpty,
  kTrace,
  kCsv,          // of msMemScope: rows of memory events
  kPythonTrace,  // its csv of Python functions
  kDb,           // SQLite, of whatever tables
  kUtf16,        // text, in an encoding that is not read
  kSnapshot,     // a pickle or JSON, plain or in gzip: of PyTorch, perhaps
  kZip,
  kCompressed,  // by gzip (what is in it is no snapshot), zstd, xz or bzip2
};
FileKind file_kind(const std::filesystem::path& path);

// Never empty: an input without anything readable is an error that says what was looked for.
Result<std::vector<std::filesystem::path>> find_inputs(const std::filesystem::path& input,
                                                       WhichRuns which = WhichRuns::kNewest);

}  // namespace memscope
