// What start_stop had alive at its end against what its trace says is alive. Each of its addresses
// is one thread's own, so that nothing about their order is in doubt: `ambiguous` must be 0.
//
//   check_live OUTPUT     exit 1 where they differ
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "replay/replay.h"
#include "replay/trace_events.h"
#include "trace/reader.h"

int main(int argc, char** argv) {
  using memscope::LiveBlock, memscope::ReplayResult, memscope::TraceEvents, memscope::TraceReader;
  if (argc != 2) return 2;
  std::map<uint64_t, uint64_t> truth, replayed_live;
  std::ifstream file(std::string(argv[1]) + "/live.txt");
  for (uint64_t addr = 0, size = 0; file >> addr >> size;) truth[addr] = size;
  std::filesystem::path log;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.path().filename() == "trace.msm") log = entry.path();
  }
  auto opened = TraceReader::open(log);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 2;
  }
  TraceEvents source(opened.value());
  const ReplayResult result = replay(source, {});
  for (const LiveBlock& block : result.live) replayed_live[block.addr] = block.size;
  size_t missing = 0, ghosts = 0, other_size = 0;
  for (const auto& [addr, size] : truth) {
    const auto found = replayed_live.find(addr);
    if (found == replayed_live.end()) {
      ++missing;
    } else if (found->second != size) {
      ++other_size;
    }
  }
  for (const auto& [addr, size] : replayed_live) ghosts += truth.contains(addr) ? 0 : 1;
  std::printf(
      "alive %zu  missing %zu  freed but looks live %zu  other size %zu  ambiguous %llu  "
      "dropped %llu\n",
      truth.size(), missing, ghosts, other_size, static_cast<unsigned long long>(result.ambiguous),
      static_cast<unsigned long long>(opened.value().info().dropped_events()));
  const bool right = missing + ghosts + other_size == 0 && result.ambiguous == 0;
  return right && !truth.empty() ? 0 : 1;
}
