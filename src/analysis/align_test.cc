#include "analysis/align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

namespace memscope {
namespace {

std::vector<uint32_t> letters(std::string_view text) {
  return {text.begin(), text.end()};
}

Alignment align_text(std::string_view base, std::string_view compare,
                     const AlignLimits& limits = {}) {
  return align(letters(base), letters(compare), limits);
}

// Whether every run is equal elements, and runs ascend on both sides.
testing::AssertionResult sound(const std::vector<uint32_t>& base,
                               const std::vector<uint32_t>& compare, const Alignment& result) {
  size_t a = 0, b = 0;
  for (const AlignedRun& run : result.runs) {
    if (run.length == 0) return testing::AssertionFailure() << "an empty run";
    if (run.base_at < a || run.compare_at < b) return testing::AssertionFailure() << "overlap";
    a = run.base_at + size_t{run.length};
    b = run.compare_at + size_t{run.length};
    if (a > base.size() || b > compare.size()) return testing::AssertionFailure() << "outside";
    if (!std::equal(base.begin() + run.base_at, base.begin() + static_cast<std::ptrdiff_t>(a),
                    compare.begin() + run.compare_at)) {
      return testing::AssertionFailure() << "not equal";
    }
  }
  return testing::AssertionSuccess();
}

// The textbook's table, all of it.
size_t longest_common(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      best[i][j] =
          a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    }
  }
  return best[a.size()][b.size()];
}

TEST(Align, FindsWhatIsOnlyInOne) {
  // base     a b c . d
  // compare  a b . x d
  EXPECT_EQ(align_text("abcd", "abxd").runs, (std::vector<AlignedRun>{{0, 0, 2}, {3, 3, 1}}));
}

TEST(Align, FindsTheExampleOfMyers) {
  // The paper's: abcabba against cbabac, whose longest common subsequences have 4 letters.
  const Alignment result = align_text("abcabba", "cbabac");
  EXPECT_EQ(result.length(), 4u);
  EXPECT_TRUE(sound(letters("abcabba"), letters("cbabac"), result));
}

TEST(Align, HandlesEmptyEqualAndForeignSequences) {
  EXPECT_TRUE(align_text("", "").runs.empty());
  EXPECT_TRUE(align_text("abc", "").runs.empty());
  EXPECT_TRUE(align_text("", "abc").runs.empty());
  EXPECT_TRUE(align_text("abc", "xyz").runs.empty());
  EXPECT_EQ(align_text("abc", "abc").runs, (std::vector<AlignedRun>{{0, 0, 3}}));
  // Equal at both ends, which must not be counted twice where they overlap.
  EXPECT_EQ(align_text("aba", "aba ba").length(), 3u);
  EXPECT_EQ(align_text("aa", "aaa").length(), 2u);
}

TEST(Align, IsAsLongAsTheTableSaysOnAllSmallSequences) {
  // Every pair of sequences of 0 to 5 elements over an alphabet of 3: 364 * 364 pairs.
  std::vector<std::vector<uint32_t>> all{{}};
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == 5) continue;
    for (uint32_t letter = 0; letter < 3; ++letter) {
      std::vector<uint32_t> longer = all[i];
      longer.push_back(letter);
      all.push_back(std::move(longer));
    }
  }
  ASSERT_EQ(all.size(), 364u);
  for (const auto& base : all) {
    for (const auto& compare : all) {
      const Alignment result = align(base, compare);
      ASSERT_TRUE(sound(base, compare, result));
      ASSERT_EQ(result.length(), longest_common(base, compare));
      ASSERT_TRUE(result.shortest);
    }
  }
}

TEST(Align, IsAsLongAsTheTableSaysOnRandomSequences) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const uint32_t alphabet = 2 + random() % 12;
    std::vector<uint32_t> base(random() % 90), compare(random() % 90);
    for (uint32_t& element : base) element = random() % alphabet;
    for (uint32_t& element : compare) element = random() % alphabet;
    if (round % 2 == 0) {  // mostly the same, as two steps of one program are
      compare = base;
      for (int edit = 0; edit < 6 && !compare.empty(); ++edit) {
        const auto at = static_cast<std::ptrdiff_t>(random() % compare.size());
        if (random() % 2 == 0) {
          compare.erase(compare.begin() + at);
        } else {
          compare.insert(compare.begin() + at, random() % alphabet);
        }
      }
    }
    const Alignment result = align(base, compare);
    ASSERT_TRUE(sound(base, compare, result)) << "round " << round;
    ASSERT_EQ(result.length(), longest_common(base, compare)) << "round " << round;
  }
}

TEST(Align, StopsLookingForTheShortestAtTheLimit) {
  // Two unrelated sequences over two letters: thousands of edits, which 10,000 comparisons cannot
  // find. The answer is sound, says where it stopped being the best, and is still most of it: of
  // two random sequences over two letters about 81 % can be aligned.
  std::mt19937 random(11);
  std::vector<uint32_t> base(20'000), compare(20'000);
  for (uint32_t& element : base) element = random() % 2;
  for (uint32_t& element : compare) element = random() % 2;
  const Alignment result = align(base, compare, {.work = 10'000});
  EXPECT_FALSE(result.shortest);
  EXPECT_TRUE(sound(base, compare, result));
  EXPECT_GT(result.length(), 20'000u * 6 / 10);
  // Linear in the length past the limit: at most some hundred comparisons an element.
  EXPECT_LT(result.work, 10'000u + 40'000u * 400);
}

TEST(Align, SaysHowFarItIsExactWhereTheLimitIsHit) {
  // 1,000 equal elements, then two unrelated sequences that begin with different letters: exact for
  // 1,000 on each side.
  std::mt19937 random(13);
  std::vector<uint32_t> base, compare;
  for (uint32_t i = 0; i < 1000; ++i) base.push_back(i % 50);
  compare = base;
  base.push_back(0);
  compare.push_back(1);
  for (uint32_t i = 0; i < 8000; ++i) {
    base.push_back(random() % 2);
    compare.push_back(random() % 2);
  }
  const Alignment result = align(base, compare, {.work = 5'000});
  EXPECT_FALSE(result.shortest);
  EXPECT_EQ(result.exact_base, 1000u);
  EXPECT_EQ(result.exact_compare, 1000u);
}

TEST(Align, TakesNoMoreWorkThanTheDifferenceNeeds) {
  // A million operators, one of them more: the ends are equal, and nothing is left to search.
  std::vector<uint32_t> base(1'000'000);
  for (size_t i = 0; i < base.size(); ++i) base[i] = static_cast<uint32_t>(i * 7 % 400);
  std::vector<uint32_t> compare = base;
  compare.insert(compare.begin() + 500'000, 9);
  const Alignment result = align(base, compare);
  EXPECT_EQ(result.length(), base.size());
  EXPECT_LT(result.work, 1'100'000u);
}

}  // namespace
}  // namespace memscope
