#include "report/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/sample_diagnosis.h"

namespace memscope {
namespace {

using Json = nlohmann::json;

TEST(DiagnosisJson, HoldsEveryKeyOfTheContract) {
  const Json json = Json::parse(diagnosis_json(sample_leak()));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["inputs"][0]["process"]["rank"], nullptr);
  EXPECT_EQ(json["inputs"][0]["process"]["pid"], 7);
  EXPECT_EQ(json["layers"][0]["reserved"], nullptr);
  EXPECT_EQ(json["dropped"], (Json{{"events", 0}, {"ambiguous", 0}, {"gaps", Json::array()}}));
  const Json& verdict = json["verdicts"][0];
  EXPECT_EQ(verdict["bytes_total"], 304087040);  // 290 * 2^20
  EXPECT_EQ(verdict["bytes_per_second"], nullptr);
  EXPECT_EQ(verdict["site"]["kind"], "python");
  EXPECT_EQ(verdict["kept_at"]["line"], 42);
  EXPECT_EQ(verdict["holders"][0]["path"][1]["len"], nullptr);
  EXPECT_EQ(verdict["evidence"]["merged"], false);
  EXPECT_EQ(verdict["evidence"]["curve"].size(), 8u);
  EXPECT_EQ(verdict.size(), 20u);
  EXPECT_EQ(json.size(), 10u);
}

TEST(DiagnosisJson, EmptyIsStillAnObjectWithItsLists) {
  const Json json = Json::parse(diagnosis_json(Diagnosis{}));
  EXPECT_TRUE(json["verdicts"].is_array());
  EXPECT_TRUE(json["steps"]["warmup_until"].is_null());
}

TEST(DiagnosisJson, BadTextAndNumbersDoNotBreakIt) {
  Diagnosis d = sample_leak();
  d.verdicts[0].advice = "bad \xFF byte";
  d.verdicts[0].bytes_per_step = std::numeric_limits<double>::infinity();
  d.verdicts[0].evidence["ratio"] = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(diagnosis_json(d));
  EXPECT_EQ(json["verdicts"][0]["advice"], "bad \xEF\xBF\xBD byte");
  EXPECT_TRUE(json["verdicts"][0]["bytes_per_step"].is_null());
  EXPECT_TRUE(json["verdicts"][0]["evidence"]["ratio"].is_null());
}

TEST(SuspectsJson, NamesTheBlocksOfEachGroup) {
  Diagnosis d = sample_leak();
  d.suspect_groups.push_back({.site = d.verdicts[0].site,
                              .stack = d.verdicts[0].stack,
                              .blocks = {{.addr = 4096, .size = 1 << 20, .birth = 5}}});
  d.suspect_groups.push_back({.blocks = {{.addr = 8192}}});  // made without Python
  const Json json = Json::parse(suspects_json(d));
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["groups"].size(), 2u);
  EXPECT_TRUE(json["groups"][1]["site"].is_null());
  EXPECT_EQ(json["groups"][0]["stack"].size(), d.verdicts[0].stack.size());
  EXPECT_EQ(json["groups"][0]["site"]["line"], 41);
  EXPECT_EQ(json["groups"][0]["blocks"][0],
            (Json{{"addr", 4096}, {"size", 1 << 20}, {"birth", 5}}));
}

}  // namespace
}  // namespace memscope
