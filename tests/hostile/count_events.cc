// What a trace holds, as numbers for a test:  count_events TRACE  prints
// "allocs N frees N dropped N steps N damage N".
#include <cinttypes>
#include <cstdio>

#include "trace/reader.h"

int main(int argc, char** argv) {
  using memscope::Event, memscope::Kind, memscope::TraceReader;
  if (argc != 2) return 2;
  auto opened = TraceReader::open(argv[1]);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 2;
  }
  TraceReader& trace = opened.value();
  uint64_t steps = 0;
  for (Event event; trace.next(event);) {
    if (event.record_kind == static_cast<uint8_t>(Kind::kStep)) ++steps;
  }
  const auto count = [&](Kind kind) { return trace.counts()[static_cast<size_t>(kind)]; };
  std::printf(
      "allocs %" PRIu64 " frees %" PRIu64 " dropped %" PRIu64 " steps %" PRIu64 " damage %zu\n",
      count(Kind::kAlloc) + count(Kind::kPoolAlloc), count(Kind::kFree) + count(Kind::kPoolFree),
      trace.info().dropped_events(), steps, trace.damage().size());
  for (const std::string& line : trace.damage()) std::fprintf(stderr, "%s\n", line.c_str());
  return 0;
}
