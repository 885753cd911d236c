#include "symbols/answers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace memscope {
namespace {

// What a writer wrote, small enough for a pipe's buffer.
std::string written() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  AnswerWriter writer(ends[1]);
  writer.status(LookUpStatus::kFound, "/lib/a.so");
  const std::array<AnswerSink::Line, 2> lines{AnswerSink::Line{"inner", "a.cc", 7, true},
                                              AnswerSink::Line{"outer", "a.cc", 9, false}};
  writer.answer(3, lines);
  writer.answer(4, std::span(lines).last(1));
  writer.end();
  ::close(ends[1]);
  std::string bytes(4096, 0);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(::read(ends[0], bytes.data(), 4096), 0)));
  ::close(ends[0]);
  return bytes;
}

struct Heard {
  std::vector<std::string> lines;
  bool whole = false;
};
Heard hear(std::string_view stream) {
  Heard heard;
  AnswerReader reader;
  reader.status = [&](LookUpStatus status, std::string_view detail) {
    heard.lines.push_back(std::to_string(static_cast<int>(status)) + " " + std::string(detail));
  };
  reader.answer = [&](uint32_t index, std::span<const AnswerReader::Line> lines) {
    std::string text = std::to_string(index);
    for (const auto& line : lines) {
      text += " " + std::string(line.function) + "@" + std::string(line.file) + ":" +
              std::to_string(line.line) + (line.inlined ? "i" : "");
    }
    heard.lines.push_back(text);
  };
  heard.whole = reader.read(stream);
  return heard;
}

TEST(Answers, ComeBackAsTheyWereGiven) {
  const Heard heard = hear(written());
  EXPECT_TRUE(heard.whole);
  EXPECT_EQ(heard.lines, (std::vector<std::string>{"1 /lib/a.so", "3 inner@a.cc:7i outer@a.cc:9",
                                                   "4 outer@a.cc:9"}));
}

TEST(Answers, OfAStreamCutShortCountAsFarAsTheyGo) {
  const std::string whole = written();
  const Heard all = hear(whole);
  for (size_t size = 0; size < whole.size(); ++size) {
    const Heard heard = hear(std::string_view(whole).substr(0, size));
    EXPECT_FALSE(heard.whole);
    ASSERT_LE(heard.lines.size(), all.lines.size());
    EXPECT_TRUE(std::equal(heard.lines.begin(), heard.lines.end(), all.lines.begin()));
  }
}

TEST(Answers, OfADamagedStreamDoNoHarm) {
  const std::string whole = written();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      EXPECT_LE(hear(bytes).lines.size(), bytes.size());
    }
  }
  // A text that says it is 4 GB long; a text that was never given.
  EXPECT_FALSE(hear(std::string("S\xff\xff\xff\xff", 5)).whole);
  EXPECT_TRUE(hear(std::string("A\1\0\0\0\1\0\5\0\0\0\0\0\0\0\0\0\0\0E", 20)).lines.empty());
}

}  // namespace
}  // namespace memscope
