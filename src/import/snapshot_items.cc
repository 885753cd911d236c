#include "import/snapshot_items.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>

namespace memscope {
namespace {

enum Role : uint8_t {
  kSegments = kFirstOwnRole,
  kTraces,
  kTrace,
  kAnnotations,
  kHostSegments,
  kHostTraces,
  kHostTrace,
};

constexpr uint64_t kUs = 1000;  // ns

uint64_t count_of(Value value) {
  return value.kind == ValueKind::kNumber && !value.negative ? value.bits : 0;
}

struct NamedAction {
  std::string_view name;
  PoolAction action;
};
constexpr std::array<NamedAction, 10> kActions = {{{"alloc", PoolAction::kAlloc},
                                                   {"free_requested", PoolAction::kFreeRequested},
                                                   {"free_completed", PoolAction::kFreeCompleted},
                                                   {"segment_alloc", PoolAction::kSegmentAlloc},
                                                   {"segment_free", PoolAction::kSegmentFree},
                                                   {"segment_map", PoolAction::kSegmentMap},
                                                   {"segment_unmap", PoolAction::kSegmentUnmap},
                                                   {"oom", PoolAction::kOom},
                                                   {"snapshot", PoolAction::kSnapshot},
                                                   {"annotate", PoolAction::kAnnotate}}};
constexpr std::string_view kWorkspaceEnd = "workspace_snapshot";

}  // namespace

enum class SnapshotItems::Key : uint8_t {
  kUnread,  // it was not looked up yet
  kOther,
  kAction,
  kAddr,
  kAddress,
  kSize,
  kStream,
  kFrames,
  kTime,
  kUserMetadata,
  kPool,
  kDeviceFree,
  kDevice,
  kTotal,
  kAllocated,
  kActive,
  kRequested,
  kSegmentType,
  kSegmentPool,
  kExpandable,
  kBlocks,
  kState,
  kHistory,
  kRealSize,
  kCppFrames,
  kStage,
  kName,
  kHostAllocated,
  kOwnerPool,
};

SnapshotItems::Key SnapshotItems::key_of(const Values& values, Value text) {
  struct Named {
    std::string_view name;
    Key key;
  };
  constexpr std::array<Named, 27> kKeys = {{{"action", Key::kAction},
                                            {"addr", Key::kAddr},
                                            {"address", Key::kAddress},
                                            {"size", Key::kSize},
                                            {"stream", Key::kStream},
                                            {"frames", Key::kFrames},
                                            {"time_us", Key::kTime},
                                            {"user_metadata", Key::kUserMetadata},
                                            {"pool_id", Key::kPool},
                                            {"device_free", Key::kDeviceFree},
                                            {"device", Key::kDevice},
                                            {"total_size", Key::kTotal},
                                            {"allocated_size", Key::kAllocated},
                                            {"active_size", Key::kActive},
                                            {"requested_size", Key::kRequested},
                                            {"segment_type", Key::kSegmentType},
                                            {"segment_pool_id", Key::kSegmentPool},
                                            {"is_expandable", Key::kExpandable},
                                            {"blocks", Key::kBlocks},
                                            {"state", Key::kState},
                                            {"history", Key::kHistory},
                                            {"real_size", Key::kRealSize},
                                            {"cpp_frames", Key::kCppFrames},
                                            {"stage", Key::kStage},
                                            {"name", Key::kName},
                                            {"allocated", Key::kHostAllocated},
                                            {"owner_private_pool_id", Key::kOwnerPool}}};
  if (text.bits >= keys_.size()) keys_.resize(text.bits + 1, static_cast<uint8_t>(Key::kUnread));
  uint8_t& known = keys_[text.bits];
  if (known == static_cast<uint8_t>(Key::kUnread)) {
    const std::string_view name = values.text(text);
    const auto* const found = std::find_if(kKeys.begin(), kKeys.end(),
                                           [&](const Named& key) { return key.name == name; });
    known = static_cast<uint8_t>(found == kKeys.end() ? Key::kOther : found->key);
  }
  return static_cast<Key>(known);
}

// -- where the items are --------------------------------------------------------------------------

uint8_t SnapshotItems::child_role(uint8_t parent, std::string_view key, ValueKind kind) {
  if (kind != ValueKind::kList) return kPlainRole;
  if (parent == kTraces) return kTrace;
  if (parent == kHostTraces) return kHostTrace;
  if (parent != kRootRole) return kPlainRole;
  if (key == "segments") return kSegments;
  if (key == "device_traces") return kTraces;
  if (key == "external_annotations") return kAnnotations;
  if (key == "host_segments") return kHostSegments;
  if (key == "host_traces") return kHostTraces;
  return kPlainRole;
}

bool SnapshotItems::streams(uint8_t role, ValueKind kind) const {
  if (kind != ValueKind::kList) return false;
  return role == kRootRole || role == kSegments || role == kTrace || role == kAnnotations ||
         role == kHostSegments || role == kHostTrace;
}

bool SnapshotItems::holds_lists(uint8_t role) const {
  return role == kTraces || role == kHostTraces;
}

bool SnapshotItems::item(Values& values, uint8_t role, uint64_t list, Value item) {
  if (item.kind != ValueKind::kDict || !values.alive(item)) {
    return values.fail("an entry is no dict, or one that was there before");
  }
  switch (role) {
    case kTrace:
    case kHostTrace:
      return entry(values, list, item);
    case kAnnotations:
      return annotation(values, item);
    case kHostSegments:
      return host_segment(values, item);
    default:
      return segment(values, item);
  }
}

void SnapshotItems::read_pairs(Values& values, Value dict) {
  pairs_.clear();
  const auto items = values.items(dict);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    pairs_.push_back({key_of(values, items[i]), items[i + 1]});
  }
}

// -- entries --------------------------------------------------------------------------------------

bool SnapshotItems::entry(Values& values, uint64_t list, Value item) {
  if (file_.entries == SnapshotFile::kMaxEntries) {
    return values.fail("it has more than " + std::to_string(SnapshotFile::kMaxEntries) +
                       " entries; record it with a smaller max_entries");
  }
  ++file_.entries;
  if (traces_.empty() || traces_.back().list != list) {
    const auto known = std::find_if(traces_.begin(), traces_.end(),
                                    [&](const Trace& trace) { return trace.list == list; });
    if (known != traces_.end()) return values.fail("two devices' histories are mixed");
    traces_.push_back({.list = list, .entries = {}});
  }
  PoolEntry entry;
  read_pairs(values, item);
  for (const Pair& pair : pairs_) {
    switch (pair.key) {
      case Key::kAction: {
        const std::string_view name = values.text(pair.value);
        const auto* const known =
            std::find_if(kActions.begin(), kActions.end(),
                         [&](const NamedAction& action) { return action.name == name; });
        if (known != kActions.end()) {
          entry.action = known->action;
        } else {
          entry.text = string_of(values, pair.value);
        }
        break;
      }
      case Key::kAddr:
      case Key::kDeviceFree:
        entry.addr = count_of(pair.value);
        break;
      case Key::kSize:
        entry.size = count_of(pair.value);
        break;
      case Key::kStream:
        entry.stream = stream_of(pair.value.kind == ValueKind::kNumber ? pair.value.bits : 0);
        break;
      case Key::kTime:
        entry.time = count_of(pair.value) * kUs;
        break;
      case Key::kFrames:
        entry.stack = frames_.stack_of(values, pair.value);
        break;
      case Key::kPool:
        entry.pool = pool_of(values, pair.value);
        break;
      case Key::kUserMetadata:
        if (!values.text(pair.value).empty()) entry.text = string_of(values, pair.value);
        break;
      default:
        break;
    }
  }
  values.release(item);
  std::deque<PoolEntry>& entries = traces_.back().entries;
  if (entry.action == PoolAction::kOther) {
    if (file_.strings.text(entry.text) == kWorkspaceEnd) {
      // What came before it is the workspace allocator's, told when the snapshot was taken.
      for (PoolEntry& before : entries) before.workspace = true;
      entry.workspace = true;
    } else {
      ++file_.unknown;
    }
  }
  file_.has_times = file_.has_times || entry.time != 0;
  entries.push_back(entry);
  return true;
}

bool SnapshotItems::annotation(Values& values, Value item) {
  constexpr size_t kMaxAnnotations = size_t{4} << 20;
  SnapshotAnnotation annotation;
  read_pairs(values, item);
  for (const Pair& pair : pairs_) {
    if (pair.key == Key::kStage) {
      annotation.begins = values.text(pair.value) == "START";
    } else if (pair.key == Key::kName) {
      annotation.name = string_of(values, pair.value);
    } else if (pair.key == Key::kDevice) {
      annotation.device =
          static_cast<uint8_t>(std::min<uint64_t>(count_of(pair.value), SnapshotFile::kMaxDevices));
    } else if (pair.key == Key::kTime) {
      annotation.time = count_of(pair.value) * kUs;
    }
  }
  values.release(item);
  if (file_.annotations.size() < kMaxAnnotations) file_.annotations.push_back(annotation);
  return true;
}

// -- segments -------------------------------------------------------------------------------------

bool SnapshotItems::segment(Values& values, Value item) {
  PoolSegment segment;
  uint64_t device = 0;
  Value blocks_value;
  read_pairs(values, item);
  for (const Pair& pair : pairs_) {
    switch (pair.key) {
      case Key::kDevice:
        device = count_of(pair.value);
        break;
      case Key::kAddress:
        segment.addr = count_of(pair.value);
        break;
      case Key::kTotal:
        segment.size = count_of(pair.value);
        break;
      case Key::kAllocated:
        segment.allocated = count_of(pair.value);
        break;
      case Key::kActive:
        segment.active = count_of(pair.value);
        break;
      case Key::kRequested:
        segment.requested = count_of(pair.value);
        break;
      case Key::kStream:
        segment.stream = stream_of(pair.value.kind == ValueKind::kNumber ? pair.value.bits : 0);
        break;
      case Key::kSegmentType:
        segment.large = values.text(pair.value) == "large";
        break;
      case Key::kSegmentPool:
        segment.pool = pool_of(values, pair.value);
        break;
      case Key::kExpandable:
        segment.expandable = pair.value.kind == ValueKind::kBool && pair.value.bits != 0;
        break;
      case Key::kFrames:
        segment.stack = frames_.stack_of(values, pair.value);
        break;
      case Key::kBlocks:
        blocks_value = pair.value;
        break;
      default:
        break;
    }
  }
  values.release(item);
  if (device > SnapshotFile::kMaxDevices) {
    return values.fail("a segment is of device " + std::to_string(device));
  }
  PoolHistory& history = device_of(device);
  blocks(values, blocks_value, segment, history);
  history.segments.push_back(segment);
  return true;
}

void SnapshotItems::blocks(Values& values, Value list, PoolSegment& segment, PoolHistory& device) {
  uint64_t at = segment.addr, total = 0, allocated = 0, active = 0, requested = 0;
  // By place: the list's storage may move while blocks are read.
  const size_t count = values.items(list).size();
  for (size_t i = 0; i < count; ++i) {
    const Value dict = values.items(list)[i];
    block(values, dict, segment, at);
    values.release(dict);
    total += block_.size;
    if (!block_used_) continue;
    active += block_.size;
    requested += block_.requested;
    if (block_.state == PoolBlockState::kAllocated) allocated += block_.size;
    device.blocks.push_back(block_);
  }
  values.release(list);
  // 1.13 has no requested_size, and its blocks are the only sums there are.
  if (segment.active == 0) segment.active = active;
  if (segment.requested == 0) segment.requested = requested;
  const bool adds_up =
      total == segment.size && allocated == segment.allocated && active == segment.active;
  if (!adds_up && odd_segments_++ == 0) {
    file_.notes.push_back("segment at " + std::to_string(segment.addr) + ": " +
                          std::to_string(segment.size) + " bytes with " +
                          std::to_string(segment.allocated) + " allocated, but its blocks have " +
                          std::to_string(total) + " and " + std::to_string(allocated));
  }
}

// One block of a segment into block_; `at` is where it lies if it does not say.
void SnapshotItems::block(Values& values, Value dict, const PoolSegment& segment, uint64_t& at) {
  block_ = {};
  block_.addr = at;
  block_.stream = segment.stream;
  block_.pool = segment.pool;
  block_used_ = false;
  Value history;
  bool has_requested = false;
  read_pairs(values, dict);
  for (const Pair& pair : pairs_) {
    switch (pair.key) {
      case Key::kAddress:
        block_.addr = count_of(pair.value);
        break;
      case Key::kSize:
        block_.size = count_of(pair.value);
        break;
      case Key::kRequested:
        block_.requested = count_of(pair.value);
        has_requested = true;
        break;
      case Key::kState: {
        const std::string_view state = values.text(pair.value);
        block_used_ = state.starts_with("active");
        if (block_used_ && state != "active_allocated") {
          block_.state = PoolBlockState::kPendingFree;
        }
        break;
      }
      case Key::kFrames:
        block_.stack = frames_.stack_of(values, pair.value);
        break;
      case Key::kHistory:
        history = pair.value;
        break;
      default:
        break;
    }
  }
  at = block_.addr + block_.size;
  // Up to 2.0: what was in the block, the last one first.
  if (const auto items = values.items(history); !items.empty()) {
    const Value latest = items.front();
    read_pairs(values, latest);
    for (const Pair& pair : pairs_) {
      if (pair.key == Key::kRealSize && !has_requested) {
        block_.requested = count_of(pair.value);
        has_requested = true;
      } else if (pair.key == Key::kFrames || (pair.key == Key::kCppFrames && !block_.stack)) {
        block_.stack = frames_.stack_of(values, pair.value);
      }
    }
  }
  if (!has_requested) block_.requested = block_.size;
}

// Pinned host memory: one block each.
bool SnapshotItems::host_segment(Values& values, Value item) {
  PoolSegment segment;
  bool allocated = false;
  read_pairs(values, item);
  for (const Pair& pair : pairs_) {
    if (pair.key == Key::kAddress) {
      segment.addr = count_of(pair.value);
    } else if (pair.key == Key::kSize || pair.key == Key::kTotal) {
      segment.size = count_of(pair.value);
    } else if (pair.key == Key::kHostAllocated) {
      allocated = pair.value.bits != 0 && pair.value.kind != ValueKind::kNone;
    } else if (pair.key == Key::kOwnerPool || pair.key == Key::kSegmentPool) {
      segment.pool = pool_of(values, pair.value);
    } else if (pair.key == Key::kFrames) {
      segment.stack = frames_.stack_of(values, pair.value);
    }
  }
  values.release(item);
  if (allocated) {
    segment.allocated = segment.active = segment.requested = segment.size;
    host_.blocks.push_back({.addr = segment.addr,
                            .size = segment.size,
                            .requested = segment.size,
                            .pool = segment.pool,
                            .stack = segment.stack});
  }
  host_.segments.push_back(segment);
  return true;
}

// -- tables ---------------------------------------------------------------------------------------

uint16_t SnapshotItems::stream_of(uint64_t stream) {
  const auto [at, fresh] = stream_index_.try_emplace(stream, uint16_t{0});
  if (!fresh) return at->second;
  std::vector<uint64_t>& streams = file_.tables.streams;
  if (streams.size() > std::numeric_limits<uint16_t>::max()) {
    if (file_.notes.empty() || file_.notes.back() != "more streams than can be told apart") {
      file_.notes.emplace_back("more streams than can be told apart");
    }
    stream_index_.erase(stream);
    return 0;
  }
  at.value() = static_cast<uint16_t>(streams.size());
  streams.push_back(stream);
  return at->second;
}

uint16_t SnapshotItems::pool_of(const Values& values, Value value) {
  PoolTables::PoolId id;
  if (value.kind == ValueKind::kPair) {
    id = {static_cast<uint32_t>(value.bits >> 32), static_cast<uint32_t>(value.bits)};
  } else if (const auto items = values.items(value); items.size() == 2) {
    // JSON has lists.
    id = {static_cast<uint32_t>(count_of(items[0])), static_cast<uint32_t>(count_of(items[1]))};
  }
  constexpr size_t kMaxPools = 4096;
  std::vector<PoolTables::PoolId>& pools = file_.tables.pools;
  const auto known = std::find(pools.begin(), pools.end(), id);
  if (known != pools.end()) return static_cast<uint16_t>(known - pools.begin());
  if (pools.size() == kMaxPools) return 0;
  pools.push_back(id);
  return static_cast<uint16_t>(pools.size() - 1);
}

StringId SnapshotItems::string_of(const Values& values, Value text) {
  if (text.kind != ValueKind::kText) return {};
  if (text.bits >= strings_.size()) strings_.resize(text.bits + 1);
  StringId& known = strings_[text.bits];
  if (!known) known = file_.strings.intern(values.text(text));
  return known;
}

PoolHistory& SnapshotItems::device_of(uint64_t index) {
  for (auto& [number, history] : devices_) {
    if (number == index) return history;
  }
  devices_.emplace_back(index, PoolHistory{});
  devices_.back().second.device.index = static_cast<uint8_t>(index);
  return devices_.back().second;
}

// -- the end --------------------------------------------------------------------------------------

void SnapshotItems::setting(const Values& values, const std::string& name, Value value, int depth) {
  constexpr size_t kMaxSettings = 1000;
  if (file_.settings.size() == kMaxSettings) return;
  std::string text;
  switch (value.kind) {
    case ValueKind::kBool:
      text = value.bits != 0 ? "True" : "False";
      break;
    case ValueKind::kNumber:
      text = value.negative ? std::to_string(static_cast<int64_t>(value.bits))
                            : std::to_string(value.bits);
      break;
    case ValueKind::kFloat:
      text = std::to_string(std::bit_cast<double>(value.bits));
      break;
    case ValueKind::kText:
      text = values.text(value);
      break;
    case ValueKind::kDict: {
      const auto items = values.items(value);
      for (size_t i = 0; depth < 2 && i + 1 < items.size(); i += 2) {
        setting(values, name + "." + std::string(values.text(items[i])), items[i + 1], depth + 1);
      }
      return;
    }
    default:
      return;
  }
  file_.settings[name] = text;
}

void SnapshotItems::settings(const Values& values, Value dict) {
  const auto items = values.items(dict);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    setting(values, std::string(values.text(items[i])), items[i + 1], 0);
  }
}

void SnapshotItems::take(PoolHistory history) {
  const auto by_address = [](const auto& a, const auto& b) { return a.addr < b.addr; };
  std::stable_sort(history.segments.begin(), history.segments.end(), by_address);
  std::stable_sort(history.blocks.begin(), history.blocks.end(), by_address);
  // The workspace allocator's entries repeat what the segments say: they are no history.
  std::vector<uint64_t> workspaces;
  while (!history.entries.empty() && history.entries.front().workspace) {
    const PoolEntry& entry = history.entries.front();
    if (entry.action == PoolAction::kSegmentAlloc) workspaces.push_back(entry.addr);
    history.entries.pop_front();
  }
  std::sort(workspaces.begin(), workspaces.end());
  const auto is_workspace = [&](uint64_t addr) {
    return std::binary_search(workspaces.begin(), workspaces.end(), addr);
  };
  for (PoolSegment& segment : history.segments) segment.workspace = is_workspace(segment.addr);
  for (PoolBlock& block : history.blocks) block.workspace = is_workspace(block.addr);
  file_.devices.push_back(std::move(history));
}

bool SnapshotItems::finish(Values& values, Value root) {
  bool is_snapshot = root.kind == ValueKind::kList;
  const auto items = values.items(root);
  for (size_t i = 0; i + 1 < items.size() && root.kind == ValueKind::kDict; i += 2) {
    const std::string_view key = values.text(items[i]);
    const Value value = items[i + 1];
    is_snapshot = is_snapshot || key == "segments" || key == "device_traces";
    if (key == "allocator_settings") settings(values, value);
    const bool host = key == "host_traces";
    if (key != "device_traces" && !host) continue;
    uint64_t device = 0;
    for (const Value list : values.items(value)) {
      // An empty list is a device that did nothing.
      const auto trace = std::find_if(traces_.begin(), traces_.end(), [&](const Trace& one) {
        return list.kind == ValueKind::kList && one.list == list.bits;
      });
      if (trace != traces_.end() && (host || device <= SnapshotFile::kMaxDevices)) {
        PoolHistory& history = host ? host_ : device_of(device);
        history.entries = std::move(trace->entries);
        file_.has_traces = true;
      }
      ++device;
    }
  }
  if (!is_snapshot) {
    return values.fail(
        "it has neither segments nor device_traces: no snapshot of PyTorch's memory");
  }
  std::sort(devices_.begin(), devices_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  host_.device = {Device::kCpu, Device::kNoIndex};
  for (auto& [index, history] : devices_) take(std::move(history));
  if (!host_.segments.empty() || !host_.entries.empty()) take(std::move(host_));
  file_.no_stack = frames_.left_out();
  if (odd_segments_ > 1) {
    file_.notes.push_back(std::to_string(odd_segments_) +
                          " segments do not add up to their blocks");
  }
  return true;
}

}  // namespace memscope
