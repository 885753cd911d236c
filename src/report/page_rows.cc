#include "report/page_rows.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "view/graph.h"
#include "view/rows.h"

namespace memscope {
namespace {

constexpr size_t kLargest = 20000, kDrawn = 10000, kAccused = 5000;  // rows, at most
constexpr size_t kFirst = 300;     // of each come before the rest of any
constexpr size_t kDetailed = 40;   // blocks with all that is known of them
constexpr size_t kTopSites = 100;  // whose lines are kept
constexpr uint64_t kAroundVerdict = 30, kAroundOther = 8;

std::string verdict_filter(int64_t verdict) {
  return R"([{"op":"verdict","value":)" + std::to_string(verdict) + "}]";
}

struct Accused {
  int64_t verdict = 0;
  std::vector<uint32_t> blocks;  // the newest first
  size_t all = 0;
};

class RowKeeper {
 public:
  RowKeeper(PageAnswers& answers, size_t pool, PageTally& tally)
      : answers_(answers), state_(answers.state()), number_(pool), tally_(tally) {
    const view::ViewState::Pool& entry = state_.pools[pool];
    input_number_ = entry.input;
    table_ = {.kind = view::RowKind::kBlocks,
              .input = &entry.views->input(),
              .pool = &entry.views->pool(),
              .shift = state_.shift(entry.input)};
  }

  void find(const std::vector<uint32_t>& drawn);
  void keep_rows(size_t most);
  void keep_verdicts();
  void keep_stacks(size_t most);
  void keep_blocks(size_t most);
  void keep_sources(size_t most);

 private:
  using Line = std::pair<std::string, int64_t>;

  void want(const std::vector<uint32_t>& blocks, size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, blocks.size()); ++i) {
      if (seen_.insert(blocks[i]).second) wanted_.push_back(blocks[i]);
    }
  }
  std::vector<uint32_t> sorted(const view::RowSet& set, view::Column by, size_t most) const {
    return view::page_of(table_, set.rows, {{by, true}}, 0, most);
  }
  std::vector<Line> lines_of_verdicts() const;
  std::vector<Line> lines_of_rows() const;

  PageAnswers& answers_;
  const view::ViewState& state_;
  size_t number_, input_number_ = 0;
  PageTally& tally_;
  view::RowTable table_;
  std::set<uint32_t> seen_;
  std::vector<uint32_t> wanted_;  // the first most
  std::vector<Accused> accused_;
};

void RowKeeper::find(const std::vector<uint32_t>& drawn) {
  const view::FilterContext context{.verdicts = &state_.verdicts[number_]};
  for (const view::VerdictBlocks& verdict : state_.verdicts[number_]) {
    auto filters = view::filters_from_json(table_, verdict_filter(verdict.verdict), context);
    if (!filters) continue;
    const view::RowSet set = view::filter_rows(table_, filters.value());
    accused_.push_back(
        {verdict.verdict, sorted(set, view::Column::kBegin, kAccused), set.rows.size()});
  }
  const view::RowSet all = view::filter_rows(table_, {});
  const std::vector<uint32_t> largest = sorted(all, view::Column::kSize, kLargest);
  for (const Accused& accused : accused_) want(accused.blocks, 0, kFirst);
  want(largest, 0, kFirst);
  want(drawn, 0, kDrawn);
  for (const Accused& accused : accused_) want(accused.blocks, kFirst, kAccused);
  want(largest, kFirst, kLargest);
}

void RowKeeper::keep_rows(size_t most) {
  // Rows are much alike: the size of the first ones tells how many there is room for; it is made
  // sure of below.
  std::vector<uint32_t> chosen = wanted_;
  for (;;) {
    std::sort(chosen.begin(), chosen.end());
    PageJson rows = PageJson::array();
    uint64_t bytes = 0;
    for (const uint32_t block : chosen) {
      rows.push_back(view::row_json(table_, block));
      bytes += table_.pool->size(block);
    }
    const bool kept = answers_.keep_answer({"blocks", {{"pool", std::to_string(number_)}}, {}},
                                           PageJson{{"total", chosen.size()},
                                                    {"all", table_.count()},
                                                    {"offset", 0},
                                                    {"columns", view::columns_json(table_.kind)},
                                                    {"rows", std::move(rows)},
                                                    {"sum", {{"size", bytes}}}},
                                           most);
    if (kept || wanted_.empty()) break;
    wanted_.resize(wanted_.size() * 3 / 4);
    chosen = wanted_;
  }
  seen_ = {wanted_.begin(), wanted_.end()};
  tally_.add("blocks", wanted_.size(), table_.count());
}

void RowKeeper::keep_verdicts() {
  const std::string pool = std::to_string(number_);
  for (const Accused& accused : accused_) {
    PageJson blocks = PageJson::array();
    for (const uint32_t block : accused.blocks) {
      if (seen_.contains(block)) blocks.push_back(block);
    }
    if (blocks.empty()) continue;
    const std::string newest = std::to_string(accused.blocks.front());
    answers_.keep_answer(
        {"blocks", {{"pool", pool}, {"where", verdict_filter(accused.verdict)}}, {}},
        PageJson{{"total", accused.all}, {"blocks", std::move(blocks)}});
    // Where the wedge of a leak ends, see showVerdict() in web/src/state/store.ts.
    answers_.keep(
        {"place",
         {{"pool", pool}, {"block", newest}, {"order", "lifetime"}},
         {{"t", std::to_string(static_cast<int64_t>(table_.input->end) + table_.shift)}}});
  }
}

void RowKeeper::keep_stacks(size_t most) {
  const size_t before = answers_.used();
  std::set<uint32_t> wanted;
  size_t kept = 0;
  for (const uint32_t block : wanted_) {
    const uint32_t stack = table_.pool->stack[block];
    if (stack == 0 || !wanted.insert(stack).second) continue;
    const size_t used = answers_.used() - before;
    kept += used < most && answers_.keep_stack(input_number_, stack, most - used) ? 1 : 0;
  }
  tally_.add("stacks", kept, wanted.size());
}

void RowKeeper::keep_blocks(size_t most) {
  const size_t before = answers_.used();
  for (size_t i = 0; i < std::min(kDetailed, wanted_.size()); ++i) {
    const size_t used = answers_.used() - before;
    if (used >= most) return;
    const PageQuestion question{
        "block", {{"pool", std::to_string(number_)}, {"block", std::to_string(wanted_[i])}}, {}};
    auto answer = answers_.ask(question);
    if (!answer) continue;
    if (answers_.has_stack(input_number_, table_.pool->stack[wanted_[i]])) answer->erase("stack");
    answers_.keep_answer(question, std::move(*answer), most - used);
  }
}

std::vector<RowKeeper::Line> RowKeeper::lines_of_verdicts() const {
  std::vector<Line> lines;
  const auto add = [&](const PageJson& frame) {
    if (!frame.is_object()) return;
    const PageJson file = frame.value("file", PageJson()), line = frame.value("line", PageJson());
    if (file.is_string() && line.is_number_integer()) {
      lines.emplace_back(file.get<std::string>(), line.get<int64_t>());
    }
  };
  if (!state_.diagnosis.is_object()) return lines;
  for (const char* list : {"verdicts", "suspects"}) {
    for (const PageJson& verdict : state_.diagnosis.value(list, PageJson::array())) {
      add(verdict.value("site", PageJson()));
      add(verdict.value("kept_at", PageJson()));
      for (const PageJson& share : verdict.value("sites", PageJson::array())) {
        add(share.value("site", PageJson()));
      }
    }
  }
  return lines;
}

// The user's own lines: the sites that hold most, then all on the stacks of the rows.
std::vector<RowKeeper::Line> RowKeeper::lines_of_rows() const {
  std::vector<Line> lines;
  const auto add = [&](const SiteFrame& frame) {
    if (frame.user && frame.file && frame.line) lines.emplace_back(*frame.file, *frame.line);
  };
  std::set<uint32_t> sites, stacks;
  for (const uint32_t block : wanted_) {
    const uint32_t site = table_.input->site_of_stack(table_.pool->stack[block]);
    if (sites.size() < kTopSites && site != 0 && sites.insert(site).second) {
      add(table_.input->site(site));
    }
  }
  constexpr size_t kMostStacks = 200, kMostFrames = 100;
  for (const uint32_t block : wanted_) {
    const uint32_t stack = table_.pool->stack[block];
    if (stacks.size() == kMostStacks) break;
    if (stack == 0 || !stacks.insert(stack).second) continue;
    for (const SiteFrame& frame : table_.input->describe_stack(stack, kMostFrames)) add(frame);
  }
  return lines;
}

void RowKeeper::keep_sources(size_t most) {
  const size_t before = answers_.used();
  std::set<Line> seen;
  const auto keep = [&](const std::vector<Line>& lines, uint64_t around) {
    for (const Line& line : lines) {
      if (!seen.insert(line).second) continue;
      const PageQuestion question{"source",
                                  {{"input", std::to_string(input_number_)},
                                   {"file", line.first},
                                   {"line", std::to_string(line.second)}},
                                  {{"around", std::to_string(around)}}};
      auto answer = answers_.ask(question);
      if (!answer) continue;  // the trace does not hold it either
      const size_t used = answers_.used() - before;
      tally_.one("sources",
                 used < most && answers_.keep_answer(question, std::move(*answer), most - used));
    }
  };
  keep(lines_of_verdicts(), kAroundVerdict);
  keep(lines_of_rows(), kAroundOther);
}

}  // namespace

void keep_rows(PageAnswers& answers, size_t pool, const std::vector<uint32_t>& drawn,
               const PageRoom& room, PageTally& tally) {
  RowKeeper keeper(answers, pool, tally);
  keeper.find(drawn);
  keeper.keep_rows(room.rows);
  keeper.keep_verdicts();
  keeper.keep_stacks(room.stacks);
  keeper.keep_blocks(room.blocks);
  if (room.sources != 0) keeper.keep_sources(room.sources);
}

std::vector<uint32_t> blocks_of_graph(std::string_view graph) {
  // The layout of docs/view-api.md, section 4.
  constexpr size_t kHead = 64;
  if (graph.size() < kHead) return {};
  uint32_t slices = 0, items = 0;
  std::memcpy(&slices, graph.data() + 40, sizeof slices);
  std::memcpy(&items, graph.data() + 44, sizeof items);
  const auto pad8 = [](size_t bytes) { return (bytes + 7) / 8 * 8; };
  const size_t at = kHead + size_t{slices} * 6 * 8 + pad8(size_t{slices} * 4) +
                    pad8((size_t{slices} + 1) * 4) + size_t{items} * 8;
  if (graph.size() < at + size_t{items} * 4) return {};
  std::set<uint32_t> blocks;
  for (size_t i = 0; i < items; ++i) {
    uint32_t block = 0;
    std::memcpy(&block, graph.data() + at + i * 4, sizeof block);
    if (block != view::kMerged) blocks.insert(block);
  }
  return {blocks.begin(), blocks.end()};
}

}  // namespace memscope
