#include "analysis/site_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

SiteFrame site(const char* file, int64_t line, const char* function, const char* text = nullptr) {
  SiteFrame frame{.file = file, .line = line, .end_line = line, .function = function};
  if (text != nullptr) frame.text = text;
  return frame;
}

using Sites = std::vector<SiteFrame>;

TEST(SiteMatch, AStatementIsTheSameThoughItMoved) {
  const Sites base{site("/a/train.py", 88, "train", "x = f()")};
  const Sites now{site("/a/train.py", 91, "train", "x = f()")};
  EXPECT_THAT(match_sites(base, now), UnorderedElementsAre(Pair(0, 0)));
}

TEST(SiteMatch, AnotherStatementOnTheSameLineIsAnother) {
  const Sites base{site("/a/train.py", 88, "train", "x = f()")};
  const Sites now{site("/a/train.py", 88, "train", "x = g()")};
  EXPECT_THAT(match_sites(base, now), IsEmpty());
}

TEST(SiteMatch, TheProgramMayLieInAnotherDirectory) {
  const Sites base{site("/home/ann/job/train.py", 88, "train", "x = f()")};
  const Sites now{site("/home/bob/copy/train.py", 88, "train", "x = f()")};
  EXPECT_THAT(match_sites(base, now), UnorderedElementsAre(Pair(0, 0)));
}

TEST(SiteMatch, OfSeveralThatFitTheOneWithMoreDirectoriesInCommon) {
  // Both packages have an ops.py with the same line.
  const Sites base{site("/home/ann/job/core/ops.py", 5, "f", "y = x"),
                   site("/home/ann/job/util/ops.py", 5, "f", "y = x")};
  const Sites now{site("/srv/job/util/ops.py", 5, "f", "y = x"),
                  site("/srv/job/core/ops.py", 5, "f", "y = x")};
  EXPECT_THAT(match_sites(base, now), UnorderedElementsAre(Pair(0, 1), Pair(1, 0)));
}

TEST(SiteMatch, TheSamePathIsSurerThanTheSameName) {
  const Sites base{site("/a/ops.py", 5, "f", "y = x")};
  const Sites now{site("/b/ops.py", 5, "f", "y = x"), site("/a/ops.py", 9, "f", "y = x")};
  EXPECT_THAT(match_sites(base, now), UnorderedElementsAre(Pair(0, 1)));
}

TEST(SiteMatch, OneStatementTwiceInAFunctionGoesByTheNearestLine) {
  const Sites base{site("/a/t.py", 10, "f", "y = x"), site("/a/t.py", 20, "f", "y = x")};
  const Sites now{site("/a/t.py", 21, "f", "y = x"), site("/a/t.py", 11, "f", "y = x")};
  EXPECT_THAT(match_sites(base, now), UnorderedElementsAre(Pair(0, 1), Pair(1, 0)));
}

TEST(SiteMatch, WithoutTheTextTheLineDecides) {
  // A trace against a csv, which has no statements.
  const Sites base{site("/a/t.py", 10, "f", "y = x"), site("/a/t.py", 20, "f", "z = x")};
  const Sites now{site("/b/t.py", 20, "f"), site("/b/t.py", 30, "f")};
  EXPECT_THAT(match_sites(base, now), UnorderedElementsAre(Pair(1, 0)));
}

TEST(SiteMatch, ManyThatCannotBeToldApartArePairedAllTheSame) {
  Sites base, now;
  for (int64_t line = 1; line <= 300; ++line) {
    base.push_back(site("/a/t.py", line, "f", "y = x"));
    now.push_back(site("/a/t.py", line, "f", "y = x"));
  }
  // The first 256 of each in the first pass, the others in the second.
  const auto pairs = match_sites(base, now);
  EXPECT_EQ(pairs.size(), 300u);
  for (const auto& [b, n] : pairs) EXPECT_EQ(b, n);
}

}  // namespace
}  // namespace memscope
