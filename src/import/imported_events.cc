#include "import/imported_events.h"

#include <algorithm>
#include <utility>

#include "trace/records.h"

namespace memscope {
namespace {

// How far apart the original may stamp what belongs to one start().
constexpr uint64_t kStartNs = 1'000'000;
constexpr size_t kMaxOpenRanges = 256;  // of a thread

AddressClass class_of(const SpoolEntry& entry) {
  return static_cast<AddressClass>(entry.flags >> kClassShift & 3u);
}

uint64_t class_key(const SpoolEntry& entry) {
  return entry.addr ^ static_cast<uint64_t>(class_of(entry)) << 60;
}

}  // namespace

std::string_view ImportedProcess::ended() const {
  if (last_stop != 0 && last_stop >= last_start) return "stop";
  // At exit the original frees what is alive.
  if (finished || shadow_frees != 0) return "exit";
  return "unknown";
}

std::vector<std::string> ImportedFile::damage() const {
  std::vector<std::string> lines;
  const std::string name = path.string();
  if (!broken.empty()) lines.push_back(broken);
  if (bad_rows != 0) {
    lines.push_back(name + ":" + std::to_string(first_bad_line) + ": " + first_problem + "; " +
                    (bad_rows == 1
                         ? std::string("this row is left out")
                         : "this row and " + std::to_string(bad_rows - 1) +
                               (bad_rows == 2 ? " other are left out" : " others are left out")));
  }
  if (stacks.left_out() != 0) {
    lines.push_back(name + ": " + std::to_string(stacks.left_out()) +
                    " rows have no call stack: there are more different ones than fit in memory");
  }
  return lines;
}

ImportedEvents::ImportedEvents(std::shared_ptr<const ImportedFile> file, uint16_t part)
    : file_(std::move(file)), part_(part), pass_(*file_, part, SpoolReader::kAll) {}

void ImportedEvents::rewind() {
  pass_ = Pass(*file_, part_, SpoolReader::kAll);
}

size_t ImportedEvents::next_batch(std::span<Event> out) {
  return next_batch_of(pass_, out, words_);
}

bool ImportedEvents::Pass::next(Event& event) {
  made_.clear();
  const SpoolEntry* entry = reader_.next();
  while (entry != nullptr && !keep(*entry)) entry = reader_.next();
  if (entry == nullptr) return false;
  event = {};
  event.kind = entry->kind;
  event.where = Where::unpack(entry->where);
  event.thread = ThreadId(entry->thread);
  event.stack = StackId(entry->stack);
  event.time = entry->time;
  if (entry->kind == EventKind::kWindow && !made_.empty()) {
    event.kind = EventKind::kRecord;
    event.record_kind = static_cast<uint8_t>(Kind::kGap);
    event.words = made_;
    return true;
  }
  if (entry->kind == EventKind::kRecord) {
    event.record_kind = entry->record_kind;
    event.words = paired(*entry, reader_.words());
    return true;
  }
  event.addr = entry->addr;
  event.size = entry->size;
  event.has_totals = (entry->flags & kHasTotals) != 0;
  event.allocated = entry->allocated;
  event.reserved = entry->reserved;
  if ((entry->flags & kSampled) != 0) event.sampled_size = std::exchange(event.allocated, 0);
  if (process_->resolve) resolve(*entry, event);
  return true;
}

// Whether an entry is an event.
bool ImportedEvents::Pass::keep(const SpoolEntry& entry) {
  switch (entry.kind) {
    case EventKind::kRecord:
      return true;
    case EventKind::kWindow:
      if (is_pause(entry)) return true;
      if (entry.size == kWindowStart) {
        return !std::exchange(started_, true);
      }
      if (entry.time < process_->last_stop || process_->last_stop < process_->last_start) {
        return false;
      }
      return !std::exchange(stopped_, true);
    default:
      break;
  }
  if (last_.time == entry.time && last_.id == entry.id && last_.kind == entry.kind &&
      last_.addr == entry.addr && last_.size == entry.size && last_.where == entry.where) {
    ++repeated_;
    return false;
  }
  last_ = entry;
  return entry.kind != EventKind::kFree || is_free(entry);
}

// Whether recording stops here and goes on later: made_ is the gap. (As events, a stop and a start
// would say that what is not seeded is gone; a dump has no seeds of what is alive already.)
bool ImportedEvents::Pass::is_pause(const SpoolEntry& entry) {
  if (entry.size != kWindowStop || !started_) return false;
  const std::vector<ImportedProcess::Window>& windows = process_->windows;
  while (window_ < windows.size() && windows[window_].time <= entry.time) ++window_;
  // Of several stops in a row the last one counts: a start follows it.
  if (window_ == windows.size() || !windows[window_].start || entry.time == paused_) return false;
  paused_ = entry.time;
  append_record(GapRecord{.from_ticks = entry.time,
                          .to_ticks = windows[window_].time,
                          .reason = "recording was stopped",
                          .healed = 1},
                0, 0, made_);
  return true;
}

bool ImportedEvents::Pass::is_free(const SpoolEntry& entry) const {
  if ((entry.flags & kShadow) == 0) return true;
  // Freed while not recording: stamped with the start of the next recording.
  return process_->starts > 1 && entry.time <= process_->last_start + kStartNs &&
         process_->last_start > process_->first_start;
}

void ImportedEvents::Pass::resolve(const SpoolEntry& entry, Event& event) {
  const AddressClass address_class = class_of(entry);
  if (address_class == AddressClass::kExact) return;
  if (entry.kind == EventKind::kFree) {
    const auto place = places_.find(class_key(entry));
    if (place == places_.end()) return;
    event.where = Where::unpack(place->second);
    places_.erase(place);
  } else if (entry.kind == EventKind::kAlloc || entry.kind == EventKind::kSeed) {
    places_[class_key(entry)] = entry.where;
  }
}

// A mark with the number of its range.
std::span<const uint64_t> ImportedEvents::Pass::paired(const SpoolEntry& entry,
                                                       std::span<const uint64_t> words) {
  if (entry.record_kind != static_cast<uint8_t>(Kind::kMark)) return words;
  const auto mark = decode_record<MarkRecord>(words);
  if (!mark || mark->action == 0) return words;
  std::vector<Range>& open = open_ranges_[entry.thread];
  MarkRecord numbered = *mark;
  if (mark->action == 1) {
    numbered.range = ++ranges_;
    if (open.size() < kMaxOpenRanges) open.push_back({numbered.range, std::string(mark->text)});
  } else if (!open.empty()) {
    // By its message where it has one, else the innermost.
    auto found = std::find_if(open.rbegin(), open.rend(),
                              [&](const Range& range) { return range.text == mark->text; });
    if (found == open.rend()) found = open.rbegin();
    numbered.range = found->number;
    open.erase(std::next(found).base());
  }
  append_record(numbered, 0, 0, made_);
  return made_;
}

}  // namespace memscope
