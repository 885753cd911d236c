// What pass_around did against what its trace says.
//
//   check_pairs OUTPUT     prints passes, wrong pairs, events dropped, ambiguous; exit 1 if wrong
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <unordered_map>
#include <vector>

#include "replay/replay.h"
#include "replay/trace_events.h"
#include "trace/reader.h"
#include "trace/run_layout.h"

namespace {

using memscope::AddressOrder, memscope::Event, memscope::EventKind, memscope::replay;
using memscope::ReplayOptions, memscope::ReplayResult, memscope::TraceEvents, memscope::TraceReader;

std::vector<uint64_t> read_serials(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint64_t> serials(std::filesystem::file_size(path) / sizeof(uint64_t));
  file.read(reinterpret_cast<char*>(serials.data()),
            static_cast<std::streamsize>(serials.size() * sizeof(uint64_t)));
  return serials;
}

std::filesystem::path trace_in(const std::filesystem::path& output) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(output)) {
    if (entry.path().filename() == "trace.msm") return entry.path();
  }
  return output;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path output = argv[1];
  auto opened = TraceReader::open(trace_in(output));
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 2;
  }
  TraceReader& trace = opened.value();

  std::map<uint32_t, std::vector<uint64_t>> freed;  // by thread index
  std::map<uint32_t, size_t> next_free;
  // Pairs as replay makes them, with the same order restored (replay/order.h).
  AddressOrder order(ReplayOptions{}.skew_ns);
  std::unordered_map<uint64_t, uint64_t> live, displaced_serial;  // by address
  uint64_t passes = 0, wrong = 0, unknown = 0, displaced = 0;
  for (Event event; trace.next(event);) {
    if (event.kind == EventKind::kAlloc) {
      const auto [block, fresh] = live.emplace(event.addr, event.size);
      if (!fresh) {
        ++displaced;
        order.displaced(event.addr, event.thread, event.time);
        displaced_serial[event.addr] = block->second;
        block->second = event.size;
      }
      ++passes;
    } else if (event.kind == EventKind::kFree) {
      auto& expected = freed[event.thread.value];
      if (expected.empty()) {
        const uint64_t tid = trace.threads()[event.thread.value].tid;
        expected = read_serials(output / ("freed-" + std::to_string(tid) + ".bin"));
      }
      const size_t at = next_free[event.thread.value]++;
      const uint64_t truth = at < expected.size() ? expected[at] : 0;
      if (order.takes(event.addr, event.thread, event.time)) {
        if (displaced_serial[event.addr] != truth) ++wrong;
      } else if (const auto block = live.find(event.addr); block == live.end()) {
        ++unknown;
      } else {
        if (block->second != truth) ++wrong;
        live.erase(block);
      }
    }
  }
  trace.rewind();
  const uint64_t dropped = trace.info().dropped_events();
  TraceEvents source(trace);
  const ReplayResult replayed = replay(source, {});
  std::printf("passes %" PRIu64 "  wrong pairs %" PRIu64 "  unknown frees %" PRIu64
              "  out of order %" PRIu64 "  dropped %" PRIu64 "  ambiguous %" PRIu64 "\n",
              passes, wrong, unknown, displaced, dropped, replayed.ambiguous);
  return wrong == 0 && unknown == 0 && passes != 0 ? 0 : 1;
}
