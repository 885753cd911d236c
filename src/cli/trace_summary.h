// A trace read once from end to end, for `info`: what it says of itself, and what is really in it.
#pragma once

#include <cstdint>
#include <map>
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
  std::string path;
  TraceInfo info;
  File trace, slab;
  std::map<std::string, uint64_t> events;  // by record kind, what the program did only
  uint64_t first_ns = 0, last_ns = 0;      // times of its events, 0 if there is none
  std::vector<std::string> damage;

  bool complete() const {
    return info.dropped_events() == 0 && info.preexisting == 0 && info.gaps.empty() &&
           damage.empty();
  }
};

Result<TraceSummary> summarize_trace(const std::string& path);

// {"schema":1,"tool",...,"inputs":[...]}, indented.
std::string summaries_json(const std::vector<TraceSummary>& summaries);

// "Alloc" for 1; "kind 99" for a kind this version does not know.
std::string record_name(uint8_t kind);

}  // namespace memscope::cli
