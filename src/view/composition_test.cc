#include "view/composition.h"

#include <gtest/gtest.h>

#include "view/site_table.h"
#include "view/test_index.h"

namespace memscope::view {
namespace {

const CompositionNode* find(const Composition& tree, std::string_view name) {
  for (const CompositionNode& node : tree.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

// What a node and all below it are said to weigh is what they weigh.
void expect_sums(const Composition& tree) {
  std::vector<int64_t> value(tree.nodes.size()), blocks(tree.nodes.size());
  for (size_t i = tree.nodes.size(); i-- > 0;) {
    value[i] += tree.nodes[i].self;
    EXPECT_EQ(value[i], tree.nodes[i].value) << tree.nodes[i].name;
    if (i == 0) continue;
    ASSERT_LT(tree.nodes[i].parent, static_cast<int64_t>(i));
    value[static_cast<size_t>(tree.nodes[i].parent)] += value[i];
  }
}

TEST(Composition, EveryTreeWeighsWhatIsAlive) {
  const auto input = random_index(3, 5000);
  const PoolIndex& pool = *input->pools[0];
  for (const ComposeBy by : {ComposeBy::kOwner, ComposeBy::kStack, ComposeBy::kStackInverted,
                             ComposeBy::kSite, ComposeBy::kThread, ComposeBy::kSize}) {
    for (const size_t limit : {size_t{4000}, size_t{5}}) {
      const Composition tree =
          compose(*input, pool, {.by = by, .state = pool.peak.state, .limit = limit});
      ASSERT_FALSE(tree.nodes.empty());
      EXPECT_EQ(tree.total, static_cast<int64_t>(pool.peak.bytes));
      EXPECT_EQ(tree.nodes[0].value, tree.total);
      expect_sums(tree);
      EXPECT_LE(tree.nodes.size(), limit * 2 + 2);  // each with a rest of its own
    }
  }
}

TEST(Composition, OwnersAreLevels) {
  IndexScript script;
  const std::array<std::pair<uint64_t, const char*>, 4> blocks = {
      {{100, "PTA@model@weight"}, {30, "PTA@model@grad"}, {7, "PTA@ops"}, {5, ""}}};
  for (uint64_t i = 0; i < blocks.size(); ++i) {
    script.alloc(i, 0x1000 * (i + 1), blocks[i].first);
    if (*blocks[i].second == '\0') continue;
    script.record(i, OwnerRecord{.addr = 0x1000 * (i + 1), .owner = blocks[i].second});
  }
  const auto input = script.build();
  const Composition tree = compose(*input, *input->pools[0], {.state = 4});
  // all 142: PTA 137: model 130: weight 100, grad 30; ops 7; and 5 of nobody.
  ASSERT_EQ(tree.nodes.size(), 7u);
  EXPECT_EQ(tree.nodes[0].value, 142);
  EXPECT_EQ(tree.nodes[1].name, "PTA");
  EXPECT_EQ(tree.nodes[1].value, 137);
  EXPECT_EQ(find(tree, "model")->value, 130);
  EXPECT_EQ(find(tree, "model")->self, 0);
  EXPECT_EQ(find(tree, "model")->blocks, 2);
  EXPECT_EQ(find(tree, "weight")->depth, 3u);
  EXPECT_EQ(find(tree, "(no owner)")->value, 5);
  // A subtree by its id.
  const Composition below =
      compose(*input, *input->pools[0], {.state = 4, .root = find(tree, "model")->id});
  ASSERT_EQ(below.nodes.size(), 3u);
  EXPECT_EQ(below.nodes[0].name, "model");
  EXPECT_EQ(below.total, 142);
  EXPECT_TRUE(compose(*input, *input->pools[0], {.state = 4, .root = 12345}).nodes.empty());
}

TEST(Composition, TheDifferenceOfTwoInstants) {
  IndexScript script;
  const StackId stays = script.line(1, "stays"), grows = script.line(2, "grows"),
                goes = script.line(3, "goes");
  script.alloc(0, 0xA000, 100, stays);
  script.alloc(1, 0xB000, 40, goes);
  script.alloc(2, 0xC000, 10, grows);
  script.alloc(3, 0xD000, 15, grows);
  script.free(4, 0xB000);
  const auto input = script.build();
  // From state 3 to state 5: grows +15, goes -40, stays 0.
  const Composition tree = compose(
      *input, *input->pools[0], {.by = ComposeBy::kStackInverted, .state = 5, .base = uint32_t{3}});
  EXPECT_EQ(find(tree, "grows")->value, 15);
  EXPECT_EQ(find(tree, "grows")->base, 10);
  EXPECT_EQ(find(tree, "grows")->blocks, 1);
  EXPECT_EQ(find(tree, "goes")->value, -40);
  EXPECT_EQ(find(tree, "stays")->value, 0);
  EXPECT_EQ(tree.total, 125);
  EXPECT_EQ(tree.base_total, 150);
}

TEST(Composition, WeightsOverAWindow) {
  IndexScript script;
  const StackId line = script.line(1);
  script.alloc(0, 0xA000, 1000, line);
  script.alloc(2'000'000'000, 0xB000, 10, line);
  script.free(3'000'000'000, 0xB000);
  script.alloc(4'000'000'000, 0xC000, 7, line);
  const auto input = script.build();
  const auto total = [&](Weight weight, uint64_t t0, uint64_t t1) {
    return compose(*input, *input->pools[0],
                   {.by = ComposeBy::kSite, .weight = weight, .t0 = t0, .t1 = t1})
        .total;
  };
  EXPECT_EQ(total(Weight::kAllocs, 1, 5'000'000'000), 2);
  EXPECT_EQ(total(Weight::kAllocBytes, 1, 5'000'000'000), 17);
  // 1,000 B for the window's 2 s, 10 B for one of them.
  EXPECT_EQ(total(Weight::kByteTime, 2'000'000'000, 4'000'000'000), 2010);
  EXPECT_EQ(compose(*input, *input->pools[0],
                    {.by = ComposeBy::kSite, .weight = Weight::kLeaked, .leaked_after = 1})
                .total,
            7);
}

TEST(SiteTable, PeakGrowthAndSparklineOfALine) {
  IndexScript script;
  const StackId leak = script.line(10, "leak"), churn = script.line(20, "churn");
  for (uint64_t step = 0; step < 20; ++step) {
    script.alloc(step * 1000 + 10, 0x10'0000 + step * 4096, 100, leak);
    script.alloc(step * 1000 + 20, 0x10, 7000, churn);
    script.free(step * 1000 + 520, 0x10);
    script.step(step * 1000 + 999);
  }
  const auto input = script.build();
  const SiteHistories histories = site_histories(*input, *input->pools[0], 2);
  ASSERT_EQ(histories.sites.size(), 2u);
  const auto of = [&](StackId stack) -> const SiteHistory& {
    const uint32_t site = input->site_of_stack(stack.value);
    return histories.of_site[histories.sites[0] == site ? 0 : 1];
  };
  EXPECT_EQ(of(leak).peak, 2000u);
  EXPECT_EQ(of(leak).peak_time, 19'000u);  // on the clock that began with the first event, at 10
  EXPECT_EQ(of(leak).freed, 0u);
  ASSERT_TRUE(of(leak).bytes_per_step);
  EXPECT_NEAR(*of(leak).bytes_per_step, 100, 1e-6);  // a block of 100 B a step
  EXPECT_EQ(of(leak).spark.back(), 2000);
  EXPECT_NEAR(of(leak).spark[31], 1000, 100);  // half way
  EXPECT_EQ(of(churn).peak, 7000u);
  EXPECT_EQ(of(churn).lifetimes / static_cast<double>(of(churn).freed), 500);
  EXPECT_NEAR(*of(churn).bytes_per_step, 0, 1e-6);
  const auto now = sites_now(*input, *input->pools[0], 5000, 10'000);
  const SiteNow& leaking = now[input->site_of_stack(leak.value)];
  EXPECT_EQ(leaking.allocs, 5u);
  EXPECT_EQ(leaking.live_blocks, 11u);  // born at 0, 1000, ..., 10000
}

}  // namespace
}  // namespace memscope::view
