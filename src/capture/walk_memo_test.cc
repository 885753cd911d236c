// A memo's walk against the plain one, from the same place: they must visit the same frames.
#include "capture/walk_memo.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "capture/unwind_fixture.h"

namespace memscope::capture {
namespace {

UnwindTables& tables() {
  static UnwindTables all;
  return all;
}

struct Seen {
  std::vector<uint64_t> words;  // pc, module, begin and end of each frame
  WalkEnd end = WalkEnd::kLost;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// What was made of walks, by summary; and how often one was had without a walk.
std::vector<Seen> summaries;
size_t summaries_had = 0;

// A summary that the memo gives is of a walk that `plain`, perhaps a limited one, is the beginning
// of.
void expect_summary_of(uint64_t summary, const Seen& plain) {
  if (summary == 0) return;
  ++summaries_had;
  std::vector<uint64_t> words = summaries.at(summary - 1).words;
  if (plain.end == WalkEnd::kEnough) words.resize(plain.words.size());
  EXPECT_EQ(words, plain.words);
  EXPECT_NE(plain.end, WalkEnd::kLost);
}

void summarize(WalkMemo& memo, const Seen& seen) {
  if (seen.end != WalkEnd::kOutermost) return;
  summaries.push_back(seen);
  memo.summarize(summaries.size());
}

// Both walk from `from`; the plain one is returned.
Seen expect_same(WalkMemo& memo, const UnwindState& from, size_t limit = 1000) {
  const UnwindCache& cache = tables().cache;  // the bounds are known after it
  const StackBounds bounds = native_bounds::find(from.sp);
  const auto look_up = [](uint64_t pc, uint64_t epoch, PackedRule* rule, uint64_t* serial) {
    return tables().look_up(pc, epoch, rule, serial);
  };
  Seen plain, again;
  const auto into = [limit](Seen& seen) {
    return [&seen, limit](const NativeFrame& frame) {
      for (const uint64_t word : {frame.pc, frame.module, frame.begin, frame.end}) {
        seen.words.push_back(word);
      }
      return seen.words.size() < 4 * limit;
    };
  };
  plain.end = walk_native(cache, from, bounds.high, look_up, into(plain));
  expect_summary_of(memo.summary(cache, from, bounds.high), plain);
  again.end = memo.walk(cache, from, bounds.high, look_up, into(again));
  EXPECT_EQ(again.end, plain.end);
  EXPECT_EQ(again.words, plain.words);
  summarize(memo, again);
  return plain;
}

// The state of its caller: an address of a call that the memo can note.
[[gnu::always_inline]] inline Seen expect_same_here(WalkMemo& memo, size_t limit = 1000) {
  UnwindState here;
  MEMSCOPE_UNWIND_HERE(here);
  return expect_same(memo, here, limit);
}

// The state that the function it is written in returns to, as a hook's caller's.
#define CALLERS_STATE()                                                       \
  (UnwindState{.pc = reinterpret_cast<uint64_t>(__builtin_return_address(0)), \
               .sp = reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()),       \
               .fp = *static_cast<const uint64_t*>(__builtin_frame_address(0))})

using Action = std::function<void()>;

__attribute__((noinline)) int left(int depth, const Action& then);
// A frame that keeps data of its own in every register that a callee must save.
__attribute__((noinline)) int right(int depth, const Action& then) {
  const int result = depth == 0 ? (then(), 0) : left(depth - 1, then);
  return result + depth;
}
// One whose frame is found by its fp: it takes room as it goes.
__attribute__((noinline)) int left(int depth, const Action& then) {
  auto* room =
      static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(depth % 5 + 1) * 16));
  room[7] = 0;
  const int result = depth == 0 ? (then(), 0) : right(depth - 1, then);
  return result + room[7] + 1;
}

TEST(WalkMemo, GivesTheSameFramesAgainAndAgain) {
  WalkMemo memo;
  const Seen first = expect_same_here(memo);
  EXPECT_EQ(first.end, WalkEnd::kOutermost);
  EXPECT_GT(memo.steps(), 0u) << "or nothing is tested here";
  for (int i = 0; i < 3; ++i) expect_same_here(memo);
}

TEST(WalkMemo, NoticesWhatChangedFurtherOut) {
  WalkMemo memo;
  // The innermost frames stand at the same places with the same callers; what differs is in the
  // middle, or only the data in it.
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same test every time
  for (int round = 0; round < 300; ++round) {
    const int depth = static_cast<int>(random() % 30);
    const Action walk = [&] { expect_same_here(memo); };
    if (random() % 2 == 0) {
      left(depth, walk);
    } else {
      right(depth, walk);
    }
  }
}

TEST(WalkMemo, GoesOnWhereALimitedWalkEnded) {
  WalkMemo memo;
  right(20, [&] {
    const Seen cut = expect_same_here(memo, 8);
    EXPECT_EQ(cut.end, WalkEnd::kEnough);
    const size_t noted = memo.steps();
    EXPECT_GT(noted, 0u);
    EXPECT_EQ(expect_same_here(memo, 1000).end, WalkEnd::kOutermost) << "past what is noted";
    expect_same_here(memo, 8);
    expect_same_here(memo, 9);
  });
}

#if defined(__x86_64__)
// A hook's work: a walk from its caller on.
__attribute__((noinline)) void hook(WalkMemo& memo, size_t limit = 1000) {
  const UnwindState caller = CALLERS_STATE();
  expect_same(memo, caller, limit);
}

// From one address: a loop that is not unrolled.
__attribute__((noinline)) void hook_times(WalkMemo& memo, int times, size_t limit = 1000) {
  do {
    hook(memo, limit);
    asm volatile("" : "+r"(times));
  } while (--times > 0);
}

// Walked once, the same stack gives what was made of it; another one does not, however alike.
TEST(WalkMemo, KnowsTheWholeWalkAgain) {
  WalkMemo memo;
  summaries_had = 0;
  right(10, [&] { hook_times(memo, 5); });
  EXPECT_EQ(summaries_had, 4u);
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same test every time
  for (int round = 0; round < 300; ++round) {
    const int depth = static_cast<int>(random() % 40);
    const Action walk = [&] { hook_times(memo, 2, random() % 3 == 0 ? 5 : 1000); };
    if (random() % 2 == 0) {
      left(depth, walk);
    } else {
      right(depth, walk);
    }
  }
  EXPECT_GT(summaries_had, 50u);
}

// Of a stack that is deeper than what it holds, and of a walk that was cut, it knows nothing.
TEST(WalkMemo, HasNoSummaryOfWhatItDidNotNote) {
  WalkMemo memo;
  summaries_had = 0;
  for (const int depth : {300, 400}) {
    left(depth, [&] { hook_times(memo, 3); });
    EXPECT_EQ(summaries_had, 0u) << depth << " " << memo.steps();
  }
  right(10, [&] { hook_times(memo, 3, 4); });
  EXPECT_EQ(summaries_had, 0u);
}
#endif

TEST(WalkMemo, DeeperStacksThanItHoldsAreWalkedAllTheSame) {
  WalkMemo memo;
  for (const int depth : {300, 5, 300, 120, 128, 130, 5}) {
    left(depth, [&] { expect_same_here(memo); });
  }
}

TEST(WalkMemo, ForgetsWithTheCacheOfRules) {
  WalkMemo memo;
  expect_same_here(memo);
  ASSERT_GT(memo.steps(), 0u);
  tables().cache.forget_all();
  expect_same_here(memo, 1);  // notes nothing but its own, exact frame
  EXPECT_EQ(memo.steps(), 0u);
}

// The words may change to anything between two walks, and nothing outside the stack is read.
TEST(WalkMemo, RandomWordsGiveThePlainWalksFrames) {
  std::mt19937_64 random(11);  // NOLINT(cert-msc51-cpp): the same test every time
  uint64_t stack[256];
  const auto begin = reinterpret_cast<uint64_t>(&stack[0]);
  const UnwindTables& all = tables();
  // Addresses of code with rules, from a real walk.
  WalkMemo noted, memo;
  std::vector<uint64_t> code;
  Seen real;
  left(6, [&] { real = expect_same_here(noted); });
  for (size_t i = 0; i < real.words.size(); i += 4) code.push_back(real.words[i] + 1);
  UnwindState from;
  for (int round = 0; round < 100'000; ++round) {
    // Most words stay, and for a while the place that is walked from.
    for (uint64_t& word : stack) {
      if (round != 0 && random() % 64 != 0) continue;
      word = random() % 2 == 0 ? code[random() % code.size()] : begin + random() % 256 * 8;
    }
    if (round % 16 == 0) {
      from = {.pc = code[random() % code.size()],
              .sp = begin + random() % 8 * 8,
              .fp = begin + random() % 256 * 8};
    }
    Seen plain, again;
    const auto look_up = [](uint64_t pc, uint64_t epoch, PackedRule* rule, uint64_t* serial) {
      return tables().look_up(pc, epoch, rule, serial);
    };
    // Few frames, or nearly all walks are lost and nothing is noted of them.
    const auto into = [limit = 1 + random() % 4](Seen& seen) {
      return [&seen, limit](const NativeFrame& frame) {
        seen.words.insert(seen.words.end(), {frame.pc, frame.module, frame.begin, frame.end});
        return seen.words.size() < 4 * limit;
      };
    };
    plain.end = walk_native(all.cache, from, begin + sizeof stack, look_up, into(plain));
    expect_summary_of(memo.summary(all.cache, from, begin + sizeof stack), plain);
    again.end = memo.walk(all.cache, from, begin + sizeof stack, look_up, into(again));
    ASSERT_EQ(again, plain) << round;
    summarize(memo, again);
  }
}

}  // namespace
}  // namespace memscope::capture
