#include "analysis/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace memscope {
namespace {

TEST(Glob, Matches) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("*cache.py:*", "/me/cache.py:fill"));
  EXPECT_TRUE(glob_matches("/me/train.py:step", "/me/train.py:step"));
  EXPECT_TRUE(glob_matches("*[0-9]?", "a1b"));
  EXPECT_TRUE(glob_matches("[!x]*", "abc"));
  EXPECT_TRUE(glob_matches("PTA@model@*", "PTA@model@weight"));
  EXPECT_TRUE(glob_matches("a[b", "a[b"));
}

TEST(Glob, DoesNotMatch) {
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches("step", "steps"));
  EXPECT_FALSE(glob_matches("[!x]*", "xyz"));
  EXPECT_FALSE(glob_matches("?", ""));
}

TEST(Glob, ManyStarsAreQuick) {
  const std::string stars(200, '*'), text(100'000, 'a');
  EXPECT_FALSE(glob_matches(stars + "b", text));
}

}  // namespace
}  // namespace memscope
