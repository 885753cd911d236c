#include "import/open_input.h"

#include <algorithm>
#include <system_error>

#include "import/find_inputs.h"
#include "import/import_file.h"
#include "trace/input_file.h"
#include "trace/layout.h"

namespace memscope {

std::string_view input_kind_name(InputKind kind) {
  switch (kind) {
    case InputKind::kCsv:
      return "csv";
    case InputKind::kDb:
      return "db";
    case InputKind::kSnapshot:
      return "snapshot";
    case InputKind::kTrace:
      break;
  }
  return "trace";
}

Input::Input(std::string path, std::unique_ptr<TraceReader> trace)
    : path_(std::move(path)), trace_(std::move(trace)) {}

Input::Input(InputKind kind, std::shared_ptr<const ImportedFile> file, uint16_t process)
    : path_(file->path.string()),
      kind_(kind),
      file_(std::move(file)),
      imported_(std::make_unique<ImportedEvents>(file_, process)) {}

Input::Input(std::shared_ptr<const SnapshotFile> snapshot)
    : path_(snapshot->path.string()),
      kind_(InputKind::kSnapshot),
      snapshot_(std::make_unique<SnapshotEvents>(std::move(snapshot))) {}

InputInfo Input::info() const {
  InputInfo info{.path = path_, .kind = kind_};
  if (snapshot_) {
    const SnapshotFile& file = snapshot_->file();
    info.complete = file.has_traces && file.older == 0 && file.odd == 0;
    info.settings = file.settings;
    return info;
  }
  if (imported_) {
    const ImportedProcess& process = imported_->process();
    if (process.pid != 0) {
      info.process.emplace();
      info.process->pid = process.pid;
    }
    info.ended = process.ended();
    info.dropped = file_->bad_rows + process.dropped;
    info.complete = info.dropped == 0 && process.seeds == 0 && !lost();
    info.settings = file_->settings;
    return info;
  }
  const TraceInfo& trace = trace_->info();
  info.process = trace.process;
  info.ended = trace.ended;
  info.dropped = trace.dropped_events();
  info.complete = info.dropped == 0 && trace.preexisting == 0 && trace.gaps.empty() && !lost();
  info.settings = trace.configs;
  return info;
}

const StackTable& Input::stacks() const {
  if (snapshot_) return snapshot_->stacks();
  return imported_ ? imported_->stacks() : trace_->stacks();
}
const StringTable& Input::strings() const {
  if (snapshot_) return snapshot_->strings();
  return imported_ ? imported_->strings() : trace_->strings();
}
const std::vector<ThreadEntry>& Input::threads() const {
  if (snapshot_) return snapshot_->file().threads;
  return imported_ ? file_->threads : trace_->threads();
}

std::vector<std::string> Input::damage() const {
  if (snapshot_) return snapshot_->file().damage();
  if (!imported_) return trace_->damage();
  std::vector<std::string> lines = file_->damage();
  if (imported_->damaged()) {
    lines.push_back(path_ + ": its sorted events cannot be read back from " +
                    "the temporary file; set TMPDIR to another directory");
  }
  return lines;
}

std::vector<std::filesystem::path> Input::files() const {
  if (trace_ == nullptr) return {path_};
  return {trace_->info().log, trace_->info().slab};
}

bool Input::lost() const {
  if (snapshot_) return false;
  if (imported_) return !file_->broken.empty() || imported_->damaged();
  return trace_->lost_bytes() != 0;
}

uint64_t Input::lost_frees() const {
  if (snapshot_) return 0;
  if (imported_) return file_->bad_frees;
  // About one record in three is a free.
  constexpr uint64_t kBytesAFree = 48;
  return trace_->hole_bytes() / kBytesAFree;
}

namespace {

// An input a process.
std::vector<Input> inputs_of(InputKind kind, const std::shared_ptr<const ImportedFile>& file,
                             WhichProcesses which) {
  const auto has_blocks = [](const ImportedProcess& process) {
    return process.allocs + process.frees + process.seeds != 0;
  };
  const std::vector<ImportedProcess>& processes = file->processes;
  const bool any = which == WhichProcesses::kWithBlocks &&
                   std::any_of(processes.begin(), processes.end(), has_blocks);
  std::vector<Input> inputs;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (any && !has_blocks(processes[i])) continue;
    inputs.emplace_back(kind, file, static_cast<uint16_t>(i));
  }
  return inputs;
}

Error refuse(const std::filesystem::path& path, const std::string& why) {
  return Error{path.string() + ": " + why + "; " + kInputAdvice};
}

}  // namespace

Result<std::vector<Input>> open_input(const std::filesystem::path& path, WhichProcesses which) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool is_file = std::filesystem::is_regular_file(status);
  if (is_file) {
    if (const auto file = InputFile::open(path); !file) {
      return Error{file.error().message + "; read it as the user who wrote it, or have it copied"};
    }
  } else if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    return Error{path.string() +
                 ": a pipe or a device, which can be read once only; write it to a file first"};
  }
  const FileKind kind = is_file ? file_kind(path) : FileKind::kTrace;
  const bool ours = path.filename() == kLogName || path.filename() == kSlabName;
  switch (ours ? FileKind::kTrace : kind) {
    case FileKind::kTrace: {
      Result<TraceReader> opened = TraceReader::open(path);
      if (!opened) return opened.error();
      std::vector<Input> inputs;
      inputs.emplace_back(path.string(), std::make_unique<TraceReader>(std::move(opened).value()));
      return inputs;
    }
    case FileKind::kCsv: {
      auto file = import_csv(path);
      if (!file) return file.error();
      return inputs_of(InputKind::kCsv, file.value(), which);
    }
    case FileKind::kDb: {
      auto file = import_db(path);
      if (!file) return file.error();
      return inputs_of(InputKind::kDb, file.value(), which);
    }
    case FileKind::kEmpty:
      return refuse(path, "the file is empty (0 bytes)");
    case FileKind::kPythonTrace:
      return refuse(path, "it holds Python functions only; the dump beside it holds the memory");
    case FileKind::kUtf16:
      return refuse(path, "text in UTF-16; save it as UTF-8");
    case FileKind::kCompressed:
      return refuse(path, "the file is compressed; unpack it first");
    case FileKind::kSnapshot: {
      auto file = import_snapshot(path);
      if (!file) return file.error();
      std::vector<Input> inputs;
      inputs.emplace_back(file.value());
      return inputs;
    }
    case FileKind::kZip:
      return refuse(path, "a zip file; unpack it first, or it is a model and no memory snapshot");
    case FileKind::kUnknown:
      break;
  }
  return refuse(
      path,
      "at its first line: neither a trace, nor a snapshot, nor SQLite, nor a csv with the columns "
      "ID,Event,Event Type,...");
}

}  // namespace memscope
