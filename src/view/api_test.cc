#include "view/api.h"

#include <gtest/gtest.h>

#include "view/test_index.h"

namespace memscope::view {
namespace {

std::shared_ptr<ViewState> state_of(const std::shared_ptr<InputIndex>& input) {
  auto state = std::make_shared<ViewState>();
  state->generation = 1;
  state->origin = input->origin;
  state->inputs.push_back(input);
  for (size_t pool = 0; pool < input->pools.size(); ++pool) {
    state->pools.push_back({0, std::make_shared<const PoolViews>(input, pool)});
  }
  state->verdicts.resize(state->pools.size());
  return state;
}

Json ask(const std::shared_ptr<ViewState>& state, const char* name, std::string_view query = {}) {
  const Answer answer = Api::answer_of(state, name, Params::from_query(query));
  EXPECT_EQ(answer.status, 200) << answer.body;
  return Json::parse(answer.body);
}

// What the page must know before it draws: which lanes there are, and whose colour is red.
TEST(Api, TheSessionSaysWhatLanesThereAreAndWhoIsAccused) {
  IndexScript script;
  script.record(1, PhaseRecord{.phase = 1, .module = "net"});
  script.record(2, MarkRecord{.text = "here"});
  script.alloc(5, 0xA0, 100, script.line(7));
  script.alloc(6, 0xB0, 100, script.line(8));
  const auto input = script.build();
  const auto state = state_of(input);
  Json session = ask(state, "session");
  EXPECT_EQ(session["inputs"][0]["phases"], 1);
  EXPECT_EQ(session["inputs"][0]["marks"], 1);
  EXPECT_EQ(session["pools"][0]["accused"], Json::array());
  const uint32_t site = input->site_of_stack(input->pools[0]->stack[2]);
  state->verdicts[0].push_back({.verdict = 3, .name = "leak", .sites = {site}});
  session = ask(state, "session");
  EXPECT_EQ(session["pools"][0]["accused"],
            Json::parse(R"([{"site":)" + std::to_string(site) + R"(,"verdict":3}])"));
  EXPECT_EQ(session["opening"]["order"], "lifetime");
}

TEST(Api, ABlockTellsWhenItWasUsed) {
  IndexScript script;
  const auto access = [&](uint64_t time, uint64_t addr, uint64_t mode) {
    script.record(time, AccessRecord{.addr = addr, .mode = mode, .op = "aten::mm"});
  };
  script.alloc(0, 0xA0, 100);
  script.alloc(1, 0xB0, 100);
  access(10, 0xA0, 2);
  access(40, 0xA0, 1);
  script.free(60, 0xA0);
  const auto state = state_of(script.build());
  Json block = ask(state, "block", "pool=0&block=1");
  std::vector<std::string> kinds;
  for (const Json& event : block["events"]) kinds.push_back(event["kind"]);
  EXPECT_EQ(kinds, (std::vector<std::string>{"alloc", "write", "read", "free"}));
  // 10 ns until the first, 30 between the two, 20 until its end.
  EXPECT_EQ(block["accesses"],
            Json::parse(R"({"count":2,"first":10,"last":40,"longest_idle":30})"));
  block = ask(state, "block", "pool=0&block=2");
  EXPECT_EQ(block["accesses"]["count"], 0);
  EXPECT_EQ(block["accesses"]["first"], nullptr);
}

TEST(Api, OfManyAccessesTheFirstAndTheLastAreShown) {
  IndexScript script;
  script.alloc(0, 0xA0, 100);
  for (uint64_t i = 1; i <= 1000; ++i) {
    script.record(i, AccessRecord{.addr = 0xA0, .mode = 1, .op = "aten::mm"});
  }
  const auto state = state_of(script.build());
  const Json block = ask(state, "block", "pool=0&block=1");
  // The alloc, 100, how many more, 100.
  ASSERT_EQ(block["events"].size(), 202u);
  EXPECT_EQ(block["events"][100]["time"], 100);
  EXPECT_EQ(block["events"][101]["kind"], "more");
  EXPECT_EQ(block["events"][101]["text"], "800");
  EXPECT_EQ(block["events"][102]["time"], 901);
  EXPECT_EQ(block["events"][201]["time"], 1000);
  EXPECT_EQ(block["accesses"]["count"], 1000);
}

TEST(Api, WhereNobodyTellsOfAccessesNothingIsSaidOfThem) {
  IndexScript script;
  script.alloc(0, 0xA0, 100);
  const auto state = state_of(script.build());
  EXPECT_EQ(ask(state, "block", "pool=0&block=1")["accesses"], nullptr);
}

}  // namespace
}  // namespace memscope::view
