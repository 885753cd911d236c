// What is in a trace besides its events: who was traced, how it ended, what is missing and why.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/lane_cursor.h"

namespace memscope {

struct ProcessInfo {
  uint64_t pid = 0, parent_pid = 0;
  std::string parent_trace;  // directory of the traced parent, "" none
  std::string host, argv0, command;
  std::optional<int64_t> rank;
  std::string agent, python;  // versions
  uint64_t start_ns = 0;      // process start, epoch ns
};

struct TraceInfo {
  struct Window {
    uint64_t action = 0;  // WindowRecord::action
    uint64_t time = 0;    // epoch ns
  };
  struct Drop {
    uint64_t count = 0, bytes = 0;
  };
  struct Gap {
    uint64_t from_ns = 0, to_ns = 0;
    std::string reason;
  };
  struct Notice {
    std::string what, why;
  };
  struct Child {
    uint64_t pid = 0;
    std::string how, traced;
  };
  struct SourceText {
    std::string text;
    bool newer_than_process = false, statements_only = false, truncated = false;
  };

  // What is kept as curves and live blocks only; folds == 0: nothing.
  struct Folded {
    uint64_t from_ns = 0, to_ns = 0;
    uint64_t steps = 0, events = 0, folds = 0, log_bytes = 0;
  };

  std::filesystem::path directory, log, slab;  // `log`, `slab`: empty where there is none
  uint32_t format_major = 0, format_minor = 0;
  std::optional<ProcessInfo> process;
  std::string ended = "unknown";  // stop exit killed running unknown
  bool sealed = false;            // after its death its slab went into the log (dead_slabs.h)
  uint64_t first_anchor_ns = 0;   // when the trace was made, epoch ns
  std::vector<Window> windows;
  uint64_t seeds = 0;
  uint64_t preexisting = 0;         // seeds that were there before the hooks came
  std::map<uint8_t, Drop> dropped;  // by record kind
  std::vector<Gap> gaps;            // as the agent wrote them
  std::vector<Notice> notices;
  std::map<std::string, std::string> configs;  // the last value of each
  std::map<std::string, SourceText> sources;   // by path, as first read
  std::vector<Child> children;
  bool clock_rate_unknown = false;
  Folded folded;

  uint64_t dropped_events() const {
    uint64_t sum = 0;
    for (const auto& [kind, drop] : dropped) sum += drop.count;
    return sum;
  }
};

// The kinds of which the info is made.
inline constexpr uint64_t kInfoKinds = kind_bit(Kind::kProcess) | kind_bit(Kind::kWindow) |
                                       kind_bit(Kind::kSeed) | kind_bit(Kind::kGap) |
                                       kind_bit(Kind::kDrop) | kind_bit(Kind::kNotice) |
                                       kind_bit(Kind::kConfig) | kind_bit(Kind::kSource) |
                                       kind_bit(Kind::kChild) | kind_bit(Kind::kFolded);

// Takes one event of kInfoKinds in.
void add_to_info(const Event& event, const ClockMap& clock, TraceInfo& info);

// How a process ended, once all its windows are known.
std::string ended_of(const TraceInfo& info);

}  // namespace memscope
