#include "import/snapshot_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "import/test_dumps.h"
#include "import/test_snapshots.h"

namespace memscope {
namespace {

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

struct Imported {
  explicit Imported(const std::string& bytes) {
    write_bytes(directory / "memory.pickle", bytes);
    auto read = import_snapshot(directory / "memory.pickle");
    if (read) {
      file = read.value();
    } else {
      error = read.error().message.substr((directory / "memory.pickle").string().size());
    }
  }
  TestDirectory directory;
  std::shared_ptr<const SnapshotFile> file;
  std::string error;
};

constexpr uint64_t kBase = 0x7f0000000000;

// One small segment: 1,000 and 512 bytes allocated, the rest free; the first came with the history.
SnapshotJson small_snapshot() {
  const SnapshotJson stack = {frame("/t/train.py", 7, "step"), frame("/t/train.py", 20, "main")};
  return {{"segments",
           {segment(kBase, "small",
                    {block(1024, 1000, "active_allocated", stack), block(512, 512),
                     block(2 * kMiB - 1536, 0, "inactive")})}},
          {"device_traces",
           {{trace_entry("alloc", kBase + 1024, 512, 1'000'001, stack),
             trace_entry("alloc", kBase, 1000, 1'000'002, stack)}}},
          {"allocator_settings",
           {{"PYTORCH_CUDA_ALLOC_CONF", ""},
            {"max_split_size", -1},
            {"garbage_collection_threshold", 0.5},
            {"expandable_segments", false},
            {"roundup_power2_divisions", {{"1", 0}, {"2", 4}}}}}};
}

void expect_small_snapshot(const SnapshotFile& file) {
  ASSERT_EQ(file.devices.size(), 1u);
  const PoolHistory& device = file.devices[0];
  EXPECT_EQ(device_name(device.device), "cuda:0");
  ASSERT_EQ(device.segments.size(), 1u);
  EXPECT_EQ(device.segments[0].size, 2 * kMiB);
  EXPECT_EQ(device.segments[0].allocated, 1536u);
  EXPECT_EQ(device.segments[0].requested, 1512u);
  ASSERT_EQ(device.blocks.size(), 2u);
  EXPECT_EQ(device.blocks[0].addr, kBase);
  EXPECT_EQ(device.blocks[0].requested, 1000u);
  EXPECT_EQ(device.blocks[1].addr, kBase + 1024);
  ASSERT_EQ(device.entries.size(), 2u);
  EXPECT_EQ(device.entries[1].action, PoolAction::kAlloc);
  EXPECT_EQ(device.entries[1].size, 1000u);
  EXPECT_EQ(device.entries[1].time, 1'000'002'000u);
  // The same frames: the same stack, though each list is its own.
  EXPECT_EQ(device.entries[0].stack, device.entries[1].stack);
  EXPECT_EQ(device.blocks[0].stack, device.entries[1].stack);
  const auto frames = file.stacks.frames(device.entries[0].stack);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(file.strings.text(file.stacks.frame(frames[0]).function), "step");
  EXPECT_EQ(file.stacks.frame(frames[1]).line, 20u);
}

// -- forms of the file ----------------------------------------------------------------------------

TEST(SnapshotFile, EveryWriterAndFormReadsAlike) {
  for (const PickleStyle style :
       {PickleStyle::kPython2, PickleStyle::kPython4, PickleStyle::kPython5, PickleStyle::kTorch}) {
    const std::string bytes = pickled(small_snapshot(), style);
    for (const std::string& form : {bytes, gzip(bytes), bytes + std::string(64, '\0')}) {
      const Imported read(form);
      ASSERT_EQ(read.error, "");
      expect_small_snapshot(*read.file);
      EXPECT_TRUE(read.file->damage().empty());
    }
  }
  for (const std::string& json : {small_snapshot().dump(), small_snapshot().dump(2)}) {
    const Imported read(json);
    ASSERT_EQ(read.error, "");
    EXPECT_TRUE(read.file->json);
    expect_small_snapshot(*read.file);
    const Imported packed(gzip(json));
    ASSERT_EQ(packed.error, "");
    expect_small_snapshot(*packed.file);
  }
}

TEST(SnapshotFile, SettingsAreTextByName) {
  const Imported read(pickled(small_snapshot()));
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.file->settings.at("garbage_collection_threshold"), "0.500000");
  EXPECT_EQ(read.file->settings.at("expandable_segments"), "False");
  EXPECT_EQ(read.file->settings.at("roundup_power2_divisions.2"), "4");
  EXPECT_EQ(read.file->rounding.divisions[1], 4u);  // of requests from 2 MiB on
  EXPECT_EQ(read.file->rounding.pad, 0u);
}

// Mosaic's files have the traces first; the order of keys means nothing.
TEST(SnapshotFile, TracesMayComeBeforeSegments) {
  const SnapshotJson snapshot = small_snapshot();
  const SnapshotJson turned{{"device_traces", snapshot["device_traces"]},
                            {"allocator_settings", snapshot["allocator_settings"]},
                            {"segments", snapshot["segments"]}};
  const Imported read(pickled(turned));
  ASSERT_EQ(read.error, "");
  expect_small_snapshot(*read.file);
}

// -- versions -------------------------------------------------------------------------------------

// 1.13: a bare list; blocks have no address, and their request and frames are in a history.
TEST(SnapshotFile, ABareListIsTheSegmentsOf1_13) {
  const SnapshotJson history = {
      {{"addr", kBase + 1024}, {"real_size", 400}, {"frames", {frame("/t/a.py", 3, "f")}}}};
  const SnapshotJson list = {
      {{"device", 0},
       {"address", kBase},
       {"total_size", 2 * kMiB},
       {"allocated_size", 512},
       {"active_size", 512},
       {"stream", 0},
       {"segment_type", "small"},
       {"blocks",
        {{{"size", 1024}, {"state", "inactive"}},
         {{"size", 512}, {"state", "active_allocated"}, {"history", history}},
         {{"size", 2 * kMiB - 1536}, {"state", "inactive"}}}}}};
  const Imported read(pickled(list, PickleStyle::kPython2));
  ASSERT_EQ(read.error, "");
  EXPECT_FALSE(read.file->has_traces);
  const PoolHistory& device = read.file->devices.at(0);
  ASSERT_EQ(device.blocks.size(), 1u);
  EXPECT_EQ(device.blocks[0].addr, kBase + 1024);
  EXPECT_EQ(device.blocks[0].size, 512u);
  EXPECT_EQ(device.blocks[0].requested, 400u);
  EXPECT_NE(device.blocks[0].stack, StackId());
  EXPECT_TRUE(read.file->damage().empty());
}

// 2.10 to 2.15: labels, pools' ids, annotations of a block, and whatever comes next.
TEST(SnapshotFile, WhatLaterVersionsAddIsTakenOrPassedOver) {
  SnapshotJson snapshot = small_snapshot();
  SnapshotJson& trace = snapshot["device_traces"][0];
  trace[0]["user_metadata"] = "kv cache";
  trace[0]["compile_context"] = "N/A";
  trace[1]["pool_id"] = {0, 3};
  trace.push_back(trace_entry("annotate", kBase, 1000, 1'000'003));
  trace.back()["user_metadata"] = "weights";
  trace.push_back(trace_entry("segment_shrink", kBase, 1, 1'000'004));
  trace.push_back({{"action", "oom"}, {"device_free", 77}, {"size", 4096}, {"stream", 0}});
  snapshot["internal_metadata"] = {{"anything", {1, 2, SnapshotJson::array()}}};
  snapshot["segments"][0]["registration_counter"] = 0;
  const Imported read(pickled(snapshot));
  ASSERT_EQ(read.error, "");
  const auto& entries = read.file->devices[0].entries;
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(read.file->strings.text(entries[0].text), "kv cache");
  EXPECT_EQ(read.file->tables.pools[entries[1].pool], (PoolTables::PoolId{0, 3}));
  EXPECT_EQ(entries[2].action, PoolAction::kAnnotate);
  EXPECT_EQ(read.file->strings.text(entries[2].text), "weights");
  EXPECT_EQ(entries[3].action, PoolAction::kOther);
  EXPECT_EQ(read.file->strings.text(entries[3].text), "segment_shrink");
  EXPECT_EQ(read.file->unknown, 1u);
  EXPECT_EQ(entries[4].action, PoolAction::kOom);
  EXPECT_EQ(entries[4].addr, 77u);
}

// torch_npu: neither times nor settings; requests are padded by 32 bytes before they are rounded,
// so that 512 bytes take 1,024.
TEST(SnapshotFile, ANpuIsToldByWhatItsFilesLackAndByItsPadding) {
  constexpr uint64_t kNpu = 0x12c041800000;
  const SnapshotJson snapshot{
      {"segments",
       {segment(kNpu, "small", {block(1024, 512), block(2 * kMiB - 1024, 0, "inactive")})}},
      {"device_traces", {{trace_entry("alloc", kNpu, 512)}, SnapshotJson::array()}}};
  const Imported read(pickled(snapshot));
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.file->devices.size(), 1u);
  EXPECT_EQ(device_name(read.file->devices[0].device), "npu:0");
  EXPECT_EQ(read.file->rounding.pad, 32u);
  EXPECT_FALSE(read.file->has_times);
}

// torch_npu's workspaces: told when the snapshot is taken, before the history, ended by a mark.
TEST(SnapshotFile, WorkspacesAreNoHistory) {
  constexpr uint64_t kNpu = 0x12c041800000, kWorkspace = 0x12c060000000;
  SnapshotJson snapshot{
      {"segments",
       {segment(kNpu, "small", {block(1024, 512), block(2 * kMiB - 1024, 0, "inactive")}),
        segment(kWorkspace, "large", SnapshotJson::array({block(4 * kMiB, 4 * kMiB)}))}},
      {"device_traces",
       {{trace_entry("segment_alloc", kWorkspace, 4 * kMiB),
         trace_entry("alloc", kWorkspace, 4 * kMiB), trace_entry("workspace_snapshot", 0, 4 * kMiB),
         trace_entry("alloc", kNpu, 512)}}}};
  const Imported read(pickled(snapshot));
  ASSERT_EQ(read.error, "");
  const PoolHistory& device = read.file->devices.at(0);
  ASSERT_EQ(device.entries.size(), 1u);
  EXPECT_EQ(device.entries[0].addr, kNpu);
  EXPECT_FALSE(device.segments[0].workspace);
  EXPECT_TRUE(device.segments[1].workspace);
  EXPECT_EQ(read.file->unknown, 0u);
}

// 2.13: pinned host memory, a device of its own.
TEST(SnapshotFile, PinnedHostMemoryIsTheCpus) {
  SnapshotJson snapshot = small_snapshot();
  snapshot["host_segments"] = {
      {{"address", 0x1000}, {"size", 4096}, {"allocated", true}, {"frames", SnapshotJson::array()}},
      {{"address", 0x9000},
       {"size", 8192},
       {"allocated", false},
       {"frames", SnapshotJson::array()}}};
  snapshot["host_traces"] = {{trace_entry("alloc", 0x1000, 4000, 1'000'005)}};
  const Imported read(pickled(snapshot));
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.file->devices.size(), 2u);
  const PoolHistory& host = read.file->devices[1];
  EXPECT_EQ(device_name(host.device), "cpu");
  EXPECT_EQ(host.segments.size(), 2u);
  ASSERT_EQ(host.blocks.size(), 1u);
  EXPECT_EQ(host.blocks[0].size, 4096u);
  EXPECT_EQ(host.entries.size(), 1u);
}

// -- what does not add up -------------------------------------------------------------------------

TEST(SnapshotFile, ASegmentThatIsNotTheSumOfItsBlocksIsSaid) {
  SnapshotJson snapshot = small_snapshot();
  snapshot["segments"][0]["total_size"] = 4 * kMiB;
  const Imported read(pickled(snapshot));
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.file->notes.size(), 1u);
  EXPECT_EQ(read.file->notes[0],
            "segment at 139637976727552: 4194304 bytes with 1536 allocated, but its blocks have "
            "2097152 and 1536");
}

TEST(SnapshotFile, AnEntryOfWhichTheEndKnowsNothingIsCounted) {
  SnapshotJson snapshot = small_snapshot();
  snapshot["device_traces"][0].push_back(trace_entry("alloc", kBase + kMiB, 512, 1'000'009));
  const Imported read(pickled(snapshot));
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.file->odd, 1u);
  ASSERT_EQ(read.file->damage().size(), 1u);
}

TEST(SnapshotFile, WhatIsNoSnapshotIsRefusedInALine) {
  constexpr const char* kAdvice =
      "; give a file that torch.cuda.memory._dump_snapshot() or its like wrote";
  EXPECT_EQ(Imported(pickled({{"weight", {1, 2, 3}}})).error,
            std::string(": it has neither segments nor device_traces: no snapshot of PyTorch's "
                        "memory") +
                kAdvice);
  EXPECT_EQ(Imported("{\"segments\": [").error,
            std::string(": at byte 14: the JSON is damaged or cut off here") + kAdvice);
  EXPECT_EQ(
      Imported(pickled({{"segments", {1, 2}}})).error,
      std::string(": at byte 22: an entry is no dict, or one that was there before") + kAdvice);
  std::string packed = gzip(pickled(small_snapshot()));
  packed.resize(packed.size() / 2);
  const std::string cut = Imported(packed).error;
  EXPECT_NE(cut.find("the gzip file is cut off"), std::string::npos) << cut;
}

// The inner list is the outer one's device 0, and device 1 too: whose history it is cannot be told.
TEST(SnapshotFile, CyclesAndSharedListsDoNoHarm) {
  Pickle cycle;
  cycle.dict().mark().text("device_traces").list().mark().list();
  const uint32_t inner = cycle.next_memo() - 1;
  cycle.mark().get(inner).appends().appends().set_items();
  EXPECT_NE(Imported(cycle.end()).error, "");  // a list is no entry

  Pickle frames;
  frames.dict().mark().text("device_traces").list().mark().list().mark().dict().mark();
  frames.text("action").text("alloc").text("addr").integer(4096).text("size").integer(512);
  frames.text("frames").list();
  frames.mark().get(frames.next_memo() - 1).appends();
  frames.set_items().appends().appends().set_items();
  const Imported read(frames.end());  // frames that hold themselves are none
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.file->devices.at(0).entries.at(0).stack, StackId());
}

}  // namespace
}  // namespace memscope
