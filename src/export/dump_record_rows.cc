// The rows of everything that is no block.
#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

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
std::string text_of(const nlohmann::ordered_json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return "";
  if (at->is_string()) return clean_text(at->get<std::string>());
  return at->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

constexpr size_t kMaxOthers = 16;

// The texts and numbers of a JSON object whose keys an Attr can have; kMaxOthers at most.
std::vector<std::pair<std::string, std::string>> pairs_of(const nlohmann::ordered_json& object) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!object.is_object()) return pairs;
  for (const auto& [key, value] : object.items()) {
    const bool word = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    });
    if (!word || pairs.size() == kMaxOthers) continue;
    if (value.is_string()) {
      pairs.emplace_back(key, clean_text(value.get<std::string>()));
    } else if (value.is_number()) {
      pairs.emplace_back(key, value.dump());
    }
  }
  return pairs;
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
    case Kind::kOtherRow:
      if (writing_) other_row(event);
      return;
    case Kind::kOtherAttr:
      keep_attrs(event);
      return;
    case Kind::kCounter:
      keep_counter(event);
      return;
    case Kind::kGap:
      pause(event);
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
  other_attrs(event.time);
  if (event.stack) set_stack(row, event.stack);
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
  other_attrs(event.time);
  if (event.stack) set_stack(row, event.stack);
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
  other_attrs(event.time, record->addr);
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
  const auto detail = nlohmann::ordered_json::parse(record->detail, nullptr, false);
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
  // What else an input's row had.
  const auto others = pairs_of(detail);
  for (const auto& [key, value] : others) {
    const bool known = key == "name" || std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
    if (!known) attr(key, value, true);
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
  other_attrs(event.time);
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

// -- what a dump says beside ---------------------------------------------------------------------

namespace {

// As good as a literal, which is what writers take for a row's event and type.
std::string_view kept(std::string_view text) {
  constexpr size_t kMost = 1000;
  static std::set<std::string, std::less<>> texts;
  if (const auto at = texts.find(text); at != texts.end()) return *at;
  if (texts.size() == kMost) return "UNKNOWN";
  return *texts.insert(clean_line(text)).first;
}

}  // namespace

void DumpRows::other_row(const Event& event) {
  const auto record = decode_record<OtherRowRecord>(event.words);
  if (!record) return;
  const std::string text = name_of(record->name, settings_.compat), ptr = clean_text(record->ptr);
  WrittenRow row = row_of(event, kept(record->event), kept(record->type));
  if (!text.empty()) row.name = text;
  if (!ptr.empty()) row.ptr = ptr;
  other_ = {0, 0, pairs_of(nlohmann::ordered_json::parse(record->attr, nullptr, false))};
  put_other_attrs();
  if (event.stack) set_stack(row, event.stack);
  if (event.where == Where{}) {
    to_every_file(row, false);
  } else {
    to_device(row, event.where.device);
  }
}

void DumpRows::keep_attrs(const Event& event) {
  const auto record = decode_record<OtherAttrRecord>(event.words);
  if (!record) return;
  other_ = {event.time, record->addr,
            pairs_of(nlohmann::ordered_json::parse(record->attr, nullptr, false))};
}

void DumpRows::other_attrs(uint64_t time, uint64_t addr) {
  if (other_.pairs.empty() || other_.time != time || other_.addr != addr) return;
  put_other_attrs();
  other_.time = 0;
}

void DumpRows::put_other_attrs() {
  for (const auto& [key, value] : other_.pairs) {
    // A list of words, which 26.0 writes bare, is safe with its commas.
    const bool words = key == "inefficient_type" &&
                       value.find_first_not_of("abcdefghijklmnopqrstuvwxyz_,") == std::string::npos;
    if (attr_count_ < kMaxAttrs) attr(key, value, !words);
  }
}

// A pause has its two rows, each at its time.
void DumpRows::pause(const Event& event) {
  const auto record = decode_record<GapRecord>(event.words);
  if (!record || record->healed == 0) return;
  if (writing_) system_row("STOP_TRACE", "N/A", event);
  resume_ = process_.time_of(record->to_ticks);
}

void DumpRows::resume(uint64_t time) {
  if (!writing_) return;
  Event event;
  event.time = time;
  system_row("START_TRACE", "N/A", event);
}

void DumpRows::keep_counter(const Event& event) {
  const auto record = decode_record<CounterRecord>(event.words);
  if (!record || record->value < 0) return;
  const bool device = record->name == "device_used";
  if (!device && record->name != "process_used" && record->name != "rss") return;
  if (in_use_.empty()) in_use_.resize(kDevices);
  // The process's memory as a whole is of no device: what lies on the host says it.
  const Where where = Where::unpack(static_cast<uint16_t>(record->where));
  const Device told = record->name == "rss" ? Where{}.device : where.device;
  InUse& in_use = in_use_[device_bits(told)];
  (device ? in_use.device : in_use.process) = static_cast<uint64_t>(record->value);
}

// As 26.0: on the rows of the device's memory, and on those of pinned memory.
void DumpRows::use_attrs(Where where) {
  const bool host = where.device.type == Device::kCpu;
  if (host && where.layer != Layer::kPinned) return;
  const InUse& in_use = in_use_[device_bits(where.device)];
  if (in_use.process) attr("process_used", *in_use.process);
  if (in_use.device) attr("device_used", *in_use.device);
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
