// libFuzzer: any bytes as a snapshot, from the opcodes to the events. Built with -DMEMSCOPE_FUZZ=ON
// and clang; makes its seeds itself, as random bytes are no pickle:
//
//   MEMSCOPE_FUZZ_SEEDS=corpus ./pickle_reader_fuzzer -runs=0
//   ./pickle_reader_fuzzer -max_total_time=20 -max_len=20000 corpus

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "import/fuzz_file.h"
#include "import/snapshot_events.h"
#include "import/test_snapshots.h"

namespace memscope {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

const std::filesystem::path& file_path() {
  static const std::filesystem::path path = fuzz_file("fuzz.pickle");
  return path;
}

// Every action, an expandable segment, annotations, settings: what there is to go wrong.
SnapshotJson seed() {
  constexpr uint64_t kBase = 0x7f0000000000;
  const SnapshotJson stack = {frame("/t/train.py", 7, "step"), frame("??", 0, "torch::f")};
  SnapshotJson snapshot{
      {"segments",
       {segment(kBase, "small",
                {block(1024, 1000, "active_allocated", stack),
                 block(512, 512, "active_pending_free"), block(2 * kMiB - 1536, 0, "inactive")}),
        segment(
            kBase + 64 * kMiB, "large",
            {block(3 * kMiB, 3 * kMiB, "active_allocated", stack), block(17 * kMiB, 0, "inactive")},
            true)}},
      {"device_traces",
       {{trace_entry("segment_alloc", kBase, 2 * kMiB, 1000, stack),
         trace_entry("segment_map", kBase + 64 * kMiB, 20 * kMiB, 1001),
         trace_entry("segment_unmap", kBase + 84 * kMiB, 20 * kMiB, 1002),
         trace_entry("segment_free", kBase + 8 * kMiB, 20 * kMiB, 1003),
         trace_entry("alloc", kBase, 1000, 1004, stack),
         trace_entry("free_requested", kBase + 9000, 77, 1005),
         trace_entry("free_completed", kBase + 9000, 77, 1006),
         trace_entry("free_requested", kBase + 1024, 512, 1007),
         trace_entry("annotate", kBase, 1000, 1008), trace_entry("snapshot", 0, 1, 1009)}}},
      {"allocator_settings",
       {{"PYTORCH_CUDA_ALLOC_CONF", ""}, {"roundup_power2_divisions", {{"1", 4}, {"2", 0}}}}},
      {"external_annotations",
       {{{"stage", "START"}, {"name", "Optimizer.step#A"}, {"device", 0}, {"time_us", 1001}},
        {{"stage", "END"}, {"name", "Optimizer.step#A"}, {"device", 0}, {"time_us", 1006}}}}};
  SnapshotJson& trace = snapshot["device_traces"][0];
  trace.push_back({{"action", "oom"}, {"device_free", 77}, {"size", 4096}, {"stream", 5}});
  trace[4]["user_metadata"] = "label";
  trace[4]["pool_id"] = {0, 1};
  return snapshot;
}

void write_seeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  write_bytes(directory / "python2", pickled(seed(), PickleStyle::kPython2));
  write_bytes(directory / "python4", pickled(seed(), PickleStyle::kPython4));
  write_bytes(directory / "torch", pickled(seed(), PickleStyle::kTorch));
  write_bytes(directory / "json", seed().dump());
  write_bytes(directory / "list", pickled(seed()["segments"]));
  write_bytes(directory / "workspace",
              pickled({{"segments", seed()["segments"]},
                       {"device_traces",
                        {{trace_entry("segment_alloc", 0x7f0000000000, 512),
                          trace_entry("workspace_snapshot", 0, 512),
                          trace_entry("alloc", 0x7f0000000000, 100)}}}}));
}

}  // namespace
}  // namespace memscope

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* directory = std::getenv("MEMSCOPE_FUZZ_SEEDS")) {
    memscope::write_seeds(directory);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace memscope;
  write_bytes(file_path(), std::string(reinterpret_cast<const char*>(data), size));
  const auto file = import_snapshot(file_path());
  if (!file) {
    // One line that says where.
    check(file.error().message.find(file_path().string()) != std::string::npos);
    check(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  SnapshotEvents events(file.value());
  std::array<Event, 64> batch;
  uint64_t time = 0, seen = 0;
  while (const size_t count = events.next_batch(batch)) {
    for (size_t i = 0; i < count; ++i) {
      check(batch[i].time >= time);
      time = batch[i].time;
      check(batch[i].stack.value < events.stacks().size());
    }
    seen += count;
  }
  uint64_t again = 0;
  events.rewind();
  while (const size_t count = events.next_batch(batch)) again += count;
  check(seen == again);
  events.scan(~uint64_t{0}, [&](const Event& event) { check(!event.words.empty()); });
  return 0;
}
