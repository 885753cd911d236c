#include "report/page.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>

#include "report/page_answers.h"
#include "report/page_rows.h"
#include "report/page_session.h"
#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr Where kWhere{Layer::kTensor, Device{}};
const std::string kTemplate =
    "<!doctype html><title>MemScope</title>"
    "<script type=\"application/json\" id=\"msmemscope-report\"></script>"
    "<script type=\"module\">go()</script>";

// A session over a trace that the test writes.
class PageTest : public ::testing::Test {
 protected:
  void open(const std::function<void(LaneBuilder&)>& write) {
    {
      TraceBuilder builder(directory_ / "trace");
      write(builder.lane(1, 7, "python"));
      ASSERT_TRUE(builder.finish());
    }
    session_ = std::make_unique<view::Session>(
        view::SessionOptions{.paths = {(directory_ / "trace").string()}});
    session_->start();
    session_->wait_diagnosed();
    state_ = session_->state();
    ASSERT_NE(state_, nullptr) << session_->status().error;
  }
  // `blocks` of them at `lines` lines, a third of them freed, 16 frames deep.
  void open_many(size_t blocks, uint32_t lines) {
    open([&](LaneBuilder& lane) {
      std::mt19937 random(1);
      std::vector<uint32_t> stacks;
      std::vector<std::string> files, functions;
      for (uint32_t depth = 0; depth < 16; ++depth) {
        files.push_back("/home/me/module" + std::to_string(depth) + ".py");
      }
      for (uint32_t i = 0; i < lines + 16; ++i) functions.push_back("function" + std::to_string(i));
      for (uint32_t i = 0; i < lines; ++i) {
        std::vector<FrameSpec> frames;
        for (uint32_t depth = 0; depth < 16; ++depth) {
          frames.push_back({files[depth], functions[i + depth], 1 + i});
        }
        stacks.push_back(lane.stack(std::span<const FrameSpec>(frames)));
      }
      for (size_t i = 0; i < blocks; ++i) {
        const uint64_t address = 0x10000 + i * 0x100000;
        lane.alloc(100 + i * 10, address, 512 * (1 + random() % 2000), kWhere,
                   stacks[random() % lines]);
        if (random() % 3 == 0) lane.free(105 + i * 10, address, kWhere);
      }
    });
  }
  Page make(PageRequest request = {}) const {
    request.state = state_;
    request.page = kTemplate;
    auto page = make_page(request);
    EXPECT_TRUE(page) << page.error().message;
    return page ? std::move(page).value() : Page{};
  }
  static std::string data_of(const Page& page) {
    const size_t begin = page.text.find("msmemscope-report\">") + 19;
    return page.text.substr(begin, page.text.find("</script>", begin) - begin);
  }
  static std::vector<Json> answers_of(const Json& report, const std::string& name) {
    std::vector<Json> found;
    for (const Json& answer : report["answers"]) {
      if (answer["name"] == name) found.push_back(answer);
    }
    return found;
  }
  Json server_says(const std::string& name, const std::string& query) const {
    return Json::parse(view::Api::answer_of(state_, name, view::Params::from_query(query)).body);
  }

  TestDirectory directory_;
  std::unique_ptr<view::Session> session_;
  std::shared_ptr<const view::ViewState> state_;
};

TEST_F(PageTest, CarriesWhatTheServerWouldSay) {
  open([](LaneBuilder& lane) {
    const uint32_t stack = lane.stack({{"/home/me/train.py", "main", 3}});
    lane.alloc(100, 0xA000, 64, kWhere, stack);
    lane.alloc(200, 0xB000, 32, kWhere, stack);
    lane.free(300, 0xA000, kWhere);
  });
  const Page page = make();
  const Json report = Json::parse(data_of(page));
  EXPECT_TRUE(page.left_out.empty());
  // The page around it is as it was.
  EXPECT_EQ(page.text.substr(0, page.text.find("{")),
            kTemplate.substr(0, kTemplate.find("</script>")));
  EXPECT_TRUE(page.text.ends_with("</script><script type=\"module\">go()</script>"));

  const auto legends = answers_of(report, "legend");
  ASSERT_FALSE(legends.empty());
  EXPECT_EQ(legends[0]["json"], server_says("legend", "pool=0&colour=site"));
  EXPECT_EQ(answers_of(report, "steps").at(0)["json"], server_says("steps", "input=0"));
  // Both blocks, in the order of their numbers; block 1 was freed.
  const Json rows = answers_of(report, "blocks").at(0)["json"];
  EXPECT_EQ(rows["rows"], server_says("blocks", "pool=0&sort=block:asc")["rows"]);
  EXPECT_EQ(rows["sum"]["size"], 96);
  // A stack is the numbers of its frames.
  ASSERT_EQ(report["stacks"].size(), 1u);
  EXPECT_EQ(report["frames"][report["stacks"][0]["frames"][0].get<size_t>()],
            server_says("stack", "input=0&stack=1")["frames"][0]);
  // A picture in each order, and a line of what was allocated.
  EXPECT_EQ(answers_of(report, "graph").size(), 4u + 6u);
  EXPECT_EQ(answers_of(report, "lines").at(0)["parameters"]["series"], "allocated:0");
}

TEST_F(PageTest, NoNameEndsTheScriptItIsIn) {
  open([](LaneBuilder& lane) {
    const std::string markup = "</script><img src=x onerror=alert(1)><!--";
    const std::string long_name(100'000, 'x');
    lane.alloc(100, 0xA000, 64, kWhere, lane.stack({{markup, markup, 3}}));
    lane.alloc(200, 0xB000, 64, kWhere, lane.stack({{"/y.py", long_name, 3}}));
  });
  const Page page = make();
  const std::string data = data_of(page);
  EXPECT_EQ(data.find('<'), std::string::npos);
  const Json report = Json::parse(data);  // all of it lies before the first </script>
  EXPECT_NE(report.dump().find("</script><img"), std::string::npos);
  EXPECT_LT(page.text.size(), 1'000'000u);
}

TEST_F(PageTest, IsNeverLongerThanAllowedAndSaysWhatIsMissing) {
  open_many(12'000, 200);
  size_t before = 0;
  for (const size_t most : {600'000u, 1'000'000u, 1'800'000u}) {
    const Page page = make({.most = most});
    EXPECT_LE(page.text.size(), most);
    EXPECT_GT(page.text.size(), before);  // what room there is is used
    before = page.text.size();
    const Json report = Json::parse(data_of(page));
    EXPECT_FALSE(answers_of(report, "graph").empty());
    EXPECT_EQ(report["facts"]["left_out"], page.left_out);
    const size_t rows = answers_of(report, "blocks").at(0)["json"]["rows"].size();
    EXPECT_GT(rows, 0u);
    const Json blocks = {{"what", "blocks"}, {"kept", rows}, {"all", 12'000}};
    EXPECT_NE(std::find(page.left_out.begin(), page.left_out.end(), blocks), page.left_out.end());
  }
}

TEST_F(PageTest, RedactedNamesStillFindTheirSource) {
  open([](LaneBuilder& lane) {
    lane.record(50, SourceRecord{.path = "/home/me/train.py", .text = "a = 1\nb = f(a)\n"});
    lane.alloc(100, 0xA000, 64, kWhere, lane.stack({{"/home/me/train.py", "main", 2}}));
  });
  const Json report = Json::parse(data_of(make({.redact = {.paths = true}})));
  const auto sources = answers_of(report, "source");
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0]["parameters"]["file"], "train.py");
  EXPECT_EQ(report["frames"][0]["file"], "train.py");
  EXPECT_EQ(report.dump().find("/home/me"), std::string::npos);
  EXPECT_EQ(report["facts"]["redacted"], Json({"paths"}));
  const Json bare = Json::parse(data_of(make({.redact = {.source = true}})));
  EXPECT_TRUE(answers_of(bare, "source").empty());
  EXPECT_EQ(bare.dump().find("b = f(a)"), std::string::npos);
}

TEST_F(PageTest, RefusesWhatCannotBecomeAPage) {
  open([](LaneBuilder& lane) { lane.alloc(100, 0xA000, 64, kWhere, 0); });
  EXPECT_EQ(make_page({.state = state_, .page = "<html></html>"}).error().message,
            "it is no page of a report: it has no place for the answers");
  EXPECT_FALSE(make_page({.state = state_, .page = kTemplate, .most = 100'000}));
}

TEST_F(PageTest, TheBlocksOfAPictureAreThoseItCounts) {
  open_many(500, 10);
  const std::string graph =
      view::Api::answer_of(state_, "graph",
                           view::Params::from_query("pool=0&t0=0&t1=6000&width=300&height=300"))
          .body;
  uint32_t count = 0;
  std::memcpy(&count, graph.data() + 60, sizeof count);
  const auto blocks = blocks_of_graph(graph);
  EXPECT_EQ(blocks.size(), count);
  ASSERT_FALSE(blocks.empty());
  EXPECT_GE(blocks.front(), 1u);
  EXPECT_LE(blocks.back(), 500u);
  EXPECT_TRUE(blocks_of_graph(graph.substr(0, graph.size() / 2)).empty());  // cut short
}

// zlib.compress(b"\x01\x02\x03", 9) and of 32 times "a", in base64, by Python.
TEST(PageAnswers, PacksAsRfc1950AndRfc4648Say) {
  EXPECT_EQ(packed_text(std::string_view("\x01\x02\x03", 3)), "eNpjZGIGAAANAAc=");
  EXPECT_EQ(packed_text(std::string(32, 'a')), "eNpLTMQPAMgwDCE=");
}

TEST(PageSession, HasItsPlaceWhateverTheRun) {
  Json session = {{"inputs", Json::array()},
                  {"pools", Json::array()},
                  {"opening", {{"pool", 1999}}},
                  {"diagnosis", {{"verdicts", Json::array()}}}};
  for (int i = 0; i < 2000; ++i) {
    session["inputs"].push_back({{"id", i}, {"path", std::string(5000, 'p')}});
    session["pools"].push_back({{"id", i}, {"input", i}});
    session["diagnosis"]["verdicts"].push_back({{"advice", std::string(3000, 'a')}});
  }
  PageTally tally;
  const Json fit = fit_session(session, 100'000, tally);
  EXPECT_LE(script_text(fit).size(), 100'000u);
  EXPECT_GT(fit["inputs"].size(), 3u);
  for (const Json& pool : fit["pools"]) EXPECT_LT(pool["input"], fit["inputs"].size());
  EXPECT_TRUE(fit["opening"].is_null());   // its pool is not there any more
  EXPECT_EQ(tally.left_out().size(), 3u);  // pools, processes, verdicts
}

}  // namespace
}  // namespace memscope
