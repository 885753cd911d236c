// Any input as events: a trace of MemScope, a csv or db of msMemScope, a snapshot of PyTorch; told
// apart by what is in the file, never by its name.
//
//   auto opened = open_input(path);               // a path of find_inputs(); one Input a process
//   if (!opened) return opened.error();           // one clear line: what, where, why, what to do
//   for (Input& input : opened.value()) {
//     ReplayResult result = input.visit([](auto& source) { return replay(source, {}); });
//   }
//
// Promises
//  * `visit` hands out an EventSource (replay/event_source.h) that stands at its first event, each
//    time anew: an input may be read as often as wanted.
//  * Stacks, strings and threads belong to the Input and live as long as it does. They grow while a
//    trace is read and are complete at once for a dump. Inputs of one file share them.
//  * Nothing is written beside an input, nothing in it is executed, and no bytes in it make the
//    reader crash or its memory grow beyond what event_spool.h and trace/reader.h say.
//  * What could not be used is in damage(), a line each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "import/imported_events.h"
#include "import/snapshot_events.h"
#include "replay/trace_events.h"
#include "trace/reader.h"

namespace memscope {

enum class InputKind : uint8_t { kTrace, kCsv, kDb, kSnapshot };
// As in `analyze --json`: "trace", "csv", "db", "snapshot".
std::string_view input_kind_name(InputKind kind);

// What is known of an input before its events are read.
struct InputInfo {
  std::string path;  // what was opened
  InputKind kind = InputKind::kTrace;
  std::optional<ProcessInfo> process;  // a dump knows the pid alone
  std::string ended = "unknown";       // stop exit killed running unknown
  bool complete = true;                // no event dropped, none before the hooks came
  uint64_t dropped = 0;                // events that found no slot; rows that could not be used
  std::map<std::string, std::string> settings;  // that were in force when it was recorded
};

class Input {
 public:
  Input(std::string path, std::unique_ptr<TraceReader> trace);
  Input(InputKind kind, std::shared_ptr<const ImportedFile> file, uint16_t process);
  explicit Input(std::shared_ptr<const SnapshotFile> snapshot);

  InputInfo info() const;
  // What it is read from: nothing that is written may replace these.
  std::vector<std::filesystem::path> files() const;
  const StackTable& stacks() const;
  const StringTable& strings() const;
  const std::vector<ThreadEntry>& threads() const;  // by ThreadId

  // visit(source), with a source of another type for each kind of input.
  template <typename Visit>
  decltype(auto) visit(Visit&& visit) {
    if (imported_) {
      imported_->rewind();
      return std::forward<Visit>(visit)(*imported_);
    }
    if (snapshot_) {
      snapshot_->rewind();
      return std::forward<Visit>(visit)(*snapshot_);
    }
    trace_->rewind();
    TraceEvents source(*trace_);
    return std::forward<Visit>(visit)(source);
  }

  // Grow while events are read.
  std::vector<std::string> damage() const;
  bool lost() const;            // bytes that should hold events could not be read: exit status 2
  uint64_t lost_frees() const;  // frees that are probably among what is lost

  // One of them is there.
  const TraceReader* trace() const { return trace_.get(); }
  const ImportedFile* imported_file() const { return file_.get(); }
  const SnapshotFile* snapshot() const { return snapshot_ ? &snapshot_->file() : nullptr; }

 private:
  std::string path_;
  InputKind kind_ = InputKind::kTrace;
  std::unique_ptr<TraceReader> trace_;
  std::shared_ptr<const ImportedFile> file_;
  std::unique_ptr<ImportedEvents> imported_;
  std::unique_ptr<SnapshotEvents> snapshot_;
};

// One file, or the directory of one traced process. Of a file with several processes those without
// a block are left out where others have some, unless all are asked for.
enum class WhichProcesses : uint8_t { kWithBlocks, kAll };
Result<std::vector<Input>> open_input(const std::filesystem::path& path,
                                      WhichProcesses which = WhichProcesses::kWithBlocks);

}  // namespace memscope
