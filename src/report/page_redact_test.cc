#include "report/page_redact.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

using Json = nlohmann::ordered_json;

Redactor all() {
  return Redactor({.paths = true, .arguments = true, .host = true, .source = true});
}

TEST(Redaction, IsAListOfWords) {
  const auto two = Redaction::from_text("paths,host");
  ASSERT_TRUE(two);
  EXPECT_EQ(two.value().names(), (std::vector<std::string>{"paths", "host"}));
  ASSERT_TRUE(Redaction::from_text("all"));
  EXPECT_EQ(Redaction::from_text("all").value().names().size(), 4u);
  EXPECT_EQ(Redaction::from_text("path").error().message,
            "\"path\"; allowed: paths, arguments, host, source, all");
  EXPECT_FALSE(Redaction::from_text(""));
}

TEST(Redactor, WithoutAWordLeavesEverythingAsItIs) {
  Redactor redactor({});
  Json answer = {{"file", "/home/me/train.py"}, {"command", "python /home/me/train.py --key 1"}};
  const Json before = answer;
  redactor.apply(answer);
  EXPECT_EQ(answer, before);
}

TEST(Redactor, OfAPathTheNameStaysAndTwoFilesStayTwo) {
  Redactor redactor = all();
  EXPECT_EQ(redactor.path("/home/me/a/utils.py"), "utils.py");
  EXPECT_EQ(redactor.path("/home/me/b/utils.py"), "utils.py (2)");
  EXPECT_EQ(redactor.path("/home/me/a/utils.py"), "utils.py");
  EXPECT_EQ(redactor.path("/home/me/run-7/"), "run-7");
  EXPECT_EQ(redactor.path("C:\\Users\\me\\x.py"), "x.py");
  EXPECT_EQ(redactor.path("<string>"), "<string>");
}

TEST(Redactor, FindsPathsWithinOtherText) {
  Redactor redactor = all();
  EXPECT_EQ(redactor.text("/srv/run/trace.msm: chunk 3 is damaged."),
            "trace.msm: chunk 3 is damaged.");
  EXPECT_EQ(redactor.text("see ~/secret/notes.txt, ../other/x.py and --data=/mnt/d/set."),
            "see notes.txt, x.py and --data=set.");
  // What is no path stays: fractions, "and/or", two slashes of a comment.
  EXPECT_EQ(redactor.text("and/or 1/2 PTA@model@weight"), "and/or 1/2 PTA@model@weight");
}

TEST(Redactor, KnowsPathsWithBlanksFromTheSession) {
  Redactor redactor = all();
  redactor.learn(Json{{"inputs", {{{"path", "/home/Jane Doe/run"}, {"process", nullptr}}}}});
  EXPECT_EQ(redactor.text("/home/Jane Doe/run/trace.msm: cut short"), "run/trace.msm: cut short");
}

TEST(Redactor, ArgumentsAndHostsGo) {
  Redactor redactor = all();
  Json session = {{"inputs",
                   {{{"path", "/runs/node17-0-4711"},
                     {"name", "node17-0-4711"},
                     {"process",
                      {{"host", "node17"},
                       {"argv0", "/usr/bin/python3"},
                       {"command", "/usr/bin/python3 -u /home/me/train.py --token abc"}}}}}}};
  redactor.learn(session);
  redactor.apply(session);
  const Json& input = session["inputs"][0];
  EXPECT_EQ(input["path"], "host-1-0-4711");
  EXPECT_EQ(input["name"], "host-1-0-4711");
  EXPECT_EQ(input["process"]["host"], "host-1");
  EXPECT_EQ(input["process"]["argv0"], "python3");
  EXPECT_EQ(input["process"]["command"], "train.py");
  // Part of another word is no host.
  EXPECT_EQ(redactor.text("node170 and node17"), "node170 and host-1");
}

TEST(Redactor, StatementsGoAlsoOutOfTheAdvice) {
  Redactor redactor = all();
  const Json frame = {
      {"file", "/home/me/train.py"}, {"function", "train"}, {"text", "store.append(x)"}};
  Json session = {{"inputs", Json::array()},
                  {"diagnosis",
                   {{"inputs", Json::array()},
                    {"verdicts",
                     {{{"site", frame},
                       {"kept_at", nullptr},
                       {"sites", Json::array()},
                       {"holders", {{{"root", "module"}, {"text", "__main__.store[3]"}}}},
                       {"advice", "Drop it at train.py:9 (store.append(x)) after use."}}}}}}};
  redactor.learn(session);
  redactor.apply(session);
  const Json& verdict = session["diagnosis"]["verdicts"][0];
  EXPECT_TRUE(verdict["site"]["text"].is_null());
  EXPECT_EQ(verdict["site"]["file"], "train.py");
  EXPECT_EQ(verdict["advice"], "Drop it at train.py:9 after use.");
  // Who holds it is the finding itself.
  EXPECT_EQ(verdict["holders"][0]["text"], "__main__.store[3]");
}

}  // namespace
}  // namespace memscope
