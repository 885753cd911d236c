// HOT PATH: Pass::next() and what it calls for allocs and frees.
#include "import/snapshot_events.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "import/imported_file.h"
#include "replay/steps.h"
#include "trace/records.h"

namespace memscope {
namespace {

// SegmentRecord::action, see record_table.h.
constexpr uint64_t kAlloc = 0, kFree = 1, kMap = 2, kUnmap = 3, kThere = 4;
constexpr std::string_view kOptimizerStep = "Optimizer.step#", kProfilerStep = "ProfilerStep#";

uint64_t sized(uint64_t size, Where where) {
  return (size & kSizeMask) | uint64_t{where.packed()} << 48;
}

}  // namespace

SnapshotEvents::SnapshotEvents(std::shared_ptr<const SnapshotFile> file)
    : file_(std::move(file)), pass_(*file_, false) {}

void SnapshotEvents::rewind() {
  pass_ = Pass(*file_, false);
}

size_t SnapshotEvents::next_batch(std::span<Event> out) {
  return next_batch_of(pass_, out, words_);
}

// -- one pass -------------------------------------------------------------------------------------

SnapshotEvents::Pass::Pass(const SnapshotFile& file, bool records_only)
    : file_(&file), records_only_(records_only), places_(file.devices.size()) {
  for (size_t i = 0; i < places_.size() && !records_only; ++i) {
    const PoolStart& start = file.starts[i];
    Place& place = places_[i];
    for (const PoolSegment& segment : start.segments) place.reserved += segment.size;
    for (const PoolBlock& block : start.blocks) {
      if (block.size != rounded_request(block.requested, file.rounding)) {
        place.sizes[block.addr] = block.size;
      }
      if (block.state == PoolBlockState::kPendingFree) {
        place.freed.insert(block.addr);
      } else {
        place.allocated += block.size;
      }
    }
  }
}

bool SnapshotEvents::Pass::next(Event& event) {
  while (made_begin_ == made_end_) {
    if (stage_ == Stage::kDone) return false;
    made_begin_ = made_end_ = 0;
    more();
  }
  Made& made = made_[made_begin_++];
  event = made.event;
  event.words = made.words;
  return true;
}

// Goes on by one item of the stage; there may be no event of it.
void SnapshotEvents::Pass::more() {
  switch (stage_) {
    case Stage::kSegments:
      first_segment();
      break;
    case Stage::kBlocks:
      first_block();
      break;
    case Stage::kWindow:
      put(EventKind::kWindow, file_->first).size = kWindowStart;
      stage_ = Stage::kEntries;
      break;
    case Stage::kEntries:
      entry();
      break;
    case Stage::kEnd:
      end_of_device();
      break;
    case Stage::kDone:
      break;
  }
}

Event& SnapshotEvents::Pass::put(EventKind kind, uint64_t time) {
  Made& made = made_[made_end_++];
  made.words.clear();
  made.event = {};
  made.event.kind = kind;
  made.event.time = time;
  return made.event;
}

template <typename Record>
void SnapshotEvents::Pass::record(const Record& record, uint64_t time, StackId stack) {
  Event& event = put(EventKind::kRecord, time);
  event.record_kind = static_cast<uint8_t>(Record::kKind);
  event.where = where_of(false);
  event.stack = stack;
  append_record(record, 0, 0, made_[made_end_ - 1].words);
}

// Of the device at hand.
Where SnapshotEvents::Pass::where_of(bool workspace) const {
  if (device_ == file_->devices.size()) return {};
  const Device device = file_->devices[device_].device;
  if (device.type == Device::kCpu) return {Layer::kPinned, device};
  return {workspace ? Layer::kWorkspace : Layer::kPool, device};
}

void SnapshotEvents::Pass::totals(Event& event, const Place& place) const {
  event.has_totals = event.where.layer == Layer::kPool;
  event.allocated = place.allocated;
  event.reserved = place.reserved;
}

void SnapshotEvents::Pass::first_segment() {
  if (device_ == file_->devices.size()) {
    stage_ = records_only_ ? Stage::kWindow : Stage::kBlocks;
    device_ = item_ = 0;
    return;
  }
  const std::vector<PoolSegment>& segments = file_->starts[device_].segments;
  if (item_ == segments.size()) {
    ++device_;
    item_ = 0;
    return;
  }
  const PoolSegment& segment = segments[item_++];
  record(SegmentRecord{.action = kThere,
                       .addr = segment.addr,
                       .sized = sized(segment.size, where_of(segment.workspace)),
                       .stream = file_->tables.streams[segment.stream],
                       .pool = segment.pool},
         file_->first, segment.stack);
}

void SnapshotEvents::Pass::first_block() {
  if (device_ == file_->devices.size()) {
    stage_ = Stage::kWindow;
    device_ = item_ = 0;
    return;
  }
  const PoolStart& start = file_->starts[device_];
  if (item_ == start.blocks.size()) {
    ++device_;
    item_ = 0;
    return;
  }
  const PoolBlock& block = start.blocks[item_++];
  if (block.state == PoolBlockState::kPendingFree) return;
  // Without a history all that is there is what is known: nothing is older than it.
  const bool known = block.stack || file_->devices[device_].entries.empty();
  Event& event = put(known ? EventKind::kAlloc : EventKind::kSeed, file_->first);
  event.where = where_of(block.workspace);
  event.addr = block.addr;
  event.size = block.size & kSizeMask;
  event.stack = block.stack;
  totals(event, places_[device_]);
}

// The next of all devices' entries and the annotations, by time.
void SnapshotEvents::Pass::entry() {
  uint64_t earliest = std::numeric_limits<uint64_t>::max();
  size_t chosen = places_.size();
  for (size_t i = 0; i < places_.size(); ++i) {
    const auto& entries = file_->devices[i].entries;
    if (places_[i].at == entries.size() || entries[places_[i].at].time >= earliest) continue;
    earliest = entries[places_[i].at].time;
    chosen = i;
  }
  if (annotation_ != file_->annotations.size() &&
      (chosen == places_.size() || file_->annotations[annotation_].time < earliest)) {
    annotation();
    return;
  }
  if (chosen == places_.size()) {
    stage_ = Stage::kEnd;
    device_ = 0;
    return;
  }
  device_ = chosen;
  Place& place = places_[chosen];
  const PoolEntry& entry = file_->devices[chosen].entries[place.at++];
  switch (entry.action) {
    case PoolAction::kAlloc:
      alloc(place, entry);
      break;
    case PoolAction::kFreeRequested:
    case PoolAction::kFreeCompleted:
      freed(place, entry, entry.action == PoolAction::kFreeCompleted);
      break;
    case PoolAction::kSegmentAlloc:
      segment(place, entry, kAlloc);
      break;
    case PoolAction::kSegmentFree:
      segment(place, entry, kFree);
      break;
    case PoolAction::kSegmentMap:
      segment(place, entry, kMap);
      break;
    case PoolAction::kSegmentUnmap:
      segment(place, entry, kUnmap);
      break;
    case PoolAction::kOom:
      record(OomRecord{.where = where_of(false).packed(),
                       .size = entry.size,
                       .allocated = place.allocated,
                       .reserved = place.reserved,
                       .stack = entry.stack.value},
             entry.time, entry.stack);
      break;
    case PoolAction::kSnapshot:
      record(MarkRecord{.text = "snapshot"}, entry.time, entry.stack);
      break;
    case PoolAction::kOther:
      record(MarkRecord{.text = file_->strings.text(entry.text)}, entry.time, entry.stack);
      break;
    case PoolAction::kAnnotate:
      break;
  }
  // What the user said of a block, once it is there.
  if (entry.text && (entry.action == PoolAction::kAlloc || entry.action == PoolAction::kAnnotate)) {
    record(OwnerRecord{.addr = entry.addr, .label = file_->strings.text(entry.text)}, entry.time);
  }
}

void SnapshotEvents::Pass::alloc(Place& place, const PoolEntry& entry) {
  if (records_only_) return;
  const std::vector<PoolStart::Got>& got = file_->starts[device_].got;
  uint64_t size = rounded_request(entry.size & kSizeMask, file_->rounding);
  if (place.got != got.size() && got[place.got].entry == place.at - 1) {
    size = got[place.got++].size;
  }
  place.allocated += size;
  Event& event = put(EventKind::kAlloc, entry.time);
  event.where = where_of(false);
  event.addr = entry.addr;
  event.size = size & kSizeMask;
  event.stack = entry.stack;
  totals(event, place);
}

void SnapshotEvents::Pass::freed(Place& place, const PoolEntry& entry, bool completed) {
  if (records_only_) return;
  if (completed) {
    if (place.freed.erase(entry.addr) != 0) return;
  } else {
    place.freed.insert(entry.addr);
  }
  uint64_t size = rounded_request(entry.size & kSizeMask, file_->rounding);
  if (const auto other = place.sizes.find(entry.addr); other != place.sizes.end()) {
    size = other->second;
    place.sizes.erase(other);
  }
  place.allocated -= std::min(place.allocated, size);
  Event& event = put(EventKind::kFree, entry.time);
  event.where = where_of(false);
  event.addr = entry.addr;
  totals(event, place);
}

void SnapshotEvents::Pass::segment(Place& place, const PoolEntry& entry, uint64_t action) {
  if (action == kAlloc || action == kMap) {
    place.reserved += entry.size;
  } else {
    place.reserved -= std::min(place.reserved, entry.size);
  }
  record(SegmentRecord{.action = action,
                       .addr = entry.addr,
                       .sized = sized(entry.size, where_of(false)),
                       .stream = file_->tables.streams[entry.stream],
                       .pool = entry.pool},
         entry.time, entry.stack);
}

void SnapshotEvents::Pass::annotation() {
  const SnapshotAnnotation& annotation = file_->annotations[annotation_++];
  const uint64_t time = std::clamp(annotation.time, file_->first, file_->last);
  const std::string_view name = file_->strings.text(annotation.name);
  device_ = file_->devices.size();
  std::vector<uint64_t>& open = open_[annotation.name.value];
  MarkRecord mark{.action = annotation.begins ? 1u : 2u, .text = name};
  if (annotation.begins) {
    mark.range = ++ranges_;
    constexpr size_t kMaxOpen = 256;
    if (open.size() < kMaxOpen) open.push_back(mark.range);
  } else if (!open.empty()) {
    mark.range = open.back();
    open.pop_back();
  }
  record(mark, time);
  if (annotation.begins) return;
  if (name.starts_with(kOptimizerStep)) {
    record(StepRecord{.source = static_cast<uint64_t>(StepSource::kOptimizer),
                      .optimizer = annotation.name.value,
                      .name = name.substr(kOptimizerStep.size())},
           time);
  } else if (name.starts_with(kProfilerStep)) {
    record(StepRecord{.source = static_cast<uint64_t>(StepSource::kApi)}, time);
  }
}

void SnapshotEvents::Pass::end_of_device() {
  if (device_ == file_->devices.size()) {
    stage_ = Stage::kDone;
    return;
  }
  PoolSnapshotRecord sums{.where = where_of(false).packed()};
  for (const PoolSegment& segment : file_->devices[device_].segments) {
    if (segment.workspace) continue;
    sums.allocated += segment.allocated;
    sums.reserved += segment.size;
    sums.active += segment.active;
    sums.requested += segment.requested;
  }
  record(sums, file_->last);
  ++device_;
}

}  // namespace memscope
