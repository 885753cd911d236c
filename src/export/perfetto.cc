#include "export/perfetto.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/text.h"

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostText = 300;      // bytes of a name
constexpr size_t kMostOpen = 100'000;  // marks that were begun and not ended

std::string cut(std::string_view text) {
  return shortened(text, kMostText);
}

std::string place_name(Where where) {
  return device_name(where.device) + " " + std::string(layer_name(where.layer));
}

}  // namespace

void PerfettoCurve::set(uint64_t time, int64_t value, uint64_t bucket_ns) {
  if (!open_) {
    open_ = true;
    bucket_ = time / bucket_ns;
    peak_ = value;
    peak_time_ = time;
  } else if (value > peak_) {
    peak_ = value;
    peak_time_ = time;
  }
  last_ = value;
  last_time_ = time;
}

PerfettoProcess::PerfettoProcess(PerfettoFile& file, const PerfettoRequest& request, StepPlan steps,
                                 TimeRange range, std::function<uint64_t(uint64_t)> time_of)
    : file_(file),
      request_(request),
      steps_(std::move(steps)),
      range_(range),
      time_of_(std::move(time_of)) {
  first_ = since(range.first);
  bucket_ns_ = std::max<uint64_t>(1, (since(range.last) - first_) / PerfettoCurve::kBuckets + 1);
  file_.event(request_.pid,
              {{"ph", "M"}, {"name", "process_name"}, {"args", {{"name", cut(request_.name)}}}});
  constexpr std::array<std::pair<Track, const char*>, 3> kTracks = {
      {{kSteps, "steps"}, {kPhases, "phases"}, {kMarks, "marks"}}};
  for (const auto& [track, name] : kTracks) {
    file_.event(request_.pid, {{"ph", "M"},
                               {"tid", static_cast<int>(track)},
                               {"name", "thread_name"},
                               {"args", {{"name", name}}}});
  }
}

void PerfettoProcess::counter_event(const std::string& name, uint64_t time, int64_t value) {
  file_.at(request_.pid, time, {{"ph", "C"}, {"name", name}, {"args", {{"bytes", value}}}});
}

void PerfettoProcess::count(const std::string& name, uint64_t time, int64_t value) {
  auto at = curves_.find(name);
  if (at == curves_.end()) {
    if (curves_.size() == kCounters) {
      ++report_.counters_left_out;
      return;
    }
    at = curves_.emplace(name, PerfettoCurve()).first;
  }
  at->second.drain(time, bucket_ns_,
                   [&](uint64_t when, int64_t what) { counter_event(name, when, what); });
  at->second.set(time, value, bucket_ns_);
}

void PerfettoProcess::change(const BlockChange& change, const Event* event) {
  const uint16_t where = change.where().packed();
  auto& [allocated, reserved] = names_[where];
  if (allocated.empty()) {
    allocated = place_name(change.where()) + " allocated";
    reserved = place_name(change.where()) + " reserved";
  }
  count(allocated, since(change.time), static_cast<int64_t>(change.used));
  if (change.alloc) return begin(change, event);
  const auto stack = stacks_.find(change.block.id);
  const Ended ended{change.block.id, stack == stacks_.end() ? 0 : stack->second};
  if (stack != stacks_.end()) stacks_.erase(stack);
  ended_[ended_at_++ % kUndoDepth] = ended;
  keep(change, ended.stack, false);
}

void PerfettoProcess::begin(const BlockChange& change, const Event* event) {
  const uint64_t id = change.block.id;
  const auto undone = std::find_if(ended_.begin(), ended_.end(),
                                   [id](const Ended& ended) { return ended.id == id; });
  if (undone == ended_.end()) {
    ++report_.blocks;
    const bool own = event != nullptr && event->addr == change.addr;
    stacks_[id] = own ? event->stack.value : 0;
    return;
  }
  // Its free did not happen: it is the same block, and not among those that ended.
  stacks_[id] = undone->stack;
  *undone = {};
  const auto kept = std::find_if(largest_.begin(), largest_.end(),
                                 [id](const Kept& known) { return known.id == id; });
  if (kept == largest_.end()) return;
  largest_.erase(kept);
  std::make_heap(largest_.begin(), largest_.end(), is_larger);
}

void PerfettoProcess::keep(const BlockChange& change, uint32_t stack, bool alive) {
  const uint64_t size = change.block.size;
  if (largest_.size() == kBlocks) {
    ++report_.blocks_left_out;
    if (size <= largest_.front().size) return;
    std::pop_heap(largest_.begin(), largest_.end(), is_larger);
    largest_.pop_back();
  }
  largest_.push_back({.id = change.block.id,
                      .addr = change.addr,
                      .begin = change.block.birth,
                      .end = change.time,
                      .size = size,
                      .stack = stack,
                      .where = change.where().packed(),
                      .alive = alive,
                      .before = change.block.birth == 0});
  std::push_heap(largest_.begin(), largest_.end(), is_larger);
}

void PerfettoProcess::slice(Track track, uint64_t from, uint64_t to, const std::string& name,
                            Json args) {
  if (slices_[track]++ >= kSlices) {
    ++report_.slices_left_out;
    return;
  }
  file_.span(
      request_.pid, since(from), since(to),
      {{"ph", "X"}, {"tid", static_cast<int>(track)}, {"name", name}, {"args", std::move(args)}});
}

void PerfettoProcess::end_phase(uint64_t time) {
  if (!phase_) return;
  slice(kPhases, phase_->begin, time, phase_->text,
        phase_->domain.empty() ? Json::object() : Json{{"module", phase_->domain}});
  phase_.reset();
}

void PerfettoProcess::mark(const Event& event) {
  const auto record = decode_record<MarkRecord>(event.words);
  if (!record) return;
  constexpr uint64_t kMoment = 0, kBegin = 1;
  if (record->action == kBegin) {
    if (open_marks_.size() == kMostOpen) {
      ++report_.slices_left_out;
      return;
    }
    open_marks_[record->range] = {event.time, cut(record->text), cut(record->domain)};
    return;
  }
  if (slices_[kMarks] >= kSlices) {
    ++report_.slices_left_out;
    return;
  }
  if (record->action == kMoment) {
    ++slices_[kMarks];
    file_.at(request_.pid, since(event.time),
             {{"ph", "i"},
              {"tid", static_cast<int>(kMarks)},
              {"s", "p"},
              {"name", cut(record->text)},
              {"args", {{"domain", cut(record->domain)}}}});
    return;
  }
  const auto open = open_marks_.find(record->range);
  if (open == open_marks_.end()) return;
  ++slices_[kMarks];
  // Ranges overlap as they like: a slice of a thread would have to nest.
  const Json id = "mark " + std::to_string(slices_[kMarks]);
  file_.at(request_.pid, since(open->second.begin),
           {{"ph", "b"},
            {"cat", "mark"},
            {"id", id},
            {"name", open->second.text},
            {"args", {{"domain", open->second.domain}}}});
  file_.at(request_.pid, since(event.time),
           {{"ph", "e"}, {"cat", "mark"}, {"id", id}, {"name", open->second.text}});
  open_marks_.erase(open);
}

void PerfettoProcess::record(const Event& event) {
  switch (static_cast<Kind>(event.record_kind)) {
    case Kind::kPhase: {
      const auto record = decode_record<PhaseRecord>(event.words);
      if (!record) return;
      constexpr std::array<const char*, 4> kNames = {"other", "forward", "backward", "optimizer"};
      end_phase(event.time);
      phase_ = Open{event.time, kNames[record->phase < kNames.size() ? record->phase : 0],
                    cut(record->module)};
      return;
    }
    case Kind::kMark:
      return mark(event);
    case Kind::kCounter: {
      const auto record = decode_record<CounterRecord>(event.words);
      if (!record) return;
      const auto where = static_cast<uint16_t>(record->where);
      if (where != 0 && !wanted(Where::unpack(where))) return;
      const std::string place = where == 0 ? "" : place_name(Where::unpack(where)) + " ";
      count(place + cut(record->name), since(event.time), record->value);
      return;
    }
    case Kind::kOom: {
      const auto record = decode_record<OomRecord>(event.words);
      if (!record) return;
      const Where where = Where::unpack(static_cast<uint16_t>(record->where));
      if (!wanted(where) || slices_[0]++ >= kSlices) return;
      file_.at(request_.pid, since(event.time),
               {{"ph", "i"},
                {"tid", static_cast<int>(kMarks)},
                {"s", "p"},
                {"name", "out of memory: " + place_name(where)},
                {"args",
                 {{"asked", record->size},
                  {"allocated", record->allocated},
                  {"reserved", record->reserved}}}});
      return;
    }
    default:
      return;
  }
}

void PerfettoProcess::feed(const Event& event) {
  ++report_.events;
  if (event.kind == EventKind::kRecord) record(event);
  const bool block = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree ||
                     event.kind == EventKind::kSeed;
  if (block && !wanted(event.where)) return;
  for (const BlockChange& one : blocks_.feed(event)) change(one, &event);
  if (block && event.has_totals) {
    const auto name = names_.find(event.where.packed());
    if (name != names_.end()) {
      count(name->second.second, since(event.time), static_cast<int64_t>(event.reserved));
    }
  }
}

void PerfettoProcess::write_steps() {
  uint64_t begin = steps_.begin != 0 ? steps_.begin : range_.first;
  for (uint32_t k = 1; k <= steps_.count(); ++k) {
    slice(kSteps, begin, steps_.ends[k - 1], "step " + std::to_string(k), Json::object());
    begin = steps_.ends[k - 1];
  }
}

void PerfettoProcess::write_blocks(const StackTable& stacks, const StringTable& strings) {
  const Sites::Sources sources;
  Sites sites(stacks, strings, sources);
  std::sort(largest_.begin(), largest_.end(), [](const Kept& a, const Kept& b) {
    return a.size != b.size     ? a.size > b.size
           : a.begin != b.begin ? a.begin < b.begin
                                : a.id < b.id;
  });
  for (size_t i = 0; i < largest_.size(); ++i) {
    const Kept& kept = largest_[i];
    const Where where = Where::unpack(kept.where);
    const uint32_t site = sites.site_of(StackId(kept.stack));
    std::string name = "(no Python line)";
    Json args = {
        {"bytes", kept.size}, {"address", address_text(kept.addr)}, {"memory", place_name(where)}};
    if (site != 0) {
      const SiteFrame& frame = sites.frame(site);
      const std::string file = frame.file.value_or("?");
      name = cut(file.substr(file.find_last_of('/') + 1));
      if (frame.line) name += ":" + std::to_string(*frame.line);
      args["function"] = cut(frame.function);
      args["file"] = cut(file);
    }
    if (kept.alive) args["freed"] = "not by the end";
    if (kept.before) args["allocated"] = "before recording began";
    const std::string id = std::to_string(i + 1);
    const uint64_t begin = std::max(since(kept.begin), first_);
    file_.at(
        request_.pid, begin,
        {{"ph", "b"}, {"cat", "block"}, {"id", id}, {"name", name}, {"args", std::move(args)}});
    file_.at(request_.pid, std::max(since(kept.end), begin),
             {{"ph", "e"}, {"cat", "block"}, {"id", id}, {"name", name}});
  }
}

PerfettoReport PerfettoProcess::finish(const StackTable& stacks, const StringTable& strings) {
  for (const BlockChange& one : blocks_.finish()) change(one, nullptr);
  end_phase(range_.last);
  for (auto& [name, curve] : curves_) {
    curve.drain(~uint64_t{0}, bucket_ns_, [&, &text = name](uint64_t when, int64_t what) {
      counter_event(text, when, what);
    });
  }
  for (const BlockChange& one : blocks_.live(range_.last)) {
    const auto stack = stacks_.find(one.block.id);
    keep(one, stack == stacks_.end() ? 0 : stack->second, true);
  }
  write_steps();
  write_blocks(stacks, strings);
  return report_;
}

}  // namespace memscope
