// Queries about the session as a whole: inputs, pools, steps, and what lies under the time axis.
#include <algorithm>

#include "view/api.h"
#include "view/text.h"

namespace memscope::view {
namespace {

constexpr size_t kMaxAccused = 200;  // sites of a pool that the page is told of

Json names_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) {
    if (list.size() == 20) break;
    list.push_back(cut(text));
  }
  return list;
}

Json input_json(const ViewState& state, size_t number) {
  const InputIndex& input = *state.inputs[number];
  const int64_t shift = state.shift(number);
  const InputFacts& facts = input.facts;
  Json process = nullptr;
  if (facts.process) {
    process = Json{{"host", cut(facts.process->host)},
                   {"rank", facts.process->rank < 0 ? Json(nullptr) : Json(facts.process->rank)},
                   {"pid", facts.process->pid},
                   {"argv0", cut(facts.process->argv0)},
                   {"command", cut(facts.command, 2000)}};
  }
  uint64_t events = 0, blocks = 0;
  for (const auto& pool : input.pools) {
    events += pool->events();
    blocks += pool->blocks();
  }
  Json counters = Json::array();
  for (const CounterSeen& counter : input.counters) {
    const bool placed = counter.where.packed() != 0;
    counters.push_back(Json{
        {"name", cut(counter.name)},
        {"device", placed ? Json(device_name(counter.where.device)) : Json(nullptr)},
        {"layer", placed ? Json(std::string(layer_name(counter.where.layer))) : Json(nullptr)}});
  }
  return Json{{"id", number},
              {"path", cut(facts.path, 4096)},
              {"name", cut(facts.name)},
              {"kind", facts.kind},
              {"process", process},
              {"ended", facts.ended},
              {"complete", facts.complete},
              {"dropped", facts.dropped},
              {"begin", static_cast<int64_t>(input.begin) + shift},
              {"end", static_cast<int64_t>(input.end) + shift},
              {"events", events},
              {"blocks", blocks},
              {"steps", input.steps.count()},
              {"counters", counters},
              {"phases", input.phases.size()},
              {"marks", input.marks.size()},
              {"ooms", input.ooms.size()},
              {"sources", !input.side.sources.empty()},
              {"owners", input.owners.size() > 1},
              {"holders", !input.side.holders.empty()},
              {"damage", names_json(input.damage)}};
}

Json pool_json(const ViewState& state, size_t number) {
  const ViewState::Pool& entry = state.pools[number];
  const PoolIndex& pool = entry.views->pool();
  const InputIndex& input = entry.views->input();
  const int64_t shift = state.shift(entry.input);
  const std::string device = device_name(pool.where.device);
  const std::string layer(layer_name(pool.where.layer));
  const auto time = [&](uint64_t at) { return static_cast<int64_t>(at) + shift; };
  Json accused = Json::array();
  for (const VerdictBlocks& verdict : state.verdicts[number]) {
    for (const uint32_t site : verdict.sites) {
      if (accused.size() == kMaxAccused) break;
      accused.push_back(Json{{"site", site}, {"verdict", verdict.verdict}});
    }
  }
  return Json{{"id", number},
              {"input", entry.input},
              {"device", device},
              {"layer", layer},
              {"name", device + " " + layer},
              {"begin", time(pool.time.empty() ? input.begin : pool.time[0])},
              {"end", time(pool.time.empty() ? input.begin : pool.time.back())},
              {"events", pool.events()},
              {"blocks", pool.blocks()},
              {"live_blocks", pool.live_blocks},
              {"live_bytes", pool.live_bytes},
              {"peak", Json{{"bytes", pool.peak.bytes},
                            {"time", time(pool.time_of_state(pool.peak.state))}}},
              {"reported", !pool.untracked.states.empty()},
              {"reserved", !pool.reserved.states.empty()},
              {"owners", input.owners.size() > 1},
              {"accused", std::move(accused)}};
}

// With a verdict that accuses blocks: its pool by lifetime. Else the pool that held most, of the
// layers that people think in.
Json opening_json(const ViewState& state) {
  size_t pool = 0;
  uint64_t most = 0;
  bool accused = false;
  for (size_t i = 0; i < state.pools.size(); ++i) {
    const PoolIndex& index = state.pools[i].views->pool();
    const bool nested = index.where.layer == Layer::kDriver || index.where.layer == Layer::kHost ||
                        index.where.layer == Layer::kPython;
    const uint64_t weight = nested ? index.peak.bytes / 8 : index.peak.bytes;
    const bool here = !state.verdicts[i].empty();
    if (here < accused || (here == accused && weight <= most && i != 0)) continue;
    pool = i;
    most = weight;
    accused = here;
  }
  int64_t begin = 0, end = 0;
  if (!state.pools.empty()) {
    const auto& entry = state.pools[pool];
    begin = static_cast<int64_t>(entry.views->input().begin) + state.shift(entry.input);
    end = static_cast<int64_t>(entry.views->input().end) + state.shift(entry.input);
  }
  return Json{{"pool", state.pools.empty() ? Json(nullptr) : Json(pool)},
              {"order", accused ? "lifetime" : "alloc"},
              {"colour", "site"},
              {"t0", begin},
              {"t1", std::max(end, begin + 1)},
              {"classes", nullptr}};
}

// Spans of a lane, in order: those that would be closer than a pixel become one.
struct LaneSpan {
  uint64_t begin = 0, end = 0;
  size_t first = 0, last = 0;  // of what was merged
  bool moment = false;
};

class LaneMerger {
 public:
  explicit LaneMerger(uint64_t pixel) : pixel_(pixel) {}
  void add(uint64_t begin, uint64_t end, size_t number, bool moment) {
    if (!spans_.empty()) {
      LaneSpan& last = spans_.back();
      // Wide ones stay what they are.
      const bool thin = end - begin < pixel_ && last.end - last.begin < pixel_;
      if (thin && end < last.begin + pixel_) {
        last.end = std::max(last.end, end);
        last.last = number;
        return;
      }
    }
    spans_.push_back({begin, end, number, number, moment});
  }
  const std::vector<LaneSpan>& spans() const { return spans_; }

 private:
  uint64_t pixel_;
  std::vector<LaneSpan> spans_;
};

struct LaneWindow {
  const InputIndex* input = nullptr;
  int64_t shift = 0;
  uint64_t t0 = 0, t1 = 0, pixel = 1;
  int64_t out(uint64_t time) const { return static_cast<int64_t>(time) + shift; }
};

Json step_lane(const LaneWindow& window) {
  const auto& ends = window.input->steps.ends;
  LaneMerger merger(window.pixel);
  const auto first =
      static_cast<size_t>(std::lower_bound(ends.begin(), ends.end(), window.t0) - ends.begin());
  for (size_t i = first; i < ends.size(); ++i) {
    const uint64_t begin =
        i == 0 ? std::max(window.input->begin, window.input->steps.begin) : ends[i - 1];
    if (begin >= window.t1) break;
    merger.add(std::min(begin, ends[i]), ends[i], i + 1, false);
  }
  Json lane = Json::array();
  for (const LaneSpan& span : merger.spans()) {
    lane.push_back(Json{{"k", span.first},
                        {"last_k", span.last},
                        {"begin", window.out(span.begin)},
                        {"end", window.out(span.end)},
                        {"count", span.last - span.first + 1}});
  }
  return lane;
}

Json phase_lane(const LaneWindow& window) {
  constexpr std::array<const char*, 5> kNames = {"other", "forward", "backward", "optimizer",
                                                 "other"};
  const auto& phases = window.input->phases;
  LaneMerger merger(window.pixel);
  auto at = static_cast<size_t>(
      std::upper_bound(phases.begin(), phases.end(), window.t0,
                       [](uint64_t time, const PhaseSeen& phase) { return time < phase.time; }) -
      phases.begin());
  if (at != 0) --at;
  for (; at < phases.size() && phases[at].time < window.t1; ++at) {
    const uint64_t end = at + 1 < phases.size() ? phases[at + 1].time : window.input->end;
    merger.add(phases[at].time, std::max(end, phases[at].time), at, false);
  }
  Json lane = Json::array();
  for (const LaneSpan& span : merger.spans()) {
    const PhaseSeen& phase = phases[span.first];
    const bool one = span.first == span.last;
    lane.push_back(Json{{"phase", one ? kNames[phase.phase] : ""},
                        {"module", one ? cut(window.input->names[phase.module]) : ""},
                        {"begin", window.out(span.begin)},
                        {"end", window.out(span.end)},
                        {"count", span.last - span.first + 1}});
  }
  return lane;
}

Json mark_lane(const LaneWindow& window) {
  const auto& marks = window.input->marks;
  LaneMerger merger(window.pixel);
  size_t merged = 0;
  std::vector<size_t> counts;
  for (size_t at = 0; at < marks.size() && marks[at].begin < window.t1; ++at) {
    const bool moment = marks[at].end == MarkSeen::kMoment;
    const uint64_t end = moment ? marks[at].begin : marks[at].end;
    if (end < window.t0) continue;
    merger.add(marks[at].begin, end, at, moment);
    if (merger.spans().size() > counts.size()) counts.push_back(0);
    ++counts.back();
    ++merged;
  }
  Json lane = Json::array();
  for (size_t i = 0; i < merger.spans().size(); ++i) {
    const LaneSpan& span = merger.spans()[i];
    const MarkSeen& mark = marks[span.first];
    const bool moment = span.moment && span.first == span.last;
    lane.push_back(Json{{"text", cut(window.input->names[mark.text])},
                        {"domain", cut(window.input->names[mark.domain])},
                        {"begin", window.out(span.begin)},
                        {"end", moment ? Json(nullptr) : Json(window.out(span.end))},
                        {"count", counts[i]}});
  }
  return lane;
}

Json oom_lane(const LaneWindow& window) {
  Json lane = Json::array();
  uint64_t last = 0;
  for (const OomSeen& oom : window.input->ooms) {
    if (oom.time < window.t0 || oom.time >= window.t1) continue;
    if (!lane.empty() && oom.time < last + window.pixel) {
      lane.back()["count"] = lane.back()["count"].get<int>() + 1;
      continue;
    }
    last = oom.time;
    lane.push_back(Json{{"time", window.out(oom.time)},
                        {"device", device_name(oom.where.device)},
                        {"layer", std::string(layer_name(oom.where.layer))},
                        {"size", oom.size},
                        {"allocated", oom.allocated},
                        {"reserved", oom.reserved},
                        {"stack", oom.stack},
                        {"count", 1}});
  }
  return lane;
}

size_t input_of(const ViewState& state, Params& params) {
  const int64_t number = params.integer("input", 0, 1 << 20);
  if (static_cast<size_t>(number) < state.inputs.size()) return static_cast<size_t>(number);
  params.refuse("input", "no such input");
  return 0;
}

}  // namespace

Answer session_query(const ViewState& state, Params& /*params*/) {
  Json inputs = Json::array(), pools = Json::array();
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    inputs.push_back(input_json(state, i));
    begin = std::min(begin, inputs.back()["begin"].get<int64_t>());
    end = std::max(end, inputs.back()["end"].get<int64_t>());
  }
  for (size_t i = 0; i < state.pools.size(); ++i) pools.push_back(pool_json(state, i));
  return json_answer(Json{{"schema", 1},
                          {"tool", "msmemscope " MEMSCOPE_VERSION},
                          {"generation", state.generation},
                          {"growing", state.growing},
                          {"origin_ns", std::to_string(state.origin)},
                          {"begin", std::min(begin, end)},
                          {"end", std::max(end, std::min(begin, end) + 1)},
                          {"inputs", std::move(inputs)},
                          {"pools", std::move(pools)},
                          {"diagnosis", state.diagnosis},
                          {"opening", opening_json(state)}});
}

Answer steps_query(const ViewState& state, Params& params) {
  const size_t number = input_of(state, params);
  if (params.bad()) return {};
  const InputIndex& input = *state.inputs[number];
  const int64_t shift = state.shift(number);
  Json ends = Json::array();
  for (const uint64_t end : input.steps.ends) ends.push_back(static_cast<int64_t>(end) + shift);
  return json_answer(Json{
      {"source", std::string(steps_from_name(input.steps.from))},
      {"begin",
       input.steps.begin == 0 ? Json(0) : Json(static_cast<int64_t>(input.steps.begin) + shift)},
      {"ends", std::move(ends)},
      {"first_number", 1}});
}

Answer lanes_query(const ViewState& state, Params& params) {
  const size_t number = input_of(state, params);
  const int64_t t0 = params.time("t0"), t1 = params.time("t1");
  const int64_t width = params.integer("width", 1, 8192);
  if (t0 >= t1) params.refuse("t1", "t1 is after t0");
  if (params.bad()) return {};
  const InputIndex& input = *state.inputs[number];
  const int64_t shift = state.shift(number);
  LaneWindow window{.input = &input, .shift = shift};
  window.t0 = t0 <= shift ? 0 : static_cast<uint64_t>(t0 - shift);
  window.t1 = t1 <= shift ? 0 : static_cast<uint64_t>(t1 - shift);
  window.pixel = std::max<uint64_t>(1, static_cast<uint64_t>((t1 - t0) / width));
  Json gaps = Json::array(), windows = Json::array();
  const auto since = [&](uint64_t epoch) {
    return static_cast<int64_t>(epoch) - static_cast<int64_t>(state.origin);
  };
  for (const GapSeen& gap : input.side.gaps) {
    if (gaps.size() == 1000) break;
    if (since(gap.to) < t0 || since(gap.from) >= t1) continue;
    gaps.push_back(
        Json{{"begin", since(gap.from)}, {"end", since(gap.to)}, {"reason", cut(gap.reason)}});
  }
  for (const Span& span : input.windows) {
    if (windows.size() == 1000) break;
    windows.push_back(Json{{"begin", window.out(span.begin)}, {"end", window.out(span.end)}});
  }
  return json_answer(Json{{"steps", step_lane(window)},
                          {"phases", phase_lane(window)},
                          {"marks", mark_lane(window)},
                          {"ooms", oom_lane(window)},
                          {"gaps", std::move(gaps)},
                          {"windows", std::move(windows)}});
}

}  // namespace memscope::view
