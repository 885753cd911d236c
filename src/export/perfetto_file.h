// A file for Perfetto's UI (and chrome://tracing): trace events in JSON, compressed by gzip.
//
//   {"displayTimeUnit":"ms","traceEvents":[
//   {"ph":"M","pid":7,"name":"process_name","args":{"name":"train.py"}},
//   ...
//   ]}
//
// The format: "Trace Event Format" (Chromium), sections "Metadata", "Counter", "Complete",
// "Instant" and "Async" events. Times are in microseconds, with three digits behind the point.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/result.h"

namespace memscope {

class PerfettoFile {
 public:
  // Writes to a descriptor of its own of the file open at `fd`.
  static Result<PerfettoFile> begin(int fd, std::string name);
  PerfettoFile(PerfettoFile&& other) noexcept;
  PerfettoFile& operator=(PerfettoFile&&) = delete;
  PerfettoFile(const PerfettoFile&) = delete;
  PerfettoFile& operator=(const PerfettoFile&) = delete;
  ~PerfettoFile();

  // One event: `fields` are {"ph", "name", "args", ...}, the times are added to them. An error of
  // the disk is told by finish().
  void event(int64_t pid, nlohmann::ordered_json fields);
  void at(int64_t pid, uint64_t ns, nlohmann::ordered_json fields);
  void span(int64_t pid, uint64_t from_ns, uint64_t to_ns, nlohmann::ordered_json fields);
  uint64_t events() const { return events_; }

  Result<void> finish();

 private:
  PerfettoFile(gzFile file, std::string name) : file_(file), name_(std::move(name)) {}
  void write(std::string_view text);

  gzFile file_ = nullptr;
  std::string name_;
  uint64_t events_ = 0;
  int error_ = 0;
};

}  // namespace memscope
