#include "capture/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <string>

#include "capture/agent_state.h"
#include "capture/fixed_text.h"
#include "core/where.h"

namespace memscope::capture {
namespace {

TEST(Settings, RefuseWhatTheyDoNotUnderstand) {
  EXPECT_NE(settings_io::set("colour", "red"), nullptr);
  EXPECT_NE(settings_io::set("output_path", ""), nullptr);
  EXPECT_NE(settings_io::set("output_path", std::string(5000, 'x').c_str()), nullptr);
  EXPECT_NE(settings_io::set("run_id", "../escape"), nullptr);
  EXPECT_NE(settings_io::set("run_id", ".hidden"), nullptr);
  EXPECT_NE(settings_io::set("device", "gpu"), nullptr);
  EXPECT_NE(settings_io::set("slab_bytes", "1"), nullptr);
  EXPECT_NE(settings_io::set("rank", "-1"), nullptr);
  for (const char* stacks : {"c:1001", "c:", "c:x", "rust:3", "c:-1"}) {
    EXPECT_NE(settings_io::set("call_stack", stacks), nullptr) << stacks;
  }
}

TEST(Settings, TheTraceSizeIsBytesWithOrWithoutAUnit) {
  const auto bytes_of = [](const char* value) {
    EXPECT_EQ(settings_io::set("max_trace_size", value), nullptr) << value;
    return settings.max_trace_bytes;
  };
  EXPECT_EQ(bytes_of("1048576"), 1048576u);
  EXPECT_EQ(bytes_of("500M"), 524288000u);
  EXPECT_EQ(bytes_of("500MiB"), 524288000u);
  EXPECT_EQ(bytes_of("2T"), 2199023255552u);
  for (const char* size : {"", "M", "1K", "-5G", "5X", "99999999T", "1048575"}) {
    EXPECT_NE(settings_io::set("max_trace_size", size), nullptr) << size;
  }
  EXPECT_EQ(bytes_of("0"), 0u) << "the default";
}

TEST(Settings, ATraceSizeOfTheEnvironmentIsInForceWhereNoOtherIsGiven) {
  setenv("MSMEMSCOPE_MAX_TRACE_SIZE", "30M", 1);
  settings_io::from_environment();
  EXPECT_EQ(settings.max_trace_bytes, 30u << 20);
  ASSERT_EQ(settings_io::set("max_trace_size", "40M"), nullptr);
  EXPECT_EQ(settings.max_trace_bytes, 40u << 20);
  ASSERT_EQ(settings_io::set("max_trace_size", "0"), nullptr);
  EXPECT_EQ(settings.max_trace_bytes, 30u << 20);
  unsetenv("MSMEMSCOPE_MAX_TRACE_SIZE");
}

TEST(Settings, NativeFramesAreThoseOfTheCallStack) {
  const auto frames_of = [](const char* value) {
    EXPECT_EQ(settings_io::set("call_stack", value), nullptr) << value;
    return settings.native_frames;
  };
  EXPECT_EQ(frames_of("c:10,python:5"), 10u);
  EXPECT_EQ(frames_of("python,c"), 50u) << "as msMemScope";
  EXPECT_EQ(frames_of("python:5"), 0u);
  EXPECT_EQ(frames_of("c:0"), 0u);
  EXPECT_EQ(frames_of(""), 0u);
}

TEST(Settings, RelativePathsAreTakenFromTheDirectoryAtThatTime) {
  ASSERT_EQ(settings_io::set("output_path", "results"), nullptr);
  EXPECT_EQ(settings.output_path[0], '/');
  EXPECT_TRUE(std::string(settings.output_path).ends_with("/results"));
}

TEST(Settings, DevicesAreChosenByType) {
  ASSERT_EQ(settings_io::set("device", "npu:3,cpu"), nullptr);
  EXPECT_EQ(state.devices_off.load(), ~(1u << Device::kNpu | 1u << Device::kCpu));
  EXPECT_FALSE(settings.host);
  ASSERT_EQ(settings_io::set("device", "auto"), nullptr);
  EXPECT_EQ(state.devices_off.load(), 0u);
  EXPECT_FALSE(settings.host) << "only where it is named";
}

TEST(Settings, TheHostSourceIsOnWhereItIsNamed) {
  ASSERT_EQ(settings_io::set("device", "auto,host"), nullptr);
  EXPECT_EQ(state.devices_off.load(), 0u);
  EXPECT_TRUE(settings.host);
  ASSERT_EQ(settings_io::set("device", "host"), nullptr);
  EXPECT_EQ(state.devices_off.load(), ~0u) << "and nothing beside it";
  EXPECT_TRUE(settings.host);
  ASSERT_EQ(settings_io::set("device", "auto"), nullptr);
  EXPECT_FALSE(settings.host);
}

TEST(Settings, TheSamplingDistanceIsANumberOfBytes) {
  ASSERT_EQ(settings_io::set("host_sample", "524288"), nullptr);
  EXPECT_EQ(settings.host_sample, 524288u);
  for (const char* value : {"", "-1", "512k", "1073741825"}) {
    EXPECT_NE(settings_io::set("host_sample", value), nullptr) << value;
  }
  ASSERT_EQ(settings_io::set("host_sample", "0"), nullptr);
  EXPECT_EQ(settings.host_sample, 0u);
}

TEST(Settings, TheLaunchersConfigurationComesThroughTheEnvironment) {
  setenv("MSMEMSCOPE_CONFIG",
         R"({"analysis":"leaks","mode":"command","output_path":"/tmp/a \"b\""})", 1);
  EXPECT_TRUE(settings_io::from_environment());
  EXPECT_STREQ(settings.output_path, "/tmp/a \"b\"");
  setenv("MSMEMSCOPE_CONFIG", R"({"mode":"exec"})", 1);  // msmemscope --exec
  EXPECT_TRUE(settings_io::from_environment());
  setenv("MSMEMSCOPE_CONFIG", R"({"mode":"api"})", 1);
  EXPECT_FALSE(settings_io::from_environment());
  for (const char* broken : {"", "{", R"({"mode":)", R"({"mode":"comm)", R"({"mode":"command)"}) {
    setenv("MSMEMSCOPE_CONFIG", broken, 1);
    EXPECT_FALSE(settings_io::from_environment()) << broken;
  }
  unsetenv("MSMEMSCOPE_CONFIG");
}

TEST(Settings, RankComesFromTheFirstVariableThatHoldsANumber) {
  setenv("RANK", "zero", 1);
  setenv("SLURM_PROCID", "5", 1);
  EXPECT_EQ(settings_io::rank_from_environment(), 5);
  setenv("RANK", "2", 1);
  EXPECT_EQ(settings_io::rank_from_environment(), 2);
  unsetenv("RANK");
  unsetenv("SLURM_PROCID");
  EXPECT_EQ(settings_io::rank_from_environment(), -1);
}

TEST(FixedText, CutsOffButCountsAndStaysTerminated) {
  char buffer[8];
  FixedText text(buffer, sizeof(buffer));
  text.add("%s", "0123456789");
  EXPECT_STREQ(buffer, "0123456");
  EXPECT_EQ(text.length(), 10u);
  EXPECT_FALSE(text.whole());
}

TEST(FixedText, QuotesForJson) {
  char buffer[64];
  FixedText text(buffer, sizeof(buffer));
  text.add_json("a\"b\\c\n\xC3\xA9");
  EXPECT_STREQ(buffer, "\"a\\\"b\\\\c\\u000a\xC3\xA9\"");
}

}  // namespace
}  // namespace memscope::capture
