// Of row_events.h, the rows that are no blocks.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "import/attributes.h"
#include "import/row_events.h"

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kAccessKeys = {"allocation_id", "addr", "size", "type"};
constexpr std::array<std::string_view, 2> kLaunchKeys = {"streamId", "taskId"};
constexpr std::array<std::string_view, 4> kSystemKeys = {"backend", "source", "dropped",
                                                         "dropped_frees"};
constexpr std::array<std::string_view, 1> kOomKeys = {"req_size"};

}  // namespace

RowEvents::Problem RowEvents::access(const FileRow& row) {
  const RowAttributes attr(row[Column::kAttr]);
  const std::string_view ptr = row[Column::kPtr];
  const auto addr = file_count(is_none(ptr) ? attr.addr : ptr);
  if (!addr) return "the address is " + shown(is_none(ptr) ? attr.addr : ptr);
  const std::string_view type = row[Column::kEventType];
  const Layer layer = attr.type == "ATB"                                     ? Layer::kPoolAtb
                      : attr.type == "MINDSPORE" || attr.type == "MindSpore" ? Layer::kPoolMindSpore
                      : attr.type == "HAL"                                   ? Layer::kDriver
                                                                             : Layer::kPool;
  keep_others(row, kAccessKeys, *addr);
  record(AccessRecord{.addr = *addr,
                      .size = file_count(attr.size).value_or(0),
                      .mode = type == "READ"    ? 1u
                              : type == "WRITE" ? 2u
                                                : 0u,
                      .op = name_of(row)},
         place_on(device_, layer), stack_of(row));
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
  if (known == kKnown.end()) return "the event type is " + shown(type);
  const RowAttributes attr(row[Column::kAttr]);
  keep_others(row, kLaunchKeys);
  record(LaunchRecord{.action = known->action,
                      .level = known->level,
                      .name = name_of(row),
                      .stream = file_count(attr.stream).value_or(0),
                      .id = file_count(attr.task).value_or(0)},
         place_on(device_, known->layer), stack_of(row));
  return {};
}

RowEvents::Problem RowEvents::mark(const FileRow& row) {
  const std::string_view type = row[Column::kEventType];
  const bool begin = type == "Range_start", end = type == "Range_end";
  if (!begin && !end && type != "Mark") return "the event type is " + shown(type);
  keep_others(row, {});
  // Which range ends is found out once the rows are in order.
  record(MarkRecord{.action = begin ? 1u
                              : end ? 2u
                                    : 0u,
                    // An end is named by whoever wrote it, if at all.
                    .text = end ? name_of(row) : message_of(row, from_db_)},
         place_on(device_, Layer::kPool), stack_of(row));
  return {};
}

RowEvents::Problem RowEvents::system(const FileRow& row) {
  const std::string_view type = row[Column::kEventType];
  const RowAttributes attr(row[Column::kAttr]);
  ImportedProcess& process = file_.processes[part_];
  if (type == "STEP") {
    // The k-th row ends step k, whatever number it bears: those that were not recorded are missing.
    const bool optimizer = attr.source == "optimizer";
    keep_others(row, kSystemKeys);
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
    keep_others(row, kSystemKeys);
    drops(attr);
    if (process.windows.size() < ImportedProcess::kMaxWindows) {
      process.windows.push_back({time_, start});
    }
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
  keep_row(row);
  return {};
}

// What our own dumps say of events that found no slot: DumpRows::system_row().
void RowEvents::drops(const RowAttributes& attr) {
  const uint64_t frees = file_count(attr.dropped_frees).value_or(0);
  const uint64_t all = std::max(file_count(attr.dropped).value_or(0), frees);
  if (all == 0) return;
  file_.processes[part_].dropped += all;
  const auto drop = [&](Kind kind, uint64_t count) {
    if (count == 0) return;
    record(DropRecord{.kind = static_cast<uint64_t>(kind), .count = count}, Where{});
  };
  drop(Kind::kAlloc, all - frees);
  drop(Kind::kFree, frees);
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
      detail[std::string(key.substr(0, 64))] = std::string(value.substr(0, kMaxRowText));
    }
  }
  const std::string text = detail.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Where where = place_on(device_, Layer::kPool);
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
    keep_row(row);
    return {};
  }
  const RowAttributes attr(row[Column::kAttr]);
  const Where where = place_on(device_, Layer::kDriver);
  const StackId stack = stack_of(row);
  keep_others(row, kOomKeys);
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
  record(PythonTraceRecord{.name = function.substr(0, kMaxRowText),
                           .start_ticks = from.value_or(*to),
                           .end_ticks = to.value_or(*from)},
         Where{});
}

}  // namespace memscope
