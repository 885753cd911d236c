// What a csv or db holds, read once: events of each of its processes, sorted, and what could not be
// used. Shared by the inputs of the file (imported_events.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "import/call_stacks.h"
#include "import/event_spool.h"
#include "trace/lane_tables.h"

namespace memscope {

// WindowRecord::action, as entries have it in their size.
inline constexpr uint64_t kWindowStart = 1, kWindowStop = 2;

// Flags of the spool's entries.
enum EntryFlags : uint8_t {
  kHasTotals = 1,
  kShadow = 2,      // a FREE that the original made up
  kSampled = 4,     // `allocated` is Event::sampled_size, where there are no totals
  kClassShift = 4,  // two bits: which blocks a free may end, see AddressClass
};

// Where a row does not say in full where its block lies, the block's own row does: a free ends the
// block of its class that has its address.
enum class AddressClass : uint8_t { kExact, kHal, kHost, kPta };

struct ImportedProcess {
  // START_TRACE and STOP_TRACE rows, in order once the file is read.
  static constexpr size_t kMaxWindows = 1 << 16;
  struct Window {
    uint64_t time = 0;
    bool start = false;
    friend auto operator<=>(const Window&, const Window&) = default;
  };
  std::vector<Window> windows;

  uint64_t pid = 0;
  uint64_t first = 0, last = 0;  // ns since the epoch
  uint64_t allocs = 0, frees = 0, seeds = 0, records = 0;
  uint64_t shadow_frees = 0;
  uint64_t dropped = 0;  // events, as a dump of ours says of its trace
  uint64_t starts = 0, first_start = 0, last_start = 0;  // START_TRACE rows
  uint64_t last_stop = 0;                                // STOP_TRACE
  bool finished = false;                                 // ACL_FINI
  bool resolve = false;  // frees do not say in full where their blocks are

  std::string_view ended() const;
};

struct ImportedFile {
  std::filesystem::path path;
  EventSpool spool;
  CallStacks stacks;
  std::vector<ThreadEntry> threads;        // by ThreadId
  std::vector<ImportedProcess> processes;  // by SpoolEntry::part

  uint64_t rows = 0;       // that are good
  uint64_t unused = 0;     // of them, those of kinds that say nothing about memory
  uint64_t bad_rows = 0;   // that could not be used
  uint64_t bad_frees = 0;  // of them, those that may be frees
  uint64_t headers = 0;
  uint64_t first_bad_line = 0;
  std::string first_problem;
  std::string broken;  // why reading ended before the file's end, "" if it did not
  std::map<std::string, std::string> settings;  // of the config.json beside it

  // A line each.
  std::vector<std::string> damage() const;
};

}  // namespace memscope
