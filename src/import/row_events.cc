#include "import/row_events.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "import/attributes.h"

namespace memscope {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = 64 << 10;  // of a name or a label

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string shown = "\"" + std::string(text.substr(0, kShown));
  return shown + (text.size() > kShown ? "...\"" : "\"");
}

bool is_none(std::string_view text) {
  return text.empty() || text == "N/A" || text == "NA" || text == "''" || text == "\"\"";
}

std::string_view name_of(const FileRow& row) {
  std::string_view name = row[Column::kName];
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    name = name.substr(1, name.size() - 2);
  }
  return is_none(name) ? std::string_view() : name.substr(0, kMaxText);
}

Where device_where(std::optional<Device> device, Layer layer) {
  return device ? Where{layer, *device} : Where{};
}

constexpr Device kHostDevice{Device::kCpu, Device::kNoIndex};

}  // namespace

// The keys of a row that events are made of.
struct RowEvents::Attr {
  std::string_view size, used, total, addr, owner, process_used, device_used, type, stream, task,
      req_size, source, backend, free;
  bool pinned = false, shadow = false;
  std::string owner_text;

  explicit Attr(std::string_view text) {
    Attributes pairs(text);
    for (std::string_view key, value; pairs.next(key, value);) {
      if (key == "size") {
        size = value;
      } else if (key == "used") {
        used = value;
      } else if (key == "total") {
        total = value;
      } else if (key == "addr") {
        addr = value;
      } else if (key == "owner") {
        owner_text = value.substr(0, kMaxText);
        owner = owner_text;
      } else if (key == "process_used") {
        process_used = value;
      } else if (key == "device_used") {
        device_used = value;
      } else if (key == "type") {
        type = value;
      } else if (key == "streamId") {
        stream = value;
      } else if (key == "taskId") {
        task = value;
      } else if (key == "req_size") {
        req_size = value;
      } else if (key == "source") {
        source = value;
      } else if (key == "backend") {
        backend = value;
      } else if (key == "free") {
        free = value;
      } else if (key == "pinned") {
        pinned = value == "true";
      } else if (key == "shadow") {
        shadow = value == "true";
      }
    }
  }
};

// -- rows
// -------------------------------------------------------------------------------------------

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
    } else {
      problem = "the event is " + quoted(event);
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
  if (!time) return "the timestamp is " + quoted(row[Column::kTime]);
  time_ = *time;
  order_ = 0;

  const std::string_view id = row[Column::kId];
  const auto number = file_count(id);
  if (!number && !is_none(id)) return "the ID is " + quoted(id);
  id_ = number.value_or(file_.rows);

  const std::string_view pid = row[Column::kPid];
  if (!is_none(pid)) {
    const auto process = file_count(pid);
    if (!process) return "the process id is " + quoted(pid);
    if (!choose_process(*process)) {
      return "it is of process " + std::string(pid) + ", and " + std::to_string(kMaxProcesses) +
             " others came before";
    }
  } else if (!has_process_) {
    choose_process(0);
  }
  const std::string_view tid = row[Column::kTid];
  const auto thread = file_count(tid);
  if (!thread && !is_none(tid)) return "the thread id is " + quoted(tid);
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
    if (!device_) return "the device is " + quoted(device);
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

template <typename Record>
void RowEvents::record(const Record& record, Where where, StackId stack) {
  words_.clear();
  append_record(record, 0, 0, words_);
  SpoolEntry entry;
  entry.kind = EventKind::kRecord;
  entry.record_kind = static_cast<uint8_t>(Record::kKind);
  entry.where = where.packed();
  entry.stack = stack.value;
  put(entry, words_);
}

// -- blocks
// -----------------------------------------------------------------------------------------

// Where a block lies.
RowEvents::Problem RowEvents::place(const FileRow& row, const Attr& attr,
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
    return "the event type is " + quoted(type);
  }
  // Old files do not say on which device the driver's memory is freed.
  if (!device_) file_.processes[part_].resolve = true;
  return {};
}

RowEvents::Problem RowEvents::block(const FileRow& row, bool is_malloc) {
  const Attr attr(row[Column::kAttr]);
  AddressClass address_class;
  if (std::string problem = place(row, attr, address_class); !problem.empty()) return problem;

  const std::string_view ptr = row[Column::kPtr];
  const auto addr = file_count(is_none(ptr) ? attr.addr : ptr);
  if (!addr) return "the address is " + quoted(is_none(ptr) ? attr.addr : ptr);
  const auto size = file_number(attr.size);
  if (!size && (is_malloc || !attr.size.empty())) {
    return attr.size.empty() ? "it has no size" : "the size is " + quoted(attr.size);
  }
  if (size && size->value > kSizeMask) return "the size is " + quoted(attr.size);
  if (is_malloc && (size->value == 0 || size->negative)) {
    return "the size is " + quoted(attr.size);
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
  ImportedProcess& process = file_.processes[part_];
  if (is_malloc) {
    entry.kind = attr.shadow ? EventKind::kSeed : EventKind::kAlloc;
    entry.stack = stack_of(row).value;
    ++(attr.shadow ? process.seeds : process.allocs);
  } else {
    entry.kind = EventKind::kFree;
    if (attr.shadow) entry.flags |= kShadow;
    ++(attr.shadow ? process.shadow_frees : process.frees);
  }
  put(entry);
  if (is_malloc && !attr.owner.empty()) {
    record(OwnerRecord{.addr = *addr, .birth = 0, .owner = attr.owner}, where_);
  }
  counters(attr);
  return {};
}

// What a memory row says about the device or the process as a whole; only where it changes.
void RowEvents::counters(const Attr& attr) {
  if (!attr.process_used.empty()) {
    counter(on_host_ ? "rss" : "process_used", attr.process_used);
  }
  if (!attr.device_used.empty()) counter("device_used", attr.device_used);
}

void RowEvents::counter(std::string_view name, std::string_view value) {
  const auto number = file_count(value);
  if (!number || *number > INT64_MAX) return;
  const Where where = device_where(device_, Layer::kDriver);
  const uint64_t key =
      uint64_t{name.front() == 'd' ? 1u : 0u} << 32 | uint64_t{part_} << 16 | where.packed();
  const auto [known, fresh] = values_.try_emplace(key, *number);
  if (!fresh && known->second == *number) return;
  known.value() = *number;
  record(
      CounterRecord{.name = name, .where = where.packed(), .value = static_cast<int64_t>(*number)},
      where);
}

// -- records
// ----------------------------------------------------------------------------------------

RowEvents::Problem RowEvents::access(const FileRow& row) {
  const Attr attr(row[Column::kAttr]);
  const std::string_view ptr = row[Column::kPtr];
  const auto addr = file_count(is_none(ptr) ? attr.addr : ptr);
  if (!addr) return "the address is " + quoted(is_none(ptr) ? attr.addr : ptr);
  const std::string_view type = row[Column::kEventType];
  const Layer layer = attr.type == "ATB"                                     ? Layer::kPoolAtb
                      : attr.type == "MINDSPORE" || attr.type == "MindSpore" ? Layer::kPoolMindSpore
                      : attr.type == "HAL"                                   ? Layer::kDriver
                                                                             : Layer::kPool;
  record(AccessRecord{.addr = *addr,
                      .size = file_count(attr.size).value_or(0),
                      .mode = type == "READ"    ? 1u
                              : type == "WRITE" ? 2u
                                                : 0u,
                      .op = name_of(row)},
         device_where(device_, layer), stack_of(row));
  return {};
}

RowEvents::Problem RowEvents::launch(const FileRow& row) {
  struct Known {
    std::string_view type;
    uint64_t level, action;
    Layer layer;
  };
  constexpr uint64_t kStart = 0, kEnd = 1, kLaunched = 2;
  constexpr uint64_t kAtenOp = 0, kKernel = 1, kAtbOp = 2, kAtbKernel = 3;
  constexpr std::array<Known, 9> kKnown = {{{"ATEN_START", kAtenOp, kStart, Layer::kPool},
                                            {"ATEN_END", kAtenOp, kEnd, Layer::kPool},
                                            {"ATB_START", kAtbOp, kStart, Layer::kPoolAtb},
                                            {"ATB_END", kAtbOp, kEnd, Layer::kPoolAtb},
                                            {"KERNEL_LAUNCH", kKernel, kLaunched, Layer::kPool},
                                            {"KERNEL_EXECUTE_START", kKernel, kStart, Layer::kPool},
                                            {"KERNEL_EXECUTE_END", kKernel, kEnd, Layer::kPool},
                                            {"KERNEL_START", kAtbKernel, kStart, Layer::kPoolAtb},
                                            {"KERNEL_END", kAtbKernel, kEnd, Layer::kPoolAtb}}};
  const std::string_view type = row[Column::kEventType];
  const auto* const known = std::find_if(kKnown.begin(), kKnown.end(),
                                         [&](const Known& each) { return each.type == type; });
  if (known == kKnown.end()) return "the event type is " + quoted(type);
  const Attr attr(row[Column::kAttr]);
  record(LaunchRecord{.action = known->action,
                      .level = known->level,
                      .name = name_of(row),
                      .stream = file_count(attr.stream).value_or(0),
                      .id = file_count(attr.task).value_or(0)},
         device_where(device_, known->layer), stack_of(row));
  return {};
}

RowEvents::Problem RowEvents::mark(const FileRow& row) {
  const std::string_view type = row[Column::kEventType];
  const bool begin = type == "Range_start", end = type == "Range_end";
  if (!begin && !end && type != "Mark") return "the event type is " + quoted(type);
  // Which range ends is found out once the rows are in order.
  record(MarkRecord{.action = begin ? 1u
                              : end ? 2u
                                    : 0u,
                    .text = name_of(row)},
         device_where(device_, Layer::kPool), stack_of(row));
  return {};
}

RowEvents::Problem RowEvents::system(const FileRow& row) {
  const std::string_view type = row[Column::kEventType];
  const Attr attr(row[Column::kAttr]);
  ImportedProcess& process = file_.processes[part_];
  if (type == "STEP") {
    // The k-th row ends step k, whatever number it bears: those that were not recorded are missing.
    const bool optimizer = attr.source == "optimizer";
    record(StepRecord{.source = static_cast<uint64_t>(optimizer ? StepSource::kOptimizer
                                                                : StepSource::kApi),
                      .index = file_count(name_of(row)).value_or(0),
                      .optimizer = optimizer ? 1u : 0u},
           Where{});
    return {};
  }
  if (type == "START_TRACE" || type == "STOP_TRACE") {
    const bool start = type == "START_TRACE";
    if (const auto device = device_from_name(attr.backend)) device_type_ = device->type;
    if (start) {
      process.first_start = process.starts == 0 ? time_ : std::min(process.first_start, time_);
      process.last_start = std::max(process.last_start, time_);
      ++process.starts;
    } else {
      process.last_stop = std::max(process.last_stop, time_);
    }
    SpoolEntry entry;
    entry.kind = EventKind::kWindow;
    entry.size = start ? kWindowStart : kWindowStop;
    put(entry);
    return {};
  }
  if (type == "ACL_FINI" || type == "acl finalize") process.finished = true;
  ++file_.unused;
  return {};
}

RowEvents::Problem RowEvents::snapshot(const FileRow& row) {
  Json detail = Json::object();
  detail["name"] = std::string(name_of(row));
  uint64_t allocated = 0, reserved = 0;
  Attributes pairs(row[Column::kAttr]);
  for (std::string_view key, value; pairs.next(key, value) && detail.size() < 32;) {
    const auto number = file_count(value);
    if (key == "allocated" || key == "reserved") {
      (key == "allocated" ? allocated : reserved) = number.value_or(0);
    } else if (number) {
      detail[std::string(key.substr(0, 64))] = *number;
    } else {
      detail[std::string(key.substr(0, 64))] = std::string(value.substr(0, kMaxText));
    }
  }
  const std::string text = detail.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Where where = device_where(device_, Layer::kPool);
  record(PoolSnapshotRecord{.where = where.packed(),
                            .allocated = allocated,
                            .reserved = reserved,
                            .active = allocated,
                            .detail = text},
         where, stack_of(row));
  return {};
}

RowEvents::Problem RowEvents::out_of_memory(const FileRow& row) {
  if (row[Column::kEventType] != "OOM_TRIGGER") {
    ++file_.unused;  // they name blocks that have rows of their own
    return {};
  }
  const Attr attr(row[Column::kAttr]);
  const Where where = device_where(device_, Layer::kDriver);
  const StackId stack = stack_of(row);
  record(OomRecord{.where = where.packed(),
                   .size = file_count(attr.req_size).value_or(0),
                   .stack = stack.value},
         where, stack);
  return {};
}

void RowEvents::add_python(std::string_view function, std::string_view start, std::string_view end,
                           std::string_view tid, std::string_view pid) {
  const auto from = file_time(start), to = file_time(end);
  const auto process = file_count(pid);
  if ((!from && !to) || !process || !choose_process(*process)) return;
  time_ = to.value_or(*from);
  id_ = file_.rows;
  order_ = 0;
  thread_ = thread_of(file_count(tid).value_or(0));
  record(PythonTraceRecord{.name = function.substr(0, kMaxText),
                           .start_ticks = from.value_or(*to),
                           .end_ticks = to.value_or(*from)},
         Where{});
}

}  // namespace memscope
