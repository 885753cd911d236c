#include "report/page.h"

#include <algorithm>
#include <array>
#include <set>

#include "report/page_answers.h"
#include "report/page_rows.h"
#include "report/page_session.h"
#include "report/page_tally.h"

namespace memscope {
namespace {

constexpr std::string_view kSlot = R"(<script type="application/json" id="msmemscope-report">)";
constexpr size_t kPools = 24;  // with pictures and tables, at most

struct Graphs {
  std::string order, colour;
};

class Plan {
 public:
  Plan(const PageRequest& request, size_t room, Redactor& redactor)
      : request_(request), answers_(request.state, room, redactor), room_(room) {}

  // False where not even the session has its place.
  bool record(Redactor& redactor);
  std::string json() const;
  PageJson left_out() const { return tally_.left_out(); }

 private:
  using Values = PageValues;
  static std::string text(int64_t number) { return std::to_string(number); }
  size_t share(double part) const { return static_cast<size_t>(static_cast<double>(room_) * part); }
  const view::ViewState& state() const { return *request_.state; }
  std::pair<std::string, std::string> window(size_t input) const;

  void keep_input(size_t input);
  void keep_lines(size_t input);
  void keep_pool(size_t pool, double part, bool first);
  std::vector<uint32_t> keep_graph(size_t pool, const Graphs& look, size_t most);
  void keep_sites(size_t pool, size_t most);
  void keep_comparison(size_t pool, size_t most);
  void keep_composition(size_t pool, size_t most, bool first);
  void keep_looks(size_t pool, size_t most);
  std::vector<size_t> pools_by_weight() const;

  const PageRequest& request_;
  PageAnswers answers_;
  size_t room_;
  PageTally tally_;
  PageJson session_;
  Graphs opening_{"alloc", "site"};
};

// All of an input's time, as the page asks for it (wholeTime in web/src/state/store.ts).
std::pair<std::string, std::string> Plan::window(size_t input) const {
  const int64_t shift = state().shift(input);
  const int64_t begin = static_cast<int64_t>(state().inputs[input]->begin) + shift;
  const int64_t end = static_cast<int64_t>(state().inputs[input]->end) + shift;
  return {text(begin), text(std::max(end, begin + 1000))};
}

void Plan::keep_lines(size_t input) {
  constexpr size_t kSeries = 32;  // as many as one question may have
  std::vector<std::string> series;
  const auto add = [&](const std::string& one) {
    if (series.size() < kSeries) series.push_back(one);
  };
  for (size_t pool = 0; pool < state().pools.size(); ++pool) {
    if (state().pools[pool].input != input) continue;
    add("allocated:" + std::to_string(pool));
    if (!state().pools[pool].views->pool().reserved.states.empty()) {
      add("reserved:" + std::to_string(pool));
    }
  }
  for (size_t i = 0; i < state().inputs[input]->counters.size(); ++i) {
    add("counter:" + std::to_string(input) + ":" + std::to_string(i));
  }
  if (series.empty()) return;
  std::string list;
  for (const std::string& one : series) list += (list.empty() ? "" : ",") + one;
  const auto [t0, t1] = window(input);
  for (const char* width : {"1600", "800", "400"}) {
    const PageQuestion question{
        "lines", {{"series", list}, {"t0", t0}, {"t1", t1}}, {{"width", width}}};
    const auto bytes = answers_.ask_bytes(question);
    if (!bytes || answers_.keep_bytes(question, *bytes, share(0.06))) return;
  }
}

void Plan::keep_input(size_t input) {
  const std::string number = std::to_string(input);
  answers_.keep({"steps", {{"input", number}}, {}}, share(0.05));
  const auto [t0, t1] = window(input);
  for (const char* width : {"1200", "400", "100"}) {
    const Values asked = {{"t0", t0}, {"t1", t1}, {"width", width}};
    if (answers_.keep({"lanes", {{"input", number}}, asked}, share(0.06))) break;
  }
  keep_lines(input);
}

std::vector<uint32_t> Plan::keep_graph(size_t pool, const Graphs& look, size_t most) {
  const auto [t0, t1] = window(state().pools[pool].input);
  for (uint32_t width = 1600; width >= 100; width /= 2) {
    const PageQuestion question{
        "graph",
        {{"pool", std::to_string(pool)}, {"order", look.order}, {"colour", look.colour}},
        {{"t0", t0},
         {"t1", t1},
         {"width", std::to_string(width)},
         {"height", std::to_string(std::max(width / 3, 150u))}}};
    const auto bytes = answers_.ask_bytes(question);
    if (!bytes) break;
    if (!answers_.keep_bytes(question, *bytes, most)) continue;
    tally_.one("pictures", true);
    return blocks_of_graph(*bytes);
  }
  tally_.one("pictures", false);
  return {};
}

// Those that hold most, and those that grow most: the page looks for a verdict's among these.
void Plan::keep_sites(size_t pool, size_t most) {
  PageQuestion question{"sites", {{"pool", std::to_string(pool)}}, {}};
  for (const char* limit : {"500", "100", "20"}) {
    question.asked = {{"limit", limit}};
    auto answer = answers_.ask(question);
    if (!answer) return;
    question.asked = {{"limit", "100"}, {"sort", "bytes_per_step:desc"}};
    auto growing = answers_.ask(question);
    std::set<uint64_t> there;
    for (const PageJson& row : (*answer)["rows"]) there.insert(row["site"].get<uint64_t>());
    for (PageJson& row : (*growing)["rows"]) {
      if (there.size() < 500 && there.insert(row["site"].get<uint64_t>()).second) {
        (*answer)["rows"].push_back(std::move(row));
      }
    }
    const uint64_t kept = (*answer)["rows"].size(), all = (*answer)["total"].get<uint64_t>();
    if (answers_.keep_answer(question, std::move(*answer), most)) {
      tally_.add("sites", kept, all);
      return;
    }
  }
}

// As the page opens it: step 3 with the last one (openingSides in web/src/panes/compare.tsx).
void Plan::keep_comparison(size_t pool, size_t most) {
  const view::InputIndex& input = state().pools[pool].views->input();
  const std::string number = std::to_string(pool);
  const uint32_t steps = input.steps.count();
  std::string a = number + "@peak", b;
  if (steps >= 2) {
    a = number + "@step:" + std::to_string(std::min(3u, steps - 1));
    b = number + "@step:" + std::to_string(steps);
  } else {
    const Where where = state().pools[pool].views->pool().where;
    for (size_t other = 0; other < state().pools.size() && b.empty(); ++other) {
      const Where there = state().pools[other].views->pool().where;
      if (other != pool && there.packed() == where.packed()) b = std::to_string(other) + "@peak";
    }
  }
  if (b.empty()) return;
  for (const char* by : {"site", "owner", "stack"}) {
    answers_.keep({"compare", {{"a", a}, {"b", b}, {"by", by}}, {{"limit", "300"}}}, most);
  }
}

void Plan::keep_composition(size_t pool, size_t most, bool first) {
  const std::string number = std::to_string(pool);
  const auto when = window(state().pools[pool].input);  // no binding: the lambda takes it
  const size_t before = answers_.used();
  const auto keep = [&](const char* by, const char* weight, const char* t) {
    const size_t used = answers_.used() - before;
    if (used >= most) return;
    Values recorded = {{"pool", number}, {"by", by}, {"weight", weight}};
    if (*t != '\0') recorded["t"] = t;
    for (const char* limit : {"1500", "300", "50"}) {
      const Values asked = {{"t0", when.first}, {"t1", when.second}, {"limit", limit}};
      if (answers_.keep({"composition", recorded, asked}, std::min(most - used, most / 4))) break;
    }
  };
  constexpr std::array<const char*, 6> kBy = {"stack", "owner",  "site",
                                              "size",  "thread", "stack_inverted"};
  for (const char* t : {"peak", "end"}) {
    for (const char* by : kBy) keep(by, "live", t);
  }
  if (!first) return;
  for (const char* by : kBy) keep(by, "leaked", "");
  for (const char* weight : {"allocs", "alloc_bytes", "byte_time"}) {
    for (const char* by : {"stack", "site", "owner"}) keep(by, weight, "");
  }
  for (const char* t : {"peak", "end"}) {
    for (const char* by : {"stack", "site", "owner"}) keep(by, "blocks", t);
  }
}

// The other orders, then the other colours of the opening one.
void Plan::keep_looks(size_t pool, size_t most) {
  const size_t each = most / 9;
  for (const char* order : {"alloc", "lifetime", "site", "owner"}) {
    if (order != opening_.order) keep_graph(pool, {order, opening_.colour}, each);
  }
  for (const char* colour : {"owner", "size", "age", "step", "thread", "verdict"}) {
    const PageQuestion legend{"legend", {{"pool", std::to_string(pool)}, {"colour", colour}}, {}};
    if (answers_.keep(legend, each)) keep_graph(pool, {opening_.order, colour}, each);
  }
}

void Plan::keep_pool(size_t pool, double part, bool first) {
  const std::string number = std::to_string(pool);
  const auto of = [&](double share_of_pool) { return share(part * share_of_pool); };
  answers_.keep({"legend", {{"pool", number}, {"colour", opening_.colour}}, {}}, of(0.02));
  const auto drawn = keep_graph(pool, opening_, of(0.2));
  keep_sites(pool, of(0.06));
  keep_rows(answers_, pool, drawn,
            {.rows = of(0.26),
             .stacks = of(0.08),
             .blocks = of(0.04),
             .sources = request_.redact.source ? 0 : of(0.08)},
            tally_);
  keep_comparison(pool, of(0.02));
  keep_composition(pool, of(0.1), first);
  answers_.keep({"pool_map", {{"pool", number}}, {{"t", "0"}}}, of(0.01));
  const Values few = {{"limit", "300"}};
  answers_.keep({"events", {{"pool", number}}, few}, of(0.02));
  if (first) keep_looks(pool, of(0.2));
}

// The opening one, those that a verdict accuses, then what held most.
std::vector<size_t> Plan::pools_by_weight() const {
  const PageJson opening = session_["opening"];
  std::vector<size_t> pools;
  for (const PageJson& pool : session_["pools"]) pools.push_back(pool["id"].get<size_t>());
  const auto weight = [&](size_t pool) {
    const bool first = opening.is_object() && opening["pool"] == pool;
    return std::tuple(first, !state().verdicts[pool].empty(),
                      state().pools[pool].views->pool().peak.bytes);
  };
  std::stable_sort(pools.begin(), pools.end(),
                   [&](size_t a, size_t b) { return weight(a) > weight(b); });
  return pools;
}

bool Plan::record(Redactor& redactor) {
  const auto whole = answers_.ask({"session", {}, {}});
  if (!whole) return false;
  redactor.learn(*whole);
  session_ = fit_session(*whole, share(0.25), tally_);
  if (!answers_.keep_answer({"session", {}, {}}, session_)) return false;
  if (session_["opening"].is_object()) opening_.order = session_["opening"].value("order", "alloc");

  const std::vector<size_t> pools = pools_by_weight();
  std::set<size_t> inputs;
  for (size_t i = 0; i < pools.size(); ++i) {
    if (request_.progress) {
      request_.progress(static_cast<double>(i) /
                        static_cast<double>(std::min(pools.size(), kPools)));
    }
    constexpr size_t kEnough = 40'000;  // below that nothing of use fits
    if (i == kPools || answers_.left() < kEnough) {
      tally_.add("pictures", 0, pools.size() - i);
      break;
    }
    if (inputs.insert(state().pools[pools[i]].input).second) {
      keep_input(state().pools[pools[i]].input);
    }
    // The first may take two thirds, the others their part of what it leaves.
    const double left = static_cast<double>(answers_.left()) / static_cast<double>(room_);
    const bool alone = pools.size() == 1;
    const double part = i == 0 ? (alone ? left : left * 0.66)
                               : left / static_cast<double>(std::min(pools.size(), kPools) - i);
    keep_pool(pools[i], part, i == 0);
  }
  return true;
}

std::string Plan::json() const {
  return answers_.json(PageJson{{"tool", "msmemscope " MEMSCOPE_VERSION},
                                {"left_out", tally_.left_out()},
                                {"redacted", request_.redact.names()}});
}

}  // namespace

Result<Page> make_page(const PageRequest& request) {
  const size_t slot = request.page.find(kSlot);
  if (slot == std::string_view::npos) {
    return Error{"it is no page of a report: it has no place for the answers"};
  }
  const size_t least = request.page.size() + PageRequest::kLeast;
  if (request.most < least) {
    return Error{"a report is " + std::to_string(least) + " bytes at least, and " +
                 std::to_string(request.most) + " are allowed"};
  }
  Redactor redactor(request.redact);
  // Half a kilobyte for the commas between the parts.
  Plan plan(request, request.most - request.page.size() - 512, redactor);
  if (!plan.record(redactor)) return Error{"there is nothing to report"};
  Page page;
  page.left_out = plan.left_out();
  const size_t at = slot + kSlot.size();
  page.text.reserve(request.most);
  page.text += request.page.substr(0, at);
  page.text += plan.json();
  page.text += request.page.substr(at);
  return page;
}

}  // namespace memscope
