#include "import/snapshot_file.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "import/json_values.h"
#include "import/pickle_reader.h"
#include "import/snapshot_items.h"

namespace memscope {
namespace {

// Whether the device is an NPU: torch_npu writes neither times nor settings, and Ascend's memory
// lies where no other device's does (its files, 6.0 to 26.x: 0x12c000000000 and above).
bool looks_like_npu(const SnapshotFile& file) {
  constexpr uint64_t kAscendBegin = 0x120000000000, kAscendEnd = 0x130000000000;
  if (file.has_times || !file.settings.empty()) return false;
  bool any = false;
  for (const PoolHistory& device : file.devices) {
    for (const PoolSegment& segment : device.segments) {
      if (segment.addr < kAscendBegin || segment.addr >= kAscendEnd) return false;
      any = true;
    }
  }
  return any;
}

// XPU's snapshots have CUDA's form; only what its frames say tells.
uint8_t device_type(const SnapshotFile& file) {
  bool npu = false, xpu = false;
  for (uint32_t id = 1; id < file.strings.size(); ++id) {
    const std::string_view text = file.strings.text(StringId(id));
    npu = npu || text.find("torch_npu/") != std::string_view::npos;
    xpu = xpu || text.ends_with("torch/xpu/memory.py");
  }
  if (npu || looks_like_npu(file)) return Device::kNpu;
  return xpu ? Device::kXpu : Device::kCuda;
}

// Buckets of roundup_power2_divisions: from 1 MiB (2^0) to 32768 MiB.
PoolRounding rounding_of(const SnapshotFile& file) {
  PoolRounding rounding;
  for (size_t i = 0; i < rounding.divisions.size(); ++i) {
    std::string name = "roundup_power2_divisions.";
    name += std::to_string(1u << i);
    const auto setting = file.settings.find(name);
    if (setting == file.settings.end()) continue;
    const std::string& text = setting->second;
    std::from_chars(text.data(), text.data() + text.size(), rounding.divisions[i]);
  }
  for (const PoolHistory& device : file.devices) {
    if (pads_requests(device, rounding)) rounding.pad = kPoolNpuPad;
  }
  return rounding;
}

// What the entries say together.
void work_out(SnapshotFile& file) {
  const uint8_t type = device_type(file);
  file.rounding = rounding_of(file);
  for (PoolHistory& device : file.devices) {
    if (device.device.index != Device::kNoIndex) device.device.type = type;
    // Times come from a clock that may step back: the order is the list's.
    uint64_t number = 0, latest = 0;
    for (PoolEntry& entry : device.entries) {
      ++number;
      if (!file.has_times) {
        constexpr uint64_t kApart = 1000;  // ns: an entry's time is its place
        entry.time = number * kApart;
      }
      latest = entry.time = std::max(entry.time, latest);
      if (file.first == 0) file.first = entry.time;
      file.first = std::min(file.first, entry.time);
      file.last = std::max(file.last, entry.time);
    }
    file.starts.push_back(work_back(device, file.rounding));
    if (!device.entries.empty()) file.older += file.starts.back().blocks.size();
    file.odd += file.starts.back().odd;
  }
  file.first = std::max<uint64_t>(file.first, 1);
  file.last = std::max(file.last, file.first);
  std::stable_sort(file.annotations.begin(), file.annotations.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
}

}  // namespace

std::vector<std::string> SnapshotFile::damage() const {
  std::vector<std::string> lines;
  const std::string name = path.string();
  for (const std::string& note : notes) {
    lines.push_back(name);
    lines.back().append(": ").append(note);
  }
  if (odd != 0) {
    lines.push_back(name + ": " + std::to_string(odd) + " of its " + std::to_string(entries) +
                    " entries do not fit the segments at the end; they are left out of the state "
                    "at its beginning");
  }
  if (no_stack != 0) {
    lines.push_back(name + ": " + std::to_string(no_stack) +
                    " call stacks are left out: there are more different ones than fit in memory");
  }
  return lines;
}

Result<std::shared_ptr<const SnapshotFile>> import_snapshot(const std::filesystem::path& path) {
  auto opened = ByteStream::open(path);
  if (!opened) return opened.error();
  ByteStream& bytes = opened.value();
  auto file = std::make_shared<SnapshotFile>();
  file->path = path;
  file->packed = bytes.packed();
  const uint8_t first = bytes.need(1) ? *bytes.at() : 0;
  file->json = first == '{' || first == '[' || first == ' ' || first == '\n' || first == '\r';
  SnapshotItems items(*file);
  Values values(items);
  auto root = file->json ? read_json(bytes, values) : read_pickle(bytes, values);
  constexpr const char* kAdvice =
      "; give a file that torch.cuda.memory._dump_snapshot() or its like wrote";
  if (!root) return Error{path.string() + ": " + root.error().message + kAdvice};
  file->bytes = bytes.offset();
  if (!items.finish(values, root.value())) {
    return Error{path.string() + ": " + values.error() + kAdvice};
  }
  work_out(*file);
  file->threads.push_back({});
  return std::shared_ptr<const SnapshotFile>(std::move(file));
}

}  // namespace memscope
