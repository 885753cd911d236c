#include "report/compare_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/compare_sample.h"

namespace memscope {
namespace {

using nlohmann::json;

TEST(CompareJson, SaysWhatTheComparisonHas) {
  const json parsed = json::parse(comparison_json(sample_comparison()));
  EXPECT_EQ(parsed["schema"], 1);
  EXPECT_EQ(parsed["base"]["at_step"], 10);
  EXPECT_EQ(parsed["new"]["steps"], json({{"source", "optimizer"}, {"count", 300}}));
  EXPECT_EQ(parsed["new"]["first_step"], nullptr);
  EXPECT_EQ(parsed["total"]["difference"], json({{"bytes", 305 << 20}, {"blocks", 298}}));
  const json& rows = parsed["sites"]["rows"];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["site"]["line"], 41);
  EXPECT_EQ(rows[0]["base"], nullptr);
  EXPECT_EQ(rows[0]["new"], json({{"bytes", 290 << 20}, {"blocks", 290}}));
  EXPECT_EQ(rows[3]["site"], nullptr);
  EXPECT_EQ(rows[3]["new"], nullptr);
  EXPECT_EQ(rows[3]["difference"], json({{"bytes", -(1 << 20)}, {"blocks", -1}}));
  EXPECT_EQ(parsed["layers"][0]["peak"], json({{"base", 40 << 20}, {"new", 345 << 20}}));
  EXPECT_EQ(parsed["layers"][0]["reserved"], json({{"base", nullptr}, {"new", nullptr}}));
}

TEST(CompareJson, TheRestHasWhatWasLeftOut) {
  Comparison c = sample_comparison();
  limit_rows(c, 1);
  const json parsed = json::parse(comparison_json(c));
  EXPECT_EQ(parsed["sites"]["rows"].size(), 1u);
  EXPECT_EQ(parsed["sites"]["rest"]["rows"], 3);
  EXPECT_EQ(parsed["sites"]["rest"]["difference"], json({{"bytes", 15 << 20}, {"blocks", 8}}));
  EXPECT_EQ(parsed["owners"]["rest"]["rows"], 0);
  EXPECT_EQ(parsed["owners"]["rest"]["base"], nullptr);
}

TEST(CompareJson, TextThatIsNoUtf8IsReplaced) {
  Comparison c = sample_comparison();
  c.sites.rows[0].site->text = "x\xff";
  EXPECT_EQ(json::parse(comparison_json(c))["sites"]["rows"][0]["site"]["text"], "x\xEF\xBF\xBD");
}

}  // namespace
}  // namespace memscope
