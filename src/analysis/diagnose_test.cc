#include "analysis/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace memscope {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kMs = 1'000'000;
constexpr const char* kScript = "/me/train.py";
constexpr const char* kText =
    "store = []\n"            // 1
    "other = []\n"            // 2
    "def leak():\n"           // 3
    "    x = torch.randn(\n"  // 4
    "        256, 1024)\n"    // 5
    "    store.append(x)\n"   // 6
    "def train():\n"          // 7
    "    y = net(batch)\n"    // 8
    "    z = loss(y)\n"       // 9
    "    other.append(z)\n";  // 10

// A program written by hand: it allocates at lines of kScript, frees, steps.
class Program {
 public:
  explicit Program(uint64_t step_ns = 10 * kMs, bool steps = true)
      : step_ns_(step_ns), steps_(steps) {
    source.add_record(1, SourceRecord{.path = kScript, .text = kText});
  }

  // Called from <module>.
  StackId at(uint32_t line, const char* function, const char* file = kScript, uint32_t caller = 20,
             uint32_t first_line = 0) {
    StackTable& stacks = source.stacks();
    StringTable& strings = source.strings();
    const auto frame = [&](const char* f, const char* name, uint32_t l, uint32_t first) {
      return stacks.intern_frame({.file = strings.intern(f),
                                  .function = strings.intern(name),
                                  .line = l,
                                  .first_line = first});
    };
    const StackId outer = stacks.intern({}, frame(kScript, "<module>", caller, 1));
    return stacks.intern(outer, frame(file, function, line, first_line));
  }
  uint64_t alloc(uint64_t size, StackId stack, Where where = kCpu) {
    const uint64_t addr = next_addr_;
    next_addr_ += (size + 4095) / 4096 * 4096;
    alloc_at(addr, size, stack, where);
    return addr;
  }
  void alloc_at(uint64_t addr, uint64_t size, StackId stack, Where where = kCpu) {
    source.add({.kind = EventKind::kAlloc,
                .where = where,
                .thread = ThreadId(1),
                .stack = stack,
                .time = ++time_,
                .addr = addr,
                .size = size});
  }
  void free(uint64_t addr, Where where = kCpu) {
    source.add({.kind = EventKind::kFree,
                .where = where,
                .thread = ThreadId(1),
                .time = ++time_,
                .addr = addr});
  }
  void step() {
    time_ = ++steps_done_ * step_ns_;
    if (steps_) {
      source.add_record(time_, StepRecord{.source = static_cast<uint64_t>(StepSource::kApi),
                                          .index = steps_done_});
    }
  }
  void window(uint64_t action) {
    source.add({.kind = EventKind::kWindow, .time = ++time_, .size = action});
  }
  void kept(uint64_t addr, const char* list, uint64_t line, const char* cause = "") {
    const std::string path = std::string(R"([{"kind":"global","name":")") + list +
                             R"(","type":"list","len":300},{"kind":"item","name":"7"}])";
    source.add_record(++time_, HolderRecord{.addr = addr,
                                            .root = "module",
                                            .path = path,
                                            .file = kScript,
                                            .line = line,
                                            .function = "f",
                                            .text = std::string("__main__.") + list + "[7]",
                                            .cause = cause});
  }

  void owned(uint64_t addr, const char* owner, const char* label) {
    source.add_record(++time_, OwnerRecord{.addr = addr, .owner = owner, .label = label});
  }
  // As `kept`, by an autograd graph that the list's element leads to.
  void in_graph(uint64_t addr, const char* list, uint64_t line) {
    const std::string path =
        std::string(R"([{"kind":"global","name":")") + list +
        R"(","type":"list","len":300},{"kind":"item","name":"*"},{"kind":"ref","name":"grad_fn"}])";
    source.add_record(++time_, HolderRecord{.addr = addr,
                                            .root = "module",
                                            .path = path,
                                            .file = kScript,
                                            .line = line,
                                            .function = "f",
                                            .cause = "retained_graph"});
  }

  DiagnoseInput input(const DiagnoseOptions& options = {}) {
    source.rewind();
    return {{.path = "run"},
            replay(source, replay_options(options)),
            &source.stacks(),
            &source.strings()};
  }
  DiagnoseResult run(const DiagnoseOptions& options = {}) {
    std::vector<DiagnoseInput> inputs;
    inputs.push_back(input(options));
    return diagnose(inputs, options);
  }
  Diagnosis diagnosis(const DiagnoseOptions& options = {}) { return run(options).diagnosis; }

  VectorSource source;

 private:
  uint64_t step_ns_;
  bool steps_;
  uint64_t time_ = 1, steps_done_ = 0, next_addr_ = 1 << 20;
};

// Tensors that come and go in every program.
void churn(Program& p, uint64_t step) {
  const StackId stack = p.at(8, "train");
  const uint64_t a = p.alloc((1 + step * 7 % 5) * kMiB, stack), b = p.alloc(64 * kKiB, stack);
  p.free(b);
  p.free(a);
}

void expect_none(const Diagnosis& d) {
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "none");
  EXPECT_EQ(d.verdicts[0].bytes_total, 0);
  EXPECT_FALSE(d.verdicts[0].site);
  EXPECT_TRUE(d.verdicts[0].evidence.contains("steps"));
  EXPECT_FALSE(d.verdicts[0].advice.empty());
}

// 300 steps. leak(): 1 MiB a step at lines 4..5, kept by line 6. The first two steps warm up.
Program demo() {
  Program p;
  std::vector<uint64_t> leaked;
  for (uint64_t s = 1; s <= 300; ++s) {
    churn(p, s);
    if (s == 1) p.alloc(50 * kMiB, p.at(9, "train"));   // optimizer state
    if (s <= 20) p.alloc(2 * kMiB, p.at(10, "train"));  // a cache of 20 entries
    leaked.push_back(p.alloc(kMiB, p.at(s % 2 == 0 ? 4 : 5, "leak")));
    p.step();
  }
  p.window(2);
  for (uint64_t i = 50; i < 60; ++i) p.kept(leaked[i], "store", 6);
  return p;
}

TEST(Diagnose, TheDemo) {
  const Diagnosis d = demo().diagnosis();
  EXPECT_EQ(d.steps.source, "api");
  EXPECT_EQ(d.steps.count, 300);
  // The total is on its line from step 20 on, when the cache is full.
  EXPECT_EQ(d.steps.warmup_until, 20);
  ASSERT_THAT(d.verdicts, SizeIs(1));
  const Verdict& v = d.verdicts[0];
  EXPECT_EQ(v.cause, "leak");
  EXPECT_EQ(v.layer, "tensor");
  EXPECT_EQ(v.device, "cpu");
  EXPECT_EQ(v.bytes_total, 280 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(v.blocks, 280);
  EXPECT_DOUBLE_EQ(*v.bytes_per_step, kMiB);
  EXPECT_FALSE(v.bytes_per_second);
  EXPECT_EQ(v.first_step, 21);
  EXPECT_EQ(v.last_step, 300);
  ASSERT_TRUE(v.site);
  EXPECT_EQ(v.site->file, kScript);
  EXPECT_EQ(v.site->line, 4);
  EXPECT_EQ(v.site->end_line, 5);
  EXPECT_EQ(v.site->text, "x = torch.randn(256, 1024)");
  EXPECT_TRUE(v.site->user);
  ASSERT_TRUE(v.kept_at);
  EXPECT_EQ(v.kept_at->line, 6);
  EXPECT_EQ(v.kept_at->text, "store.append(x)");
  ASSERT_THAT(v.holders, SizeIs(1));
  EXPECT_EQ(v.holders[0].text, "__main__.store");
  EXPECT_EQ(v.holders[0].blocks, 10);
  EXPECT_GT(v.confidence, 0.9);
  EXPECT_THAT(v.sites, SizeIs(1)) << "two lines of one statement";
  ASSERT_THAT(d.suspect_groups, SizeIs(1));
  const SuspectGroup& group = d.suspect_groups[0];
  EXPECT_EQ(group.site->line, 4);
  EXPECT_THAT(group.stack, SizeIs(2));
  EXPECT_THAT(group.blocks, SizeIs(64)) << "of 280";
  EXPECT_LT(group.blocks.front().birth, group.blocks.back().birth);
  EXPECT_THAT(v.advice, ::testing::HasSubstr("train.py:6"));
  ASSERT_THAT(d.layers, SizeIs(1));
  EXPECT_NEAR(*d.layers[0].bytes_per_step, kMiB, 1);
}

TEST(Diagnose, IdsAreStable) {
  EXPECT_EQ(demo().diagnosis().verdicts[0].id, demo().diagnosis().verdicts[0].id);
}

TEST(Diagnose, PoolReportsListTheLeakedBlocks) {
  const DiagnoseResult result = demo().run();
  ASSERT_THAT(result.pools, SizeIs(1));
  EXPECT_EQ(result.pools[0].leaked_blocks, 280);
  EXPECT_THAT(result.pools[0].leaked, SizeIs(280));
  EXPECT_EQ(result.pools[0].leaked[0].step, 21u);
  EXPECT_THAT(result.pools[0].steps, SizeIs(150)) << "300 steps in buckets of 2";
  EXPECT_GT(result.pools[0].max_gap.ratio, result.pools[0].min_gap.ratio);
}

TEST(Diagnose, WithoutHoldersKeptAtIsNull) {
  Program p;
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "leak");
  EXPECT_FALSE(d.verdicts[0].kept_at);
  EXPECT_GE(d.verdicts[0].confidence, 0.5);
}

TEST(Diagnose, TooFewStepsGiveNone) {
  Program p;  // 9 steps: 2 of warm-up, 7 to judge
  for (uint64_t s = 1; s <= 9; ++s) {
    p.alloc(10 * kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  expect_none(d);
  EXPECT_EQ(std::get<int64_t>(d.verdicts[0].evidence.at("steps")), 7);
}

TEST(Diagnose, TenStepsAreEnough) {
  Program p;
  for (uint64_t s = 1; s <= 10; ++s) {
    p.alloc(10 * kMiB, p.at(4, "leak"));
    p.step();
  }
  EXPECT_EQ(p.diagnosis().verdicts[0].cause, "leak");
}

TEST(Diagnose, LessThanAMebibyteIsNone) {
  Program p;
  for (uint64_t s = 1; s <= 100; ++s) {
    churn(p, s);
    p.alloc(10 * kKiB, p.at(4, "leak"));  // 980 KiB after warm-up
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  expect_none(d);
  // 1 MiB over 98 steps.
  EXPECT_DOUBLE_EQ(std::get<double>(d.verdicts[0].evidence.at("detection_limit_bytes_per_step")),
                   static_cast<double>(kMiB) / 98);
}

TEST(Diagnose, HealthyChurnIsNone) {
  Program p;
  p.alloc(500 * kMiB, p.at(2, "<module>"));
  for (uint64_t s = 1; s <= 100; ++s) {
    churn(p, s);
    p.step();
  }
  for (int i = 0; i < 20; ++i) p.alloc(50 * kMiB, p.at(9, "train"));  // after the last step
  expect_none(p.diagnosis());
}

TEST(Diagnose, ARingIsNone) {
  Program p;
  std::vector<uint64_t> ring;
  for (uint64_t s = 1; s <= 100; ++s) {
    ring.push_back(p.alloc(kMiB, p.at(4, "leak")));
    if (s > 40) p.free(ring[s - 41]);
    p.step();
  }
  expect_none(p.diagnosis());
}

TEST(Diagnose, OneGrowingBlock) {
  Program p;  // x = torch.cat([x, row]): the new block is there before the old one goes
  uint64_t x = p.alloc(kMiB, p.at(8, "train"));
  for (uint64_t s = 1; s <= 100; ++s) {
    const uint64_t larger = p.alloc((s + 1) * kMiB, p.at(8, "train"));
    p.free(x);
    x = larger;
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "leak");
  EXPECT_NEAR(*d.verdicts[0].bytes_per_step, kMiB, 0.02 * kMiB);
  EXPECT_EQ(d.verdicts[0].blocks, 1);
  EXPECT_EQ(d.verdicts[0].bytes_total, 101 * static_cast<int64_t>(kMiB));
}

TEST(Diagnose, ALeakInALineOfHealthyChurn) {
  Program p;  // line 8 allocates through two callers; one of the stacks leaks
  const StackId leaking = p.at(8, "train");
  const StackId healthy =
      p.source.stacks().intern(p.at(9, "train"), p.source.stacks().innermost(leaking));
  std::mt19937_64 random(1);
  uint64_t before = 0;
  for (uint64_t s = 1; s <= 100; ++s) {
    p.alloc(kMiB, leaking);
    if (before != 0) p.free(before);
    before = p.alloc((1 + random() % 50) * kMiB, healthy);
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].bytes_total, 98 * static_cast<int64_t>(kMiB)) << "of its stack alone";
}

TEST(Diagnose, ALineCalledFromTwoPhasesIsOneLeak) {
  // for ...: leak()   # 60 steps
  // for ...: leak()   # 60 more: its stacks begin where the others end
  Program p;
  const StackId first = p.at(4, "leak"), second = p.at(4, "leak", kScript, 30);
  for (uint64_t s = 1; s <= 120; ++s) {
    p.alloc(64 * kKiB, s <= 60 ? first : second);
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].blocks, 118);  // steps 3 to 120
  EXPECT_EQ(d.verdicts[0].first_step, 3);
  EXPECT_DOUBLE_EQ(*d.verdicts[0].bytes_per_step, 64 * kKiB);
}

TEST(Diagnose, TwoIndependentLeaksAreTwoVerdicts) {
  Program p;
  std::vector<uint64_t> a, b;
  for (uint64_t s = 1; s <= 60; ++s) {
    a.push_back(p.alloc(2 * kMiB, p.at(4, "leak")));
    b.push_back(p.alloc(kMiB, p.at(9, "train")));
    p.step();
  }
  EXPECT_THAT(p.diagnosis().verdicts, SizeIs(2)) << "in two functions, no holder known";
  for (int i = 20; i < 30; ++i) {
    p.kept(a[i], "store", 6);
    p.kept(b[i], "other", 10);
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(2));
  EXPECT_EQ(d.verdicts[0].site->line, 4) << "the larger first";
  EXPECT_EQ(d.verdicts[0].kept_at->line, 6);
  EXPECT_EQ(d.verdicts[1].site->line, 9);
  EXPECT_EQ(d.verdicts[1].kept_at->line, 10);
}

TEST(Diagnose, SeveralSitesInOneListAreOneVerdict) {
  Program p;
  std::vector<uint64_t> a, b;
  for (uint64_t s = 1; s <= 60; ++s) {
    a.push_back(p.alloc(2 * kMiB, p.at(4, "leak")));
    if (s % 3 == 0) b.push_back(p.alloc(kMiB, p.at(9, "train")));
    p.step();
  }
  for (int i = 5; i < 15; ++i) {
    p.kept(a[i], "store", 6);
    p.kept(b[i], "store", 10);
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_THAT(d.verdicts[0].sites, SizeIs(2));
  // Steps 3..60: 58 blocks of 2 MiB, and 20 of 1 MiB.
  EXPECT_EQ(d.verdicts[0].blocks, 78);
  EXPECT_EQ(d.verdicts[0].bytes_total, 136 * static_cast<int64_t>(kMiB));
}

TEST(Diagnose, WhatAGraphKeepsJoinsItsRoot) {
  Program p;  // losses.append(loss): the loss is held by the list, activations by the graph
  std::vector<uint64_t> losses;
  for (uint64_t s = 1; s <= 60; ++s) {
    p.alloc(3 * kMiB, p.at(40, "forward"));
    p.alloc(2 * kMiB, p.at(41, "forward"));
    losses.push_back(p.alloc(64 * kKiB, p.at(9, "train")));
    p.step();
  }
  for (int i = 5; i < 15; ++i) p.kept(losses[i], "other", 10, "retained_graph");
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1)) << "what C++ alone keeps has no holder";
  EXPECT_EQ(d.verdicts[0].cause, "retained_graph") << "proven by the walk";
  EXPECT_EQ(d.verdicts[0].site->line, 9) << "the line that made the held root";
  EXPECT_EQ(d.verdicts[0].kept_at->line, 10);
  EXPECT_THAT(d.verdicts[0].sites, SizeIs(3));
}

TEST(Diagnose, TheSiteOfAGraphIsItsRootHoweverSmall) {
  Program p;  // a loss of 4 bytes a step; its graph keeps 3 MiB of forward's
  std::vector<uint64_t> losses, hidden;
  for (uint64_t s = 1; s <= 60; ++s) {
    hidden.push_back(p.alloc(3 * kMiB, p.at(40, "forward")));
    losses.push_back(p.alloc(4, p.at(9, "train")));
    p.step();
  }
  EXPECT_THAT(p.diagnosis().suspect_groups, SizeIs(2)) << "the walk is asked about both";
  for (int i = 5; i < 15; ++i) {
    p.kept(losses[i], "other", 10, "retained_graph");
    p.in_graph(hidden[i], "other", 10);
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "retained_graph");
  EXPECT_EQ(d.verdicts[0].site->line, 9);
  EXPECT_EQ(d.verdicts[0].kept_at->line, 10);
  // Steps 3 to 60: all blocks of the graphs.
  EXPECT_EQ(d.verdicts[0].bytes_total, 58 * static_cast<int64_t>(3 * kMiB + 4));
}

TEST(Diagnose, AKeptRootWhoseGraphKeepsNothingIsALeak) {
  Program p;  // outputs.append(model(x)) after backward(): the graph's own memory is gone
  std::vector<uint64_t> outputs;
  for (uint64_t s = 1; s <= 60; ++s) {
    outputs.push_back(p.alloc(kMiB, p.at(9, "train")));
    p.step();
  }
  for (int i = 5; i < 15; ++i) p.kept(outputs[i], "other", 10, "retained_graph");
  EXPECT_EQ(p.diagnosis().verdicts[0].cause, "leak");
}

TEST(Diagnose, TheMostSpecificProvenCauseOfEnoughBytes) {
  Program p;
  std::vector<uint64_t> cached, cyclic;
  for (uint64_t s = 1; s <= 60; ++s) {
    cached.push_back(p.alloc(2 * kMiB, p.at(4, "leak")));
    cyclic.push_back(p.alloc(kMiB, p.at(9, "train")));
    p.step();
  }
  for (int i = 5; i < 15; ++i) {
    p.kept(cached[i], "store", 6, "unbounded_cache");
    p.kept(cyclic[i], "other", 10, "cycle");
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(2));
  EXPECT_EQ(d.verdicts[0].cause, "unbounded_cache");
  EXPECT_EQ(d.verdicts[1].cause, "cycle");
}

TEST(Diagnose, WhatHasABoundIsASuspectOnly) {
  Program p;  // deque(maxlen=10000): full some day
  std::vector<uint64_t> kept;
  for (uint64_t s = 1; s <= 60; ++s) {
    kept.push_back(p.alloc(kMiB, p.at(4, "leak")));
    p.step();
  }
  for (int i = 5; i < 15; ++i) p.kept(kept[i], "store", 6, "none");
  const Diagnosis d = p.diagnosis();
  expect_none(d);
  ASSERT_THAT(d.suspects, SizeIs(1));
  EXPECT_EQ(d.suspects[0].cause, "leak");
  EXPECT_TRUE(std::get<bool>(d.suspects[0].evidence.at("bounded")));
  EXPECT_THAT(d.suspects[0].advice, ::testing::HasSubstr("store has a bound"));
}

TEST(Diagnose, TwoSmallLeaksThatShareOnlyTheModuleStayApart) {
  // In the same steps, 0.6 MiB each, called from <module>: neither is enough for a verdict.
  Program p;
  std::vector<uint64_t> a, b;
  for (uint64_t s = 1; s <= 60; ++s) {
    a.push_back(p.alloc(11 * kKiB, p.at(4, "leak")));
    b.push_back(p.alloc(11 * kKiB, p.at(40, "collect", "/me/other.py")));
    p.step();
  }
  expect_none(p.diagnosis());
  EXPECT_THAT(p.diagnosis().suspect_groups, SizeIs(2)) << "but the walk is asked about them";
  p.kept(a[5], "store", 6);
  expect_none(p.diagnosis());  // one's holder says nothing about the other
  for (int i = 5; i < 15; ++i) {
    p.kept(a[i], "store", 6);
    p.kept(b[i], "store", 6);
  }
  const Diagnosis d = p.diagnosis();  // one list: 1.2 MiB of one cause
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].blocks, 2 * 58);
}

TEST(Diagnose, TwoLeaksOfTheModulesOwnCodeStayApart) {
  Program p;
  for (uint64_t s = 1; s <= 60; ++s) {
    p.alloc(2 * kMiB, p.at(8, "<module>"));
    p.alloc(kMiB, p.at(9, "<module>"));
    p.step();
  }
  EXPECT_THAT(p.diagnosis().verdicts, SizeIs(2)) << "all of a script is in <module>";
}

TEST(Diagnose, WhatNobodyNamesDoesNotTieTwoLeaksTogether) {
  // step() stores x in `store` and y in `other`; a third line of it is too small to be judged.
  constexpr const char* kFile = "/me/step.py";
  Program p;
  p.source.add_record(1, SourceRecord{.path = kFile,
                                      .text = "def step():\n"          // 1
                                              "    x = f()\n"          // 2
                                              "    store.append(x)\n"  // 3
                                              "    y = g()\n"          // 4
                                              "    other.append(y)\n"  // 5
                                              "    norm(x)\n"});       // 6
  for (uint64_t s = 1; s <= 60; ++s) {
    p.alloc(2 * kMiB, p.at(2, "step", kFile, 20, 1));
    p.alloc(kMiB, p.at(4, "step", kFile, 20, 1));
    p.alloc(4, p.at(6, "step", kFile, 20, 1));
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(2));
  EXPECT_EQ(d.verdicts[0].site->line, 2);
  EXPECT_EQ(d.verdicts[1].site->line, 4);
}

TEST(Diagnose, KeptAtIsInferredWhereTheListDiedWithItsFunction) {
  // leak() stores at line 6 what it makes at 4; all is freed before the walk.
  Program p;
  p.window(1);
  std::vector<uint64_t> blocks;
  for (uint64_t s = 1; s <= 60; ++s) {
    blocks.push_back(p.alloc(kMiB, p.at(4, "leak", kScript, 20, 3)));
    p.step();
  }
  for (const uint64_t addr : blocks) p.free(addr);
  EXPECT_FALSE(p.diagnosis().verdicts[0].kept_at) << "killed: nobody was asked";
  p.window(4);
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  ASSERT_TRUE(d.verdicts[0].kept_at);
  EXPECT_EQ(d.verdicts[0].kept_at->line, 6);
  EXPECT_TRUE(d.verdicts[0].kept_at->inferred);
  EXPECT_GT(d.verdicts[0].confidence, 0.7);
}

TEST(Diagnose, WithoutHoldersAnInnerCallJoinsItsLine) {
  Program p;  // y = net(batch) and what forward allocates for it, in a run that was killed
  const StackId line = p.at(8, "train");
  const StackId inner =
      p.source.stacks().intern(line, p.source.stacks().innermost(p.at(40, "forward")));
  for (uint64_t s = 1; s <= 60; ++s) {
    p.alloc(3 * kMiB, inner);
    p.alloc(64 * kKiB, line);
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_THAT(d.verdicts[0].sites, SizeIs(2));
}

TEST(Diagnose, AHelperWithoutStepsIsJudgedOverTime) {
  Program trainer(1000 * kMs), helper(1000 * kMs, false);
  for (uint64_t s = 1; s <= 100; ++s) {
    churn(trainer, s);
    if (s <= 20) trainer.alloc(10 * kMiB, trainer.at(9, "train"));  // warms up for 20 steps
    trainer.step();
    helper.alloc(kMiB, helper.at(4, "leak"));
    helper.step();
  }
  helper.alloc(1, helper.at(4, "leak"));
  std::vector<DiagnoseInput> inputs;
  inputs.push_back(trainer.input());
  inputs.push_back(helper.input());
  const Diagnosis d = diagnose(inputs, {}).diagnosis;
  EXPECT_EQ(d.steps.source, "api");
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "leak");
  EXPECT_THAT(d.verdicts[0].processes, ElementsAre(1));
  EXPECT_FALSE(d.verdicts[0].bytes_per_step);
}

TEST(Diagnose, OneCauseInTwoRanksIsOneVerdict) {
  std::vector<Program> ranks(2);
  std::vector<DiagnoseInput> inputs;
  for (Program& p : ranks) {
    for (uint64_t s = 1; s <= 50; ++s) {
      p.alloc(kMiB, p.at(4, "leak"));
      p.step();
    }
    inputs.push_back(p.input());
  }
  const Diagnosis d = diagnose(inputs, {}).diagnosis;
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_THAT(d.verdicts[0].processes, ElementsAre(0, 1));
  EXPECT_EQ(d.verdicts[0].bytes_total, 2 * 48 * static_cast<int64_t>(kMiB));
  EXPECT_THAT(d.inputs, SizeIs(2));
}

TEST(Diagnose, NestedLayersCountOnce) {
  constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
  Program p;
  for (uint64_t s = 1; s <= 50; ++s) {
    const uint64_t addr = p.alloc(kMiB + 64, p.at(4, "leak"), kHost);
    p.alloc_at(addr + 64, kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].layer, "tensor");
  EXPECT_EQ(d.verdicts[0].bytes_total, 48 * static_cast<int64_t>(kMiB));
}

TEST(Diagnose, NativeGrowthIsAHostLeak) {
  constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
  Program p;
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, p.at(8, "train"), kHost);
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  EXPECT_EQ(d.verdicts[0].cause, "host_leak");
  EXPECT_EQ(std::get<std::string>(d.verdicts[0].evidence.at("kind")), "native");
  EXPECT_EQ(d.verdicts[0].site->line, 8);
  EXPECT_EQ(d.verdicts[0].bytes_total, 48 * static_cast<int64_t>(kMiB));
  EXPECT_FALSE(d.verdicts[0].kept_at);
  EXPECT_THAT(d.suspect_groups, SizeIs(0)) << "no Python object is known by this memory";
}

TEST(Diagnose, ANativeLineOfTheUsersIsTheSite) {
  // train() calls an extension without debug data, of which the file is gone: its function. With it
  // in every stack the Python line is the better site.
  constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
  Program p, thread;
  const auto native = [](Program& program, StackId caller) {
    StackTable& stacks = program.source.stacks();
    StringTable& strings = program.source.strings();
    const FrameId frame = stacks.intern_frame({.file = strings.intern("/me/ext.so"),
                                               .module = strings.intern("abcd"),
                                               .kind = FrameKind::kNative,
                                               .offset = 0x1120});
    return stacks.intern(caller, frame);
  };
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, native(p, p.at(8, "train")), kHost);
    p.step();
    thread.alloc(kMiB, native(thread, {}), kHost);
    thread.step();
  }
  EXPECT_EQ(p.diagnosis().verdicts[0].site->line, 8);
  const Verdict verdict = thread.diagnosis().verdicts[0];
  EXPECT_EQ(verdict.cause, "host_leak");
  EXPECT_EQ(verdict.site->function, "ext.so+0x1120");
  EXPECT_EQ(verdict.site->module, "/me/ext.so");
  EXPECT_TRUE(verdict.site->user);
  EXPECT_TRUE(verdict.site->native);
  EXPECT_THAT(verdict.advice, ::testing::HasSubstr("ext.so+0x1120()"));
}

TEST(Diagnose, HostMemoryThatAccompaniesATensorIsNoLeakOfItsOwn) {
  // Line 4 leaks 1 MiB of tensors a step; line 6 of the same function 100 KiB a step of their
  // headers.
  constexpr Where kHost{Layer::kHost, {Device::kCpu, Device::kNoIndex}};
  Program p, own;
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.alloc(100 * kKiB, p.at(6, "leak"), kHost);
    p.step();
    // As much as the tensors themselves: another leak.
    own.alloc(kMiB, own.at(4, "leak"));
    own.alloc(kMiB, own.at(6, "leak"), kHost);
    own.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "leak");
  EXPECT_EQ(d.verdicts[0].bytes_total, 48 * static_cast<int64_t>(kMiB));
  const Diagnosis two = own.diagnosis();
  ASSERT_THAT(two.verdicts, SizeIs(2));
  EXPECT_THAT((std::vector{two.verdicts[0].cause, two.verdicts[1].cause}),
              ::testing::UnorderedElementsAre("leak", "host_leak"));
}

TEST(Diagnose, AStackWithoutPythonHasNoSite) {
  Program p;
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, {});
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  EXPECT_EQ(d.verdicts[0].cause, "leak");
  EXPECT_FALSE(d.verdicts[0].site);
}

TEST(Diagnose, SuppressedBySiteOrDeclaredInTheTrace) {
  const Diagnosis by_option = demo().diagnosis({.suppressions = {"train.py:leak"}});
  expect_none(by_option);
  EXPECT_THAT(by_option.suppressed, SizeIs(1));
  Program p = demo();
  p.source.add_record(~uint64_t{0}, ConfigRecord{.key = "expect_growth", .value = "*:leak"});
  EXPECT_THAT(p.diagnosis().suppressed, SizeIs(1));
}

TEST(Diagnose, StepsAToB) {
  Program p;
  for (uint64_t s = 1; s <= 100; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis({.first_step = 21, .last_step = 60});
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.steps.warmup_until, 20);
  EXPECT_EQ(d.verdicts[0].blocks, 40) << "steps 21 to 60";
  expect_none(p.diagnosis({.first_step = 91, .last_step = 97}));
}

TEST(Diagnose, StepsAToBOfALongRunAreSeenFinely) {
  Program p;  // leaks from step 3001 to 3040 only
  for (uint64_t s = 1; s <= 5000; ++s) {
    churn(p, s);
    if (s > 3000 && s <= 3040) p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis({.first_step = 3001, .last_step = 3040});
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].cause, "leak");
  EXPECT_EQ(d.verdicts[0].blocks, 40);
  EXPECT_DOUBLE_EQ(*d.verdicts[0].bytes_per_step, kMiB);
  EXPECT_EQ(d.steps.first, 3001);
  EXPECT_EQ(d.steps.last, 3040);
  EXPECT_EQ(d.steps.count, 40);
  EXPECT_EQ(d.layers[0].allocated.end, 40 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(d.layers[0].allocated.start, 0);
}

TEST(Diagnose, StepsThatTheInputDoesNotHaveAreSaid) {
  Program p;
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis({.first_step = 500, .last_step = 600});
  expect_none(d);
  EXPECT_FALSE(d.steps.first);
  EXPECT_THAT(std::get<std::string>(d.verdicts[0].evidence.at("reason")),
              ::testing::HasSubstr("no step 500"));
}

TEST(Diagnose, WindowsOfTimeAreNoStepsToAskFor) {
  Program p(1000 * kMs, false);
  for (uint64_t s = 1; s <= 64; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  p.alloc(1, p.at(4, "leak"));
  const Diagnosis d = p.diagnosis({.first_step = 1, .last_step = 3});
  EXPECT_EQ(d.verdicts[0].cause, "leak");
}

TEST(Diagnose, TheOwnerOfMostOfTheBytes) {
  Program p;
  for (uint64_t s = 1; s <= 60; ++s) {
    const uint64_t addr = p.alloc(kMiB, p.at(4, "leak"));
    if (s % 3 != 0) {
      p.owned(addr, "PTA@model@kv", "cache");
    }
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].owner, "PTA@model@kv");
  EXPECT_EQ(std::get<std::string>(d.verdicts[0].evidence.at("label")), "cache");
  EXPECT_THAT(p.diagnosis({.suppressions = {"PTA@model@*"}}).suppressed, SizeIs(1));
  EXPECT_THAT(p.diagnosis({.suppressions = {"cache"}}).suppressed, SizeIs(1));
  EXPECT_THAT(p.diagnosis({.suppressions = {"PTA@ops"}}).suppressed, SizeIs(0));
}

TEST(Diagnose, WithoutStepsPerSecond) {
  Program p(1000 * kMs, false);  // 64 s, 1 MiB a second
  for (uint64_t s = 1; s <= 64; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  p.alloc(1, p.at(4, "leak"));
  const Diagnosis d = p.diagnosis();
  EXPECT_EQ(d.steps.source, "time");
  EXPECT_FALSE(d.steps.first);
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_FALSE(d.verdicts[0].bytes_per_step);
  EXPECT_NEAR(*d.verdicts[0].bytes_per_second, kMiB, 0.02 * kMiB);
  EXPECT_FALSE(d.verdicts[0].first_step);
}

TEST(Diagnose, ShorterThanThirtySecondsWithoutStepsIsNone) {
  Program p(100 * kMs, false);
  for (uint64_t s = 1; s <= 200; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  const Diagnosis d = p.diagnosis();
  EXPECT_EQ(d.steps.source, "none");
  expect_none(d);
}

TEST(Diagnose, DroppedFreesLowerTheConfidence) {
  Program p;
  for (uint64_t s = 1; s <= 50; ++s) {
    p.alloc(kMiB, p.at(4, "leak"));
    p.step();
  }
  p.source.add_record(~uint64_t{0},
                      DropRecord{.kind = static_cast<uint64_t>(Kind::kFree), .count = 1000});
  const Diagnosis d = p.diagnosis();
  expect_none(d);  // all 48 blocks may be dead
  EXPECT_THAT(d.suspects, SizeIs(1));
  EXPECT_EQ(d.dropped_events, 1000);
  EXPECT_FALSE(d.inputs[0].complete);
}

TEST(Diagnose, ReleasedAfterTheLastStepIsStillGrowth) {
  Program p;  // def main(): history = [] ... and main returned
  std::vector<uint64_t> blocks;
  for (uint64_t s = 1; s <= 50; ++s) {
    blocks.push_back(p.alloc(kMiB, p.at(4, "leak")));
    p.step();
  }
  for (const uint64_t addr : blocks) p.free(addr);
  const Diagnosis d = p.diagnosis();
  ASSERT_THAT(d.verdicts, SizeIs(1));
  EXPECT_EQ(d.verdicts[0].bytes_total, 48 * static_cast<int64_t>(kMiB));
  EXPECT_TRUE(d.verdicts[0].evidence.contains("released_after_last_step"));
}

TEST(Diagnose, NoInputsAtAll) {
  std::vector<DiagnoseInput> inputs;
  expect_none(diagnose(inputs, {}).diagnosis);
}

}  // namespace
}  // namespace memscope
