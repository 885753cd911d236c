// The rows of everything that is no block.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "export/dump_rows.h"
#include "export/dump_text.h"
#include "trace/records.h"

namespace memscope {
namespace {

constexpr std::array<Layer, 9> kLayers = {Layer::kPool,      Layer::kPoolMindSpore, Layer::kPoolAtb,
                                          Layer::kWorkspace, Layer::kDriver,        Layer::kTensor,
                                          Layer::kPinned,    Layer::kHost,          Layer::kPython};

// 26.0 blanked what a spreadsheet could take for a formula.
std::string name_of(std::string_view text, bool compat) {
  std::string name = clean_text(text);
  if (compat && !name.empty() && std::string_view("=+-@").find(name.front()) != std::string::npos) {
    name.clear();
  }
  return name;
}

// A number or a text of a JSON object as text; "" where there is none.
std::string text_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return "";
  if (at->is_string()) return clean_text(at->get<std::string>());
  return at->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void DumpRows::record_rows(const Event& event) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kStep:
      step_row(event);  // counts, though nothing may be written yet
      return;
    case Kind::kMark:
      if (writing_) mark_row(event);
      return;
    case Kind::kLaunch:
      if (writing_ && settings_.launch) launch_row(event);
      return;
    case Kind::kAccess:
      if (writing_ && settings_.access) access_row(event);
      return;
    case Kind::kPoolSnapshot:
      if (writing_) snapshot_row(event);
      return;
    case Kind::kOom:
      if (writing_) oom_rows(event);
      return;
    case Kind::kPythonTrace:
      if (writing_) python_call(event);
      return;
    default:
      return;
  }
}

void DumpRows::mark_row(const Event& event) {
  const auto record = decode_record<MarkRecord>(event.words);
  if (!record) return;
  constexpr std::array<std::string_view, 3> kTypes = {"Mark", "Range_start", "Range_end"};
  if (record->action >= kTypes.size()) return;
  const std::string name = record->action == 2
                               ? "Range end from id " + std::to_string(record->range)
                               : name_of(record->text, settings_.compat);
  WrittenRow row = row_of(event, "MSTX", kTypes[record->action]);
  row.name = name;
  row.quote_name = true;
  to_device_of(row, event);
}

void DumpRows::launch_row(const Event& event) {
  const auto record = decode_record<LaunchRecord>(event.words);
  if (!record) return;
  enum Level : uint64_t { kOp = 0, kKernel = 1, kAtbOp = 2, kAtbKernel = 3 };
  const bool ends = record->action == 1;
  const bool kernel = record->level == kKernel || record->level == kAtbKernel;
  std::string_view type = ends ? "ATEN_END" : "ATEN_START";
  if (record->level == kAtbOp) type = ends ? "ATB_END" : "ATB_START";
  if (record->level == kAtbKernel) type = ends ? "KERNEL_END" : "KERNEL_START";
  if (record->level == kKernel) {
    type = record->action == 2 ? "KERNEL_LAUNCH"
           : ends              ? "KERNEL_EXECUTE_END"
                               : "KERNEL_EXECUTE_START";
  }
  const std::string name = name_of(record->name, settings_.compat);
  WrittenRow row = row_of(event, kernel ? "KERNEL_LAUNCH" : "OP_LAUNCH", type);
  row.name = name;
  if (kernel) {
    attr("streamId", record->stream);
    attr("taskId", record->id);
  }
  to_device_of(row, event);
}

void DumpRows::access_row(const Event& event) {
  const auto record = decode_record<AccessRecord>(event.words);
  if (!record) return;
  // The block: of the place that is told, else of any that has one at this address.
  const DumpBlock* block = nullptr;
  for (const File& file : files_) {
    if (!file.device || (event.where != Where{} && event.where.device != *file.device)) continue;
    for (const Layer layer : kLayers) {
      if (block == nullptr) block = blocks_.find(record->addr, Where{layer, *file.device});
    }
  }
  constexpr std::array<std::string_view, 3> kModes = {"UNKNOWN", "READ", "WRITE"};
  const std::string name = name_of(record->op, settings_.compat);
  WrittenRow row = row_of(event, "ACCESS", kModes[record->mode < 3 ? record->mode : 0]);
  row.name = name;
  row.ptr = {ptr_.data(), kAddressDigits};
  put_address(ptr_.data(), record->addr);
  Where where = event.where;
  if (block != nullptr) {
    where = Where::unpack(block->where);
    attr("allocation_id", block->id);
  }
  attr("addr", row.ptr);
  attr("size", record->size);
  if (where != Where{}) attr("type", dump_event_type(where.layer, settings_.compat));
  set_stack(row, event.stack);
  if (block != nullptr) {
    to_device(row, where.device);
  } else {
    to_device_of(row, event);
  }
}

void DumpRows::snapshot_row(const Event& event) {
  const auto record = decode_record<PoolSnapshotRecord>(event.words);
  if (!record) return;
  const auto detail = nlohmann::json::parse(record->detail, nullptr, false);
  std::string name = text_of(detail, "name");
  if (name.empty()) name = "Memory Snapshot";
  WrittenRow row = row_of(event, "SNAPSHOT", "SNAPSHOT");
  row.name = name;
  constexpr std::array<const char*, 8> kKeys = {"reserved",      "max_reserved", "allocated",
                                                "max_allocated", "total",        "free",
                                                "device_rate",   "reserved_rate"};
  std::array<std::string, kKeys.size()> values;
  for (size_t i = 0; i < kKeys.size(); ++i) {
    values[i] = text_of(detail, kKeys[i]);
    if (i == 0 && values[i].empty()) values[i] = std::to_string(record->reserved);
    if (i == 2 && values[i].empty()) values[i] = std::to_string(record->allocated);
    if (!values[i].empty()) attr(kKeys[i], values[i], true);
  }
  set_stack(row, event.stack);
  to_device(row, Where::unpack(static_cast<uint16_t>(record->where)).device);
}

void DumpRows::oom_rows(const Event& event) {
  const auto record = decode_record<OomRecord>(event.words);
  if (!record) return;
  const Where where = Where::unpack(static_cast<uint16_t>(record->where));
  WrittenRow trigger = row_of(event, "OOM_DETAIL", "OOM_TRIGGER");
  trigger.name = "OOM_Trigger";
  attr("req_size", record->size);
  set_stack(trigger, event.stack);
  to_device(trigger, where.device);

  // The lists at most once in 2 s: a program that catches the error and tries again would fill the
  // file with them.
  constexpr uint64_t kQuiet = 2'000'000'000;
  if (settings_.oom_top && (last_oom_ == 0 || event.time - last_oom_ >= kQuiet)) {
    last_oom_ = event.time;
    std::vector<BlockChange> blocks = blocks_.live(event.time);
    std::erase_if(blocks,
                  [&](const BlockChange& block) { return block.where().device != where.device; });
    const size_t count = std::min<size_t>(*settings_.oom_top, blocks.size());
    std::reverse(blocks.begin(), blocks.end());  // by allocation_id: the latest first
    oom_list("OOM_RECENT_ALLOC", "OOM_RecentAlloc", event, blocks, count);
    std::stable_sort(blocks.begin(), blocks.end(), [](const BlockChange& a, const BlockChange& b) {
      return a.block.size > b.block.size;
    });
    oom_list("OOM_TOP_ALLOC", "OOM_TopAlloc", event, blocks, count);
  }
  if (record->reserved == 0 && record->allocated == 0) return;
  WrittenRow snapshot = row_of(event, "SNAPSHOT", "SNAPSHOT");
  snapshot.name = "OOM_Snapshot";
  attr("reserved", record->reserved);
  attr("allocated", record->allocated);
  set_stack(snapshot, event.stack);
  to_device(snapshot, where.device);
}

void DumpRows::oom_list(std::string_view type, std::string_view name, const Event& event,
                        std::vector<BlockChange>& blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const BlockChange& block = blocks[i];
    WrittenRow row = row_of(event, "OOM_DETAIL", type);
    row.name = name;
    put_address(ptr_.data(), block.addr);
    attr("pool", dump_event_type(block.where().layer, settings_.compat));
    attr("ptr", {ptr_.data(), kAddressDigits});
    attr("size", block.block.size);
    attr("timestamp", block.block.birth);
    to_device(row, block.where().device);
  }
}

void DumpRows::python_call(const Event& event) {
  const auto record = decode_record<PythonTraceRecord>(event.words);
  if (!record) return;
  const std::string function = clean_text(record->name);
  WrittenCall call{.function = function, .pid = process_.pid};
  call.tid = process_.tid_of ? process_.tid_of(event.thread) : 0;
  if (call.tid == 0) call.tid = process_.pid;
  // A call that was open when tracing began or ended has one time only; readers need two that
  // differ, in order.
  call.end = record->end_ticks == 0 ? event.time : process_.time_of(record->end_ticks);
  call.start = record->start_ticks == 0 ? call.end - 1 : process_.time_of(record->start_ticks);
  call.end = std::max(call.end, call.start + 1);
  for (File& file : files_) file.writer->call(call);
  ++calls_;
}

}  // namespace memscope
