// An input read once from end to end, for `info`: what it says of itself, and what is really in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "trace/trace_info.h"

namespace memscope::cli {

struct TraceSummary {
  struct File {
    std::string path;  // "" if there is none
    uint64_t bytes = 0;
  };
  struct Rows {
    uint64_t used = 0, unused = 0, bad = 0;  // of all processes of the file
  };
  // Of a snapshot: what a device's allocator says of itself, at the end.
  struct Pool {
    std::string device;
    uint64_t segments = 0, blocks = 0;  // blocks that are allocated
    uint64_t reserved = 0, allocated = 0, active = 0, requested = 0, workspace = 0;  // bytes
    uint64_t entries = 0;  // of its history
    uint64_t older = 0;    // blocks that were there when it begins
    std::string model;     // whether the simulator makes the same decisions; "" without a history
  };
  std::string path, kind = "trace";
  TraceInfo info;
  File trace, slab;                        // of another kind: the file itself, and none
  std::optional<Rows> rows;                // of a csv or db
  std::vector<Pool> pools;                 // of a snapshot
  bool whole = true;                       // of a snapshot: nothing is older than its history
  std::map<std::string, uint64_t> events;  // by record kind, what the program did only
  uint64_t first_ns = 0, last_ns = 0;      // times of its events, 0 if there is none
  std::vector<std::string> damage;

  bool complete() const {
    return info.dropped_events() == 0 && info.preexisting == 0 && info.gaps.empty() &&
           damage.empty() && whole;
  }
};

// What open_input() takes: a summary a process.
Result<std::vector<TraceSummary>> summarize_input(const std::string& path);

// {"schema":1,"tool",...,"inputs":[...]}, indented.
std::string summaries_json(const std::vector<TraceSummary>& summaries);

// "Alloc" for 1; "kind 99" for a kind this version does not know.
std::string record_name(uint8_t kind);

}  // namespace memscope::cli
