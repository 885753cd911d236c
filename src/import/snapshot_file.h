// A snapshot of PyTorch's caching allocators, read once: what torch.cuda.memory._dump_snapshot(),
// its like of torch_npu and ROCm, and torch's C++ writer leave, of every version (1.13 to 2.15).
//
//   {'segments': [{device, address, total_size, ..., 'blocks': [{size, state, frames}, ...]}, ...],
//    'device_traces': [[{action, addr, size, stream, frames, ...}, ...], ...],   one a device
//    'allocator_settings': {...}, 'external_annotations': [...],
//    'host_segments': [...], 'host_traces': [...]}
//
// A bare list is the segments alone (1.13). Keys and actions that are not known are passed over and
// counted; every key may be missing. A pickle (protocols 2 to 5) or JSON, plain or in gzip.
//
// Promises
//  * Nothing in the file is executed (pickle_reader.h); any bytes end in a file or in one clear
//  line.
//  * The sums of each segment are checked against its blocks: damage() says where they differ.
//  * Memory: about 48 B an entry, kMaxEntries at most, and the tables of stacks, bounded as
//    call_stacks.h's are; values.h's while the file is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/stacks.h"
#include "replay/pool_history.h"
#include "replay/pool_state.h"
#include "trace/lane_tables.h"

namespace memscope {

struct SnapshotAnnotation {
  uint64_t time = 0;  // ns since the epoch; 0 where there is no clock
  StringId name;
  bool begins = false;
  uint8_t device = 0;
};

struct SnapshotFile {
  // Pinned host memory, where it was recorded, is one of the devices: the cpu.
  static constexpr size_t kMaxEntries = size_t{24} << 20;
  static constexpr size_t kMaxDevices = 126;

  std::filesystem::path path;
  StringTable strings;
  StackTable stacks;
  PoolTables tables;
  std::vector<PoolHistory> devices;  // those that have anything, ascending
  std::vector<PoolStart> starts;     // of each of them, where its history begins
  PoolRounding rounding;
  std::vector<SnapshotAnnotation> annotations;
  std::map<std::string, std::string> settings;  // the allocator's, as text
  std::vector<ThreadEntry> threads;             // of none is anything known

  bool has_traces = false;       // some history was recorded
  bool has_times = false;        // else entries are known by their order only
  uint64_t first = 0, last = 0;  // ns since the epoch, of all that happened
  bool json = false, packed = false;
  uint64_t bytes = 0;              // of the file, unpacked
  uint64_t entries = 0;            // of all devices
  uint64_t unknown = 0;            // entries of actions that are not known
  uint64_t no_stack = 0;           // entries whose stack found no room
  uint64_t older = 0;              // blocks that were there before the history begins
  uint64_t odd = 0;                // entries that do not fit what the end is like
  std::vector<std::string> notes;  // what does not add up, a line each

  // A line each: notes, and what of the history cannot be true.
  std::vector<std::string> damage() const;
};

Result<std::shared_ptr<const SnapshotFile>> import_snapshot(const std::filesystem::path& path);

}  // namespace memscope
