// What the resident memory of a traced process is made of, from the counters that the agent's host
// source writes (capture/memory_counters.h).
//
//   resident memory at the end
//     310 MiB, peak 350 MiB     anonymous 200 MiB, files 40.0 MiB, shared 70.0 MiB
//     anonymous                 malloc and mmap 150 MiB, of that tensors 100 MiB; 50.0 MiB else:
//                               free lists, stacks, what was there before the recording
//     files                     of that 64.0 MiB are the agent's slab
//     control group             1.20 GiB of 4.00 GiB
//
// What was asked for and never touched is no resident memory: where the count exceeds what the
// kernel has, that is said instead of a rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis.h"
#include "report/terminal.h"

namespace memscope::cli {

struct MemoryParts {
  std::map<std::string, int64_t, std::less<>> last;  // by the counter's name, bytes
  int64_t peak_rss = 0;                              // of those sampled

  std::optional<int64_t> value(std::string_view name) const;
};

// Nothing where the trace has no such counters or cannot be read.
std::optional<MemoryParts> read_memory_parts(const std::string& path);

// One line: "310 MiB resident at the end (peak 350 MiB): anonymous 200 MiB, ...".
std::string memory_parts_line(const MemoryParts& parts);

// A label and a text a line. `host` and `tensors`: bytes alive at the end by our count.
struct MemoryPartsRow {
  std::string label, text;
};
std::vector<MemoryPartsRow> memory_parts_rows(const MemoryParts& parts, int64_t host,
                                              int64_t tensors, int64_t host_error = 0);

// For the terminal: every traced process's, "" where none has counters.
std::string memory_parts_text(const Diagnosis& diagnosis, const TerminalStyle& style);

}  // namespace memscope::cli
