// HOT PATH: feed(), block_row().
#include "export/dump_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "export/dump_text.h"

namespace memscope {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// msMemScope 26.0 said PTA@weight where its viewer knows PTA@model@weight.
void spell_old_owner(std::string& owner) {
  constexpr std::string_view kModel = "@model";
  for (const std::string_view part : {"@weight", "@gradient", "@optimizer_state"}) {
    const size_t at = owner.find(std::string(kModel) + std::string(part));
    if (at != std::string::npos) owner.erase(at, kModel.size());
  }
}

// The first level of an owner: the framework that asked for the block.
std::string_view framework(Where where) {
  switch (where.layer) {
    case Layer::kDriver:
      return where.device.type == Device::kNpu ? "CANN@UNKNOWN" : "HAL";
    case Layer::kPool:
      return "PTA";
    case Layer::kPoolMindSpore:
      return "MINDSPORE";
    case Layer::kPoolAtb:
      return "ATB";
    case Layer::kWorkspace:
      return "PTA_WORKSPACE";
    default:
      return "";
  }
}

}  // namespace

std::string dump_device_id(Device device) {
  if (device.type == Device::kCpu) return "cpu";
  return std::to_string(device.index == Device::kNoIndex ? 0u : device.index);
}

std::string_view dump_event_type(Layer layer, bool compat) {
  switch (layer) {
    case Layer::kDriver:
      return "HAL";
    case Layer::kPool:
      return "PTA";
    case Layer::kPoolMindSpore:
      return "MINDSPORE";
    case Layer::kPoolAtb:
      return "ATB";
    case Layer::kWorkspace:
      return compat ? "PTA" : "PTA_WORKSPACE";
    case Layer::kTensor:
    case Layer::kPinned:
      return "HOST";
    case Layer::kHost:
      // Not HOST: a tensor's memory comes from malloc, and must not be counted twice.
      return "HOST_MALLOC";
    case Layer::kPython:
      return "PYTHON";
  }
  return "UNKNOWN";
}

DumpRows::DumpRows(const DumpProcess& process, const DumpSettings& settings,
                   const DumpOwners& owners, const DumpInefficient& inefficient)
    : process_(process),
      settings_(settings),
      owners_(owners),
      inefficient_(inefficient),
      stacks_(*process.stacks, *process.strings, settings),
      dropped_(process.dropped) {
  const std::vector<uint64_t>& ends = process.steps.ends;
  if (settings.first_step == 1) from_ = process.steps.begin;
  if (settings.first_step > 1 && settings.first_step - 2 < ends.size()) {
    from_ = ends[settings.first_step - 2] + 1;
  }
  to_ = settings.last_step == 0 || settings.last_step > ends.size() ? kNever
                                                                    : ends[settings.last_step - 1];
  writing_ = from_ == 0;
}

void DumpRows::add_file(std::optional<Device> device, RowWriter& file) {
  size_t index = 0;
  while (index < files_.size() && files_[index].writer != &file) ++index;
  if (index == files_.size()) {
    files_.push_back({device, device ? dump_device_id(*device) : "N/A", &file});
  }
  if (device) file_of_[device_bits(*device)] = static_cast<uint8_t>(index + 1);
}

bool DumpRows::feed(const Event& event) {
  if (ended_) return false;
  if (event.time > to_) [[unlikely]] {
    end_range(to_);
    return false;
  }
  if (!writing_ && event.time >= from_) [[unlikely]]
    begin_range(from_);
  last_time_ = event.time;
  if (resume_ != 0 && event.time >= resume_) [[unlikely]] {
    // The attributes of the row that says so come before it.
    const bool attrs = event.kind == EventKind::kRecord &&
                       event.record_kind == static_cast<uint8_t>(Kind::kOtherAttr);
    if (!attrs) resume(std::exchange(resume_, 0));
  }
  for (const BlockChange& change : blocks_.settle(event.time)) block_row(change, nullptr);
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kSeed:
      if (!wants(event.where.device)) return true;
      break;
    case EventKind::kWindow:
      window_row(event);
      break;
    case EventKind::kRecord:
      record_rows(event);
      break;
  }
  for (const BlockChange& change : blocks_.feed(event)) block_row(change, &event);
  return !ended_;
}

void DumpRows::finish() {
  if (ended_) return;
  ended_ = true;
  if (resume_ != 0) resume(resume_);
  for (const BlockChange& change : blocks_.finish()) block_row(change, nullptr);
  if (!settings_.compat) return;
  // 26.0 freed everything at the end, and left it to `shadow` to tell.
  const bool stopped = !blocks_.recording() && blocks_.stop_time() != 0;
  for (BlockChange change : blocks_.live(stopped ? blocks_.stop_time() + 1 : last_time_)) {
    change.alloc = false;
    block_row(change, nullptr);
  }
}

void DumpRows::begin_range(uint64_t time) {
  writing_ = true;
  Event event;
  event.time = time;
  if (blocks_.recording()) system_row("START_TRACE", "N/A", event);
  for (const BlockChange& change : blocks_.live(time)) block_row(change, nullptr);
}

void DumpRows::end_range(uint64_t time) {
  ended_ = true;
  if (!writing_ || !blocks_.recording()) return;
  Event event;
  event.time = time;
  system_row("STOP_TRACE", "N/A", event);
}

// -- the parts of a row ---------------------------------------------------------------------------

WrittenRow DumpRows::row_of(const Event& event, std::string_view name, std::string_view type) {
  if (event.thread != last_thread_ || last_tid_ == 0) {
    last_thread_ = event.thread;
    last_tid_ = process_.tid_of ? process_.tid_of(event.thread) : 0;
    if (last_tid_ == 0) last_tid_ = process_.pid;  // the main thread's
  }
  attr_count_ = 0;
  digits_end_ = digits_.data();
  WrittenRow row;
  row.id = ++last_id_;
  row.event = name;
  row.type = type;
  row.time = event.time;
  row.pid = process_.pid;
  row.tid = last_tid_;
  return row;
}

void DumpRows::attr(std::string_view key, std::string_view value, bool text) {
  attrs_[attr_count_++] = {key, value, text};
}

void DumpRows::attr(std::string_view key, uint64_t number) {
  char* end = put_number(digits_end_, number);
  attrs_[attr_count_++] = {key, {digits_end_, static_cast<size_t>(end - digits_end_)}, false};
  digits_end_ = end;
}

void DumpRows::set_stack(WrittenRow& row, StackId stack) {
  row.python_stack.asked = settings_.python_depth.has_value();
  row.c_stack.asked = settings_.c_depth.has_value();
  if (!stack || (!row.python_stack.asked && !row.c_stack.asked)) return;
  const StackText& text = stacks_.text(stack);
  row.python_stack.text = text.python;
  row.c_stack.text = text.c;
}

void DumpRows::put(WrittenRow& row, File& file, bool with_device) {
  row.attrs = {attrs_.data(), attr_count_};
  row.device = with_device ? std::string_view(file.id) : "N/A";
  file.writer->row(row);
  ++file.rows;
  if (file.writer->failed()) [[unlikely]]
    ended_ = true;
}

void DumpRows::to_device(WrittenRow& row, Device device) {
  const uint8_t index = file_of_[device_bits(device)];
  if (index != 0) put(row, files_[index - 1u], true);
}

void DumpRows::to_every_file(WrittenRow& row, bool of_its_device) {
  for (File& file : files_) put(row, file, of_its_device);
}

uint64_t DumpRows::rows_of(const RowWriter& writer) const {
  for (const File& file : files_) {
    if (file.writer == &writer) return file.rows;
  }
  return 0;
}

void DumpRows::to_device_of(WrittenRow& row, const Event& event) {
  if (event.where == Where{}) {
    to_every_file(row, true);
  } else {
    to_device(row, event.where.device);
  }
}

// -- blocks ---------------------------------------------------------------------------------------

void DumpRows::block_row(const BlockChange& change, const Event* event) {
  if (!writing_ || !(change.alloc ? settings_.alloc : settings_.free)) return;
  const Where where = change.where();
  // A change that another event brought about (a displaced block, one freed while nothing was
  // recorded) has that event's thread, but neither its stack nor its totals.
  const bool own = event != nullptr && !change.shadow;
  Event made;
  made.time = change.time;
  if (event != nullptr) made.thread = event->thread;
  WrittenRow row = row_of(made, change.alloc ? "MALLOC" : "FREE",
                          dump_event_type(where.layer, settings_.compat));
  row.ptr = {ptr_.data(), kAddressDigits};
  put_address(ptr_.data(), change.addr);
  attr("allocation_id", change.block.id);
  attr("addr", row.ptr);
  attr("size", change.block.size);
  if (change.block.sampled_size != 0 && change.alloc && !settings_.compat) {
    attr("sampled_size", change.block.sampled_size);
  }
  if (where.layer == Layer::kPinned) attr("pinned", "true");
  if (change.shadow) {
    attr("shadow", "true");
  } else if (where.layer == Layer::kTensor) {
    attr("total", change.used);
  } else if (own && event->has_totals) {
    attr("used", event->allocated);
    attr("total", event->reserved);
  } else {
    attr("used", change.used);
  }
  if (!change.shadow && !in_use_.empty()) use_attrs(where);
  if (change.alloc && (settings_.decompose || !owners_.empty())) {
    owner_.clear();
    owners_.append(change.block.id, owner_);
    if (owner_.empty()) owner_ = framework(where);
    if (settings_.compat) spell_old_owner(owner_);
    if (!owner_.empty()) attr("owner", owner_, true);
  }
  if (change.alloc && !inefficient_.empty()) {
    inefficient_types_ = inefficient_.types_of(change.block.birth, change.addr);
    if (!inefficient_types_.empty()) attr("inefficient_type", inefficient_types_);
  }
  // Of what the event brought about, the row that is its own.
  if (event != nullptr && change.alloc == (event->kind != EventKind::kFree)) {
    other_attrs(change.time, change.addr);
  }
  set_stack(row, own ? event->stack : StackId{});
  to_device(row, where.device);
}

// -- the process ----------------------------------------------------------------------------------

void DumpRows::system_row(std::string_view type, std::string_view name, const Event& event) {
  WrittenRow row = row_of(event, "SYSTEM", type);
  row.name = name;
  if (type != "START_TRACE" || settings_.compat) {
    other_attrs(event.time);
    to_every_file(row, false);
    return;
  }
  // Told once.
  const uint64_t dropped = std::exchange(dropped_, 0);
  // Device Id is a bare number: what it is the number of is told once a file.
  for (File& file : files_) {
    attr_count_ = 0;
    if (file.device && file.device->type == Device::kCuda) attr("backend", "cuda");
    if (file.device && file.device->type == Device::kXpu) attr("backend", "xpu");
    digits_end_ = digits_.data();
    if (dropped != 0) {
      attr("dropped", dropped);
      attr("dropped_frees", process_.dropped_frees);
    }
    if (other_.time == event.time && other_.addr == 0) put_other_attrs();
    put(row, file, false);
  }
}

void DumpRows::window_row(const Event& event) {
  constexpr uint64_t kStart = 1;
  if (!writing_) return;
  if (event.size == kStart) {
    system_row("START_TRACE", "N/A", event);
  } else if (blocks_.recording()) {
    system_row("STOP_TRACE", "N/A", event);
  }
}

void DumpRows::step_row(const Event& event) {
  const StepPlan& plan = process_.steps;
  const bool counts = plan.from == StepsFrom::kApi || plan.from == StepsFrom::kOptimizer;
  // Of several optimizers one makes the steps: its records stand where the plan has its ends.
  if (!counts || next_step_ >= plan.ends.size() || plan.ends[next_step_] != event.time) return;
  std::array<char, 20> digits;
  const std::string_view name(
      digits.data(), static_cast<size_t>(put_number(digits.data(), ++next_step_) - digits.data()));
  if (!writing_) return;
  WrittenRow row = row_of(event, "SYSTEM", "STEP");
  row.name = name;
  if (plan.from == StepsFrom::kOptimizer && !settings_.compat) attr("source", "optimizer");
  other_attrs(event.time);
  to_every_file(row, false);
}

}  // namespace memscope
