#include "import/row_events.h"

#include <algorithm>
#include <array>
#include <utility>

#include "import/attributes.h"

namespace memscope {
namespace {

constexpr Device kHostDevice{Device::kCpu, Device::kNoIndex};
constexpr std::array<std::string_view, 11> kBlockKeys = {
    "allocation_id", "addr",   "size",  "used",   "total",       "process_used",
    "device_used",   "pinned", "owner", "shadow", "sampled_size"};

}  // namespace

// -- rows -----------------------------------------------------------------------------------------

void RowEvents::add(const FileRow& row) {
  std::string problem = common(row);
  if (problem.empty()) {
    const std::string_view event = row[Column::kEvent];
    if (event == "MALLOC") {
      problem = block(row, true);
    } else if (event == "FREE") {
      problem = block(row, false);
    } else if (event == "OP_LAUNCH" || event == "KERNEL_LAUNCH") {
      problem = launch(row);
    } else if (event == "ACCESS") {
      problem = access(row);
    } else if (event == "MSTX") {
      problem = mark(row);
    } else if (event == "SYSTEM") {
      problem = system(row);
    } else if (event == "SNAPSHOT" || event == "OOM_Snapshot") {
      problem = snapshot(row);
    } else if (event == "OOM_DETAIL") {
      problem = out_of_memory(row);
    } else if (event == "CLEAN_UP" || event == "MEMORY_OWNER") {
      ++file_.unused;
      keep_row(row);
    } else {
      problem = "the event is " + shown(event);
    }
  }
  if (problem.empty()) {
    ++file_.rows;
  } else {
    bad(row, std::move(problem));
  }
}

void RowEvents::bad(const FileRow& row, std::string problem) {
  if (file_.bad_rows++ == 0) {
    file_.first_bad_line = row.line;
    file_.first_problem = std::move(problem);
  }
  const std::string_view event = row[Column::kEvent];
  constexpr std::array<std::string_view, 7> kNoFrees = {
      "MALLOC", "SYSTEM", "ACCESS", "OP_LAUNCH", "KERNEL_LAUNCH", "MSTX", "SNAPSHOT"};
  if (std::find(kNoFrees.begin(), kNoFrees.end(), event) == kNoFrees.end()) ++file_.bad_frees;
}

// What all rows have: when, who, where.
RowEvents::Problem RowEvents::common(const FileRow& row) {
  const auto time = file_time(row[Column::kTime]);
  if (!time) return "the timestamp is " + shown(row[Column::kTime]);
  time_ = *time;
  order_ = 0;

  const std::string_view id = row[Column::kId];
  const auto number = file_count(id);
  if (!number && !is_none(id)) return "the ID is " + shown(id);
  id_ = number.value_or(file_.rows);

  const std::string_view pid = row[Column::kPid];
  if (!is_none(pid)) {
    const auto process = file_count(pid);
    if (!process) return "the process id is " + shown(pid);
    if (!choose_process(*process)) {
      return "it is of process " + std::string(pid) + ", and " + std::to_string(kMaxProcesses) +
             " others came before";
    }
  } else if (!has_process_) {
    choose_process(0);
  }
  const std::string_view tid = row[Column::kTid];
  const auto thread = file_count(tid);
  if (!thread && !is_none(tid)) return "the thread id is " + shown(tid);
  thread_ = thread_of(thread.value_or(0));

  const std::string_view device = row[Column::kDevice];
  device_.reset();
  on_host_ = device == "host" || device == "cpu";
  if (on_host_) {
    device_ = kHostDevice;
  } else if (!is_none(device)) {
    const auto index = file_count(device);
    if (index && *index < Device::kNoIndex) {
      device_ = Device{device_type_, static_cast<uint8_t>(*index)};
    } else {
      device_ = device_from_name(device);
    }
    if (!device_) return "the device is " + shown(device);
  }
  return {};
}

bool RowEvents::choose_process(uint64_t pid) {
  if (has_process_ && pid == pid_) return true;
  if (const auto known = parts_.find(pid); known != parts_.end()) {
    part_ = known->second;
  } else {
    if (file_.processes.size() >= kMaxProcesses) return false;
    part_ = static_cast<uint16_t>(file_.processes.size());
    parts_.emplace(pid, part_);
    file_.processes.push_back({.pid = pid});
  }
  pid_ = pid;
  has_process_ = true;
  return true;
}

uint32_t RowEvents::thread_of(uint64_t tid) {
  if (const auto known = threads_.find(tid); known != threads_.end()) return known->second;
  if (file_.threads.size() >= kMaxThreads) return 0;
  const auto thread = static_cast<uint32_t>(file_.threads.size());
  file_.threads.push_back({.tid = tid, .name = {}});
  threads_.emplace(tid, thread);
  return thread;
}

StackId RowEvents::stack_of(const FileRow& row) {
  return file_.stacks.intern(row[Column::kPythonStack], row[Column::kCStack]);
}

void RowEvents::put(SpoolEntry entry, std::span<const uint64_t> words) {
  entry.time = time_;
  entry.id = id_;
  entry.thread = thread_;
  entry.part = part_;
  entry.order = order_++;
  ImportedProcess& process = file_.processes[part_];
  process.first = process.first == 0 ? time_ : std::min(process.first, time_);
  process.last = std::max(process.last, time_);
  if (entry.kind == EventKind::kRecord) ++process.records;
  file_.spool.add(entry, words);
}

// -- blocks ---------------------------------------------------------------------------------------

// Where a block lies.
RowEvents::Problem RowEvents::place(const FileRow& row, const RowAttributes& attr,
                                    AddressClass& address_class) {
  const std::string_view type = row[Column::kEventType];
  const Device device = device_.value_or(Device{device_type_, Device::kNoIndex});
  address_class = AddressClass::kExact;
  if (type == "PTA" || type == "PTA_WORKSPACE") {
    const bool workspace = type == "PTA_WORKSPACE" || attr.owner.starts_with("PTA_WORKSPACE");
    where_ = {workspace ? Layer::kWorkspace : Layer::kPool, device};
    // As old files have it, only the MALLOC says that it is a workspace.
    address_class = AddressClass::kPta;
    if (workspace && type == "PTA") file_.processes[part_].resolve = true;
  } else if (type == "HAL") {
    where_ = on_host_ ? Where{Layer::kPinned, kHostDevice} : Where{Layer::kDriver, device};
    address_class = AddressClass::kHal;
  } else if (type == "HOST") {
    where_ = {attr.pinned ? Layer::kPinned : Layer::kTensor, kHostDevice};
    address_class = AddressClass::kHost;
    if (!attr.pinned && attr.total.empty()) file_.processes[part_].resolve = true;
  } else if (type == "HOST_PINNED") {
    where_ = {Layer::kPinned, kHostDevice};
    address_class = AddressClass::kHost;
  } else if (type == "ATB") {
    where_ = {Layer::kPoolAtb, device};
  } else if (type == "MINDSPORE" || type == "MindSpore") {
    where_ = {Layer::kPoolMindSpore, device};
  } else if (type == "HOST_MALLOC") {
    where_ = {Layer::kHost, kHostDevice};
  } else if (type == "PYTHON") {
    where_ = {Layer::kPython, kHostDevice};
  } else {
    return "the event type is " + shown(type);
  }
  // Old files do not say on which device the driver's memory is freed.
  if (!device_) file_.processes[part_].resolve = true;
  return {};
}

RowEvents::Problem RowEvents::block(const FileRow& row, bool is_malloc) {
  const RowAttributes attr(row[Column::kAttr]);
  AddressClass address_class;
  if (std::string problem = place(row, attr, address_class); !problem.empty()) return problem;

  const std::string_view ptr = row[Column::kPtr];
  const auto addr = file_count(is_none(ptr) ? attr.addr : ptr);
  if (!addr) return "the address is " + shown(is_none(ptr) ? attr.addr : ptr);
  const auto size = file_number(attr.size);
  if (!size && (is_malloc || !attr.size.empty())) {
    return attr.size.empty() ? "it has no size" : "the size is " + shown(attr.size);
  }
  if (size && size->value > kSizeMask) return "the size is " + shown(attr.size);
  if (is_malloc && (size->value == 0 || size->negative)) {
    return "the size is " + shown(attr.size);
  }

  SpoolEntry entry;
  entry.addr = *addr;
  entry.size = size ? size->value : 0;
  entry.where = where_.packed();
  entry.flags = static_cast<uint8_t>(static_cast<unsigned>(address_class) << kClassShift);
  const auto used = file_count(attr.used);
  const auto total = file_count(attr.total);
  if (used && total) {
    entry.flags |= kHasTotals;
    entry.allocated = *used;
    entry.reserved = *total;
  }
  // Before the block: its row is written from what is known then.
  counters(attr);
  if (attr.others) keep_others(row, kBlockKeys, *addr);
  ImportedProcess& process = file_.processes[part_];
  if (is_malloc) {
    entry.kind = attr.shadow ? EventKind::kSeed : EventKind::kAlloc;
    entry.stack = stack_of(row).value;
    ++(attr.shadow ? process.seeds : process.allocs);
    const auto sampled = file_count(attr.sampled_size);
    if (sampled && *sampled != 0 && *sampled <= entry.size && (entry.flags & kHasTotals) == 0) {
      entry.flags |= kSampled;
      entry.allocated = *sampled;
    }
  } else {
    entry.kind = EventKind::kFree;
    if (attr.shadow) entry.flags |= kShadow;
    ++(attr.shadow ? process.shadow_frees : process.frees);
  }
  put(entry);
  if (is_malloc && !attr.owner.empty()) {
    record(OwnerRecord{.addr = *addr, .birth = 0, .owner = attr.owner}, where_);
  }
  return {};
}

void RowEvents::keep_others(const FileRow& row, std::span<const std::string_view> known,
                            uint64_t addr) {
  if (row[Column::kAttr].size() <= 2) return;  // {}
  const std::string others = other_attributes(row[Column::kAttr], known);
  if (!others.empty()) record(OtherAttrRecord{.addr = addr, .attr = others}, Where{});
}

void RowEvents::keep_row(const FileRow& row) {
  const std::string attr = other_attributes(row[Column::kAttr], {});
  const std::string_view ptr = row[Column::kPtr];
  record(OtherRowRecord{.event = row[Column::kEvent].substr(0, kMaxRowText),
                        .type = row[Column::kEventType].substr(0, kMaxRowText),
                        .name = name_of(row),
                        .ptr = is_none(ptr) ? std::string_view() : ptr.substr(0, kMaxRowText),
                        .attr = attr},
         place_on(device_, Layer::kPool), stack_of(row));
}

// What a memory row says about the device or the process as a whole; only where it changes.
void RowEvents::counters(const RowAttributes& attr) {
  if (!attr.process_used.empty()) {
    counter(on_host_ ? "rss" : "process_used", attr.process_used);
  }
  if (!attr.device_used.empty()) counter("device_used", attr.device_used);
}

void RowEvents::counter(std::string_view name, std::string_view value) {
  const auto number = file_count(value);
  if (!number || *number > INT64_MAX) return;
  const Where where = place_on(device_, Layer::kDriver);
  const uint64_t key =
      uint64_t{name.front() == 'd' ? 1u : 0u} << 32 | uint64_t{part_} << 16 | where.packed();
  const auto [known, fresh] = values_.try_emplace(key, *number);
  if (!fresh && known->second == *number) return;
  known.value() = *number;
  record(
      CounterRecord{.name = name, .where = where.packed(), .value = static_cast<int64_t>(*number)},
      where);
}

}  // namespace memscope
