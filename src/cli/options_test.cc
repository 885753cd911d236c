#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memscope::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

LauncherOptions parsed(const std::vector<std::string>& words) {
  auto options = parse_launcher(words);
  EXPECT_TRUE(options.ok()) << options.error().message;
  return options.ok() ? options.value() : LauncherOptions{};
}

std::string refused(const std::vector<std::string>& words) {
  auto options = parse_launcher(words);
  EXPECT_FALSE(options.ok());
  return options.ok() ? "" : options.error().message;
}

TEST(ParseLauncher, OptionsEndAtTheFirstOtherWord) {
  const auto options = parsed({"-v", "--analysis", "leaks", "python", "t.py", "--device", "x"});
  EXPECT_THAT(options.program, ElementsAre("python", "t.py", "--device", "x"));
  EXPECT_EQ(options.settings.count("device"), 0u);
  EXPECT_EQ(options.settings.at("log_level"), "debug");
  EXPECT_TRUE(options.asks_for_leaks());
  EXPECT_FALSE(options.after_mark);
}

TEST(ParseLauncher, TheMarkSetsOffAnyProgram) {
  const auto options = parsed({"--analysis=leaks", "--", "analyze", "--", "-x"});
  EXPECT_THAT(options.program, ElementsAre("analyze", "--", "-x"));
  EXPECT_TRUE(options.after_mark);
  EXPECT_THAT(parsed({"--", "-odd"}).program, ElementsAre("-odd"));
  EXPECT_THAT(parsed({"python", "--", "x"}).program, ElementsAre("python", "--", "x"));
  EXPECT_FALSE(parsed({"python", "--", "x"}).after_mark);
}

TEST(ParseLauncher, HostMemoryIsSampledByBytes) {
  const auto options = parsed({"--device=auto,host", "--host-sample=512K", "p"});
  EXPECT_EQ(options.settings.at("host_sample"), "524288");
  EXPECT_TRUE(options.notes.warnings.empty());
  EXPECT_EQ(parsed({"--host-sample", "512k", "p"}).settings.at("host_sample"), "524288");
  EXPECT_EQ(parsed({"--host-sample=1GiB", "p"}).settings.at("host_sample"), "1073741824");
  EXPECT_EQ(parsed({"--host-sample=0", "p"}).settings.at("host_sample"), "0");
  for (const char* value : {"-1", "2G", "many", "1X", "0K"}) {
    EXPECT_THAT(refused({std::string("--host-sample=") + value, "p"}),
                testing::AllOf(HasSubstr("--host-sample"), HasSubstr(value)));
  }
  // Asked for where it can do nothing.
  EXPECT_THAT(parsed({"--host-sample=4K", "p"}).notes.warnings,
              ElementsAre(HasSubstr("--device auto,host")));
}

TEST(ParseLauncher, NoProgramIsLeftToTheCaller) {
  EXPECT_TRUE(parsed({}).program.empty());
  EXPECT_TRUE(parsed({"--"}).program.empty());
  EXPECT_TRUE(parsed({"-h"}).help);
  EXPECT_TRUE(parsed({"-V"}).version);
}

TEST(ParseLauncher, AnEmptyValueDoesNotSwallowTheNextWord) {
  const auto options = parsed({"--output-path=", "python"});
  EXPECT_THAT(options.program, ElementsAre("python"));
  EXPECT_THAT(options.notes.warnings, ElementsAre("empty output path."));
  EXPECT_EQ(options.settings.count("output_path"), 0u);
}

TEST(ParseLauncher, AliasesWorkAndSaySo) {
  const auto options = parsed({"--output", "/tmp/x", "--data-format", "db", "p"});
  EXPECT_EQ(options.settings.at("output_path"), "/tmp/x");
  EXPECT_EQ(options.settings.at("format"), "db");
  EXPECT_THAT(
      options.notes.warnings,
      ElementsAre(
          "[msmemscope] Deprecation: '--output' is deprecated, use '--output-path' instead.",
          "[msmemscope] Deprecation: '--data-format' is deprecated, use '--format' instead."));
}

TEST(ParseLauncher, ExplicitLogLevelBeatsShortcutsAndVerboseBeatsQuiet) {
  EXPECT_EQ(parsed({"-v", "--log-level", "warn", "p"}).settings.at("log_level"), "warning");
  EXPECT_EQ(parsed({"-q", "-v", "p"}).settings.at("log_level"), "debug");
  EXPECT_EQ(parsed({"--debug", "p"}).settings.at("log_level"), "debug");
  EXPECT_EQ(parsed({"-q", "p"}).settings.at("log_level"), "error");
}

TEST(ParseLauncher, TheLastOfARepeatedOptionCounts) {
  EXPECT_EQ(parsed({"--device", "cpu", "--device=npu:3", "p"}).settings.at("device"), "npu:3");
}

TEST(ParseLauncher, UnknownOptionsAreNamed) {
  EXPECT_THAT(refused({"--bogus", "p"}), StartsWith("unrecognized command --bogus"));
  EXPECT_THAT(refused({"-z"}), StartsWith("unrecognized command -z"));
  EXPECT_THAT(refused({"--bogus", "--", "p"}), StartsWith("unrecognized command --bogus"));
  // The program is p, never cpu.
  EXPECT_THAT(refused({"--bogus", "--device", "cpu", "p"}),
              StartsWith("unrecognized command --bogus"));
  EXPECT_THAT(refused({"--level"}), StartsWith("--level"));
}

TEST(ParseLauncher, CompareAndItsInputsGoTogether) {
  EXPECT_THAT(refused({"--compare"}), StartsWith("Please use compare command with correct input"));
  EXPECT_THAT(refused({"--input-path", "a,b"}), StartsWith("Please use compare command"));
  EXPECT_TRUE(parsed({"--compare", "-i", "a,b"}).compare);
  EXPECT_THAT(refused({"--compare", "-i", "a"}), StartsWith("invalid paths input."));
}

struct Case {
  const char* option;
  const char* value;
  const char* key;
  const char* canonical;  // null: refused
  const char* words;      // how the refusal begins: the reference's own text
};

class OptionValue : public testing::TestWithParam<Case> {};

TEST_P(OptionValue, IsCanonicalOrRefusedWithItsName) {
  const Case& c = GetParam();
  const std::vector<std::string> words = {std::string(c.option) + "=" + c.value, "program"};
  if (c.canonical != nullptr) {
    EXPECT_EQ(parsed(words).settings.at(c.key), c.canonical);
    return;
  }
  const std::string message = refused(words);
  EXPECT_THAT(message, StartsWith(c.words));
  EXPECT_THAT(message, HasSubstr(c.option));
  EXPECT_THAT(message, HasSubstr(std::string("\"") + c.value + "\""));
}

constexpr const char* kSteps = "invalid steps input.";
constexpr const char* kStack = "invalid call-stack depth input.";
constexpr const char* kAnalysis = "invalid analysis type input.";
constexpr const char* kDevice = "invalid device.";
constexpr const char* kWatch = "invalid watch config.";
constexpr const char* kSize = "invalid trace size.";

INSTANTIATE_TEST_SUITE_P(
    Reference, OptionValue,
    testing::Values(
        Case{"--level", "op,kernel", "level", "op,kernel", ""},
        Case{"--level", "1", "level", "kernel", ""},
        Case{"--level", "2", "", nullptr, "invalid data trace level input."},
        Case{"--events", "alloc，free", "events", "alloc,free", ""},
        Case{"--events", "none,alloc", "events", "none", ""},
        Case{"--events", "all", "", nullptr, "invalid event trace type input."},
        Case{"--steps", "1,2,3,4,5", "steps", "1,2,3,4,5", ""},
        Case{"--steps", "1,2,3,4,5,6", "", nullptr, kSteps},
        Case{"--steps", "0", "", nullptr, kSteps}, Case{"--steps", "-1", "", nullptr, kSteps},
        Case{"--steps", "", "", nullptr, kSteps},
        Case{"--steps", "99999999999999999999", "", nullptr, kSteps},
        Case{"--call-stack", "c:10,python:5", "call_stack", "c:10,python:5", ""},
        Case{"--call-stack", "python", "call_stack", "python", ""},
        Case{"--call-stack", "c:1001", "", nullptr, kStack},
        Case{"--call-stack", "c:", "", nullptr, kStack},
        Case{"--call-stack", "java", "", nullptr, kStack},
        Case{"--collect-mode", "deferred", "collect_mode", "deferred", ""},
        Case{"--collect-mode", "later", "", nullptr, "--collect-mode param is invalid."},
        Case{"--device", "auto", "device", "auto", ""},
        Case{"--device", "npu:31,cpu", "device", "npu:31,cpu", ""},
        Case{"--device", "host", "device", "host", ""},
        Case{"--device", "npu:32", "", nullptr, kDevice},
        Case{"--device", "npu3", "", nullptr, kDevice}, Case{"--device", "", "", nullptr, kDevice},
        Case{"--analysis", "leaks, decompose", "analysis", "leaks,decompose", ""},
        Case{"--analysis", "oom:1000", "analysis", "oom:1000", ""},
        Case{"--analysis", "oomph", "analysis", "oom", ""},
        Case{"--analysis", "none,leaks", "analysis", "none", ""},
        Case{"--analysis", "oom:1001", "", nullptr, "invalid OOM top-K value '1001', valid range"},
        Case{"--analysis", "leak", "", nullptr, kAnalysis},
        Case{"--watch", ",end", "watch", ",end", ""},
        Case{"--watch", "start:1,end,full-content", "watch", "start:1,end,full-content", ""},
        Case{"--watch", "start", "", nullptr, kWatch},
        Case{"--watch", "start:01,end", "", nullptr, kWatch},
        Case{"--watch", "start,end,half", "", nullptr, kWatch},
        Case{"--format", "db", "format", "db", ""},
        Case{"--format", "xml", "", nullptr, "--data-format param is invalid."},
        Case{"--log-level", "error", "log_level", "error", ""},
        Case{"--log-level", "loud", "", nullptr, "--log-level param is invalid."},
        Case{"--output-path", "/proc/self/status", "", nullptr, "invalid output path."},
        Case{"--compat", "25.0", "", nullptr, "invalid compat version."},
        Case{"--max-trace-size", "1G", "max_trace_size", "1073741824", ""},
        Case{"--max-trace-size", "500MiB", "max_trace_size", "524288000", ""},
        Case{"--max-trace-size", "1K", "", nullptr, kSize},
        Case{"--max-trace-size", "99999999999999T", "", nullptr, kSize},
        Case{"--report-to", "/no/such/place/report", "", nullptr, "invalid report target."},
        Case{"--suppressions", "/no/file", "", nullptr, "invalid suppressions file."}));

TEST(ParseLauncher, WhatComesLaterIsSaid) {
  const auto options = parsed({"--call-stack", "c:10,python", "--level=kernel", "--format=csv",
                               "--analysis=leaks,oom", "--steps=3", "p"});
  EXPECT_THAT(options.notes.not_recorded,
              ElementsAre("kernels (--level kernel)", "oom (--analysis)"));
  EXPECT_THAT(options.notes.without_effect, ElementsAre("--steps"));
  EXPECT_THAT(parsed({"--max-trace-size=16M", "p"}).notes.without_effect, testing::IsEmpty());
  EXPECT_THAT(parsed({"--events=alloc,free", "--device=cpu", "p"}).notes.not_recorded,
              testing::IsEmpty());
}

TEST(LauncherHelp, FitsTheTerminal) {
  const std::string help = launcher_help();
  size_t at = 0;
  while (at < help.size()) {
    const size_t end = help.find('\n', at);
    EXPECT_LE(end - at, 80u) << help.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace memscope::cli
