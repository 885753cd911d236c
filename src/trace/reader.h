// The trace of one process as events in time order. Reads a finished run, a killed one (log and
// slab) and one still being written by the same code.
//
//   auto trace = TraceReader::open("memscopeDumpResults/run-1/host-x-4711");
//   if (!trace) return trace.error();
//   for (Event event; trace.value().next(event);) ...
//
// Guarantees
//  * Nothing is delivered twice and nothing that was committed is lost, whenever the process died.
//  * Never crashes and never allocates out of proportion on any bytes: what cannot be used is left
//    out, and damage() has a line with file, offset and reason. open() fails only where nothing at
//    all can be read.
//  * Memory: the used part of the slab (64 MiB at most), one chunk for each lane that has begun,
//  the
//    tables. Files are read with pread, never mapped, never changed.
//  * Events come in the order of their ticks, each lane's own order kept; at equal ticks frees come
//    before others and allocs last. Order per address across threads is replay's business.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "core/stacks.h"
#include "trace/lane_tables.h"
#include "trace/trace_info.h"

namespace memscope {

class TraceReader {
 public:
  // A process's directory (trace.msm and hot.slab in it, one of them may be missing) or a trace.msm
  // (with the hot.slab beside it).
  static Result<TraceReader> open(const std::filesystem::path& path);

  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  // The next event; false at the end. `event.words` is valid until the next call.
  bool next(Event& event);
  // Up to out.size() events; 0 at the end only. Fewer than fit is no sign of the end. All their
  // `words` are valid until the next call. May be mixed with next().
  size_t next_batch(std::span<Event> out);
  // Starts again from the first event.
  void rewind();

  // Every event of `kinds` (bits by Kind, kind_bit()) in time order, reading only the chunks that
  // have some: fast for step, mark or counter records. `Event::stack` is set only where `kinds` has
  // kOom, kDrop, kFold or kFoldedBlock. Independent of where next() is. The callback returns false
  // to stop.
  void scan(uint64_t kinds, const std::function<bool(const Event&)>& callback);

  const TraceInfo& info() const;  // complete from open() on
  const StringTable& strings() const;
  const StackTable& stacks() const;
  const std::vector<ThreadEntry>& threads() const;  // by ThreadId
  uint64_t to_ns(uint64_t ticks) const;             // as the events' times are made

  // Grows while events are read.
  const std::vector<std::string>& damage() const;
  uint64_t lost_bytes() const;
  uint64_t hole_bytes() const;  // of them, with events after them: frees may be among what is lost
  // Events delivered so far by next() and next_batch(), by record kind.
  const std::array<uint64_t, 128>& counts() const;
  // Thread lanes, pieces of slots to read, and how many of them the slab had to give.
  struct Extent {
    size_t lanes = 0, pieces = 0, slab_pieces = 0, segments = 0;
    uint64_t log_bytes = 0;
  };
  Extent extent() const;

 private:
  struct Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace memscope
