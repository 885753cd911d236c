#include "export/perfetto.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "trace/test_directory.h"

namespace memscope {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;
using Point = std::pair<double, int64_t>;

constexpr Where kPool{Layer::kPool, {Device::kCuda, 0}};
constexpr Where kCpu{Layer::kTensor, Device{}};
constexpr uint64_t kOrigin = 1'000'000'000;

// Events at microseconds after the origin; the file is read back as JSON.
class PerfettoTest : public ::testing::Test {
 protected:
  void alloc(uint64_t us, uint64_t addr, uint64_t size, Where where = kPool, StackId stack = {}) {
    add({.kind = EventKind::kAlloc, .where = where, .stack = stack}, us, addr, size);
  }
  void free(uint64_t us, uint64_t addr, Where where = kPool) {
    add({.kind = EventKind::kFree, .where = where}, us, addr, 0);
  }
  void add(Event event, uint64_t us, uint64_t addr, uint64_t size) {
    event.time = kOrigin + us * 1000;
    event.addr = addr;
    event.size = size;
    source_.add(event);
  }
  template <typename Record>
  void record(uint64_t us, const Record& record) {
    source_.add_record(kOrigin + us * 1000, record);
  }

  PerfettoReport write(PerfettoRequest request = {}) {
    request.origin = kOrigin;
    request.pid = 7;
    if (request.name.empty()) request.name = "train.py";
    const std::string path = directory_ / "out.json.gz";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);
    auto file = PerfettoFile::begin(fd, path);
    EXPECT_TRUE(file);
    const PerfettoReport report = write_perfetto(source_, request, file.value());
    EXPECT_TRUE(file.value().finish());
    ::close(fd);
    gzFile read = gzopen(path.c_str(), "rb");
    std::string text(64 << 20, '\0');
    text.resize(static_cast<size_t>(gzread(read, text.data(), static_cast<unsigned>(text.size()))));
    gzclose(read);
    events_ = Json::parse(text)["traceEvents"];
    return report;
  }
  std::vector<Point> curve(const std::string& name) const {
    std::vector<Point> points;
    for (const Json& event : events_) {
      if (event["ph"] == "C" && event["name"] == name) {
        points.emplace_back(event["ts"].get<double>(), event["args"]["bytes"].get<int64_t>());
      }
    }
    return points;
  }
  std::vector<Json> all(const std::string& phase) const {
    std::vector<Json> found;
    for (const Json& event : events_) {
      if (event["ph"] == phase) found.push_back(event);
    }
    return found;
  }

  TestDirectory directory_;
  VectorSource source_;
  Json events_;
};

TEST_F(PerfettoTest, CurvesAreOfALayerOnADevice) {
  alloc(0, 0xA, 100);
  alloc(1, 0xA, 30, kCpu);  // the same address, another place
  free(2, 0xA);
  add({.kind = EventKind::kAlloc, .has_totals = true, .where = kPool, .reserved = 4096}, 3, 0xB, 8);
  write();
  EXPECT_THAT(curve("cuda:0 pool allocated"), ElementsAre(Point(0, 100), Point(2, 0), Point(3, 8)));
  EXPECT_THAT(curve("cpu tensor allocated"), ElementsAre(Point(1, 30)));
  EXPECT_THAT(curve("cuda:0 pool reserved"), ElementsAre(Point(3, 4096)));
}

TEST_F(PerfettoTest, AFreeThatDidNotHappenEndsNothing) {
  alloc(0, 0xA, 100);
  free(1, 0xA);
  record(2, UndoRecord{.addr = 0xA, .where = kPool.packed()});
  alloc(5, 0xB, 1);
  write();
  const auto ends = all("e");
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0]["ts"], 5.0);  // of the larger block: it lived to the end
  EXPECT_EQ(all("b")[0]["args"]["freed"], "not by the end");
  EXPECT_THAT(curve("cuda:0 pool allocated"),
              ElementsAre(Point(0, 100), Point(1, 0), Point(2, 100), Point(5, 101)));
}

TEST_F(PerfettoTest, APieceOfTimeKeepsItsPeakAndItsLastValue) {
  // 8,000 pairs a microsecond apart, each up to 10 + i and back to 0, in 4,000 pieces of time.
  for (uint64_t i = 0; i < 8000; ++i) {
    alloc(2 * i, 0xA, 10 + i);
    free(2 * i + 1, 0xA);
  }
  write();
  const auto points = curve("cuda:0 pool allocated");
  EXPECT_LE(points.size(), 8002u);
  EXPECT_GE(points.size(), 7000u);
  int64_t most = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(points[i].first, points[i - 1].first);
    }
    most = std::max(most, points[i].second);
  }
  EXPECT_EQ(most, 10 + 7999);
  EXPECT_EQ(points.back(), Point(15'999, 0));
}

TEST_F(PerfettoTest, OnlyTheLargestBlocksAreThereAndTheRestIsCounted) {
  for (uint64_t i = 1; i <= 2500; ++i) alloc(i, 0x1000 * i, i);
  const PerfettoReport report = write();
  EXPECT_EQ(report.blocks, 2500u);
  EXPECT_EQ(report.blocks_left_out, 500u);
  const auto begins = all("b");
  ASSERT_EQ(begins.size(), 2000u);
  EXPECT_EQ(begins.front()["args"]["bytes"], 2500);
  EXPECT_EQ(begins.back()["args"]["bytes"], 501);
}

TEST_F(PerfettoTest, OneDeviceAloneWhereAskedFor) {
  alloc(0, 0xA, 100);
  alloc(1, 0xB, 30, kCpu);
  write({.device = Device{}});
  EXPECT_TRUE(curve("cuda:0 pool allocated").empty());
  EXPECT_EQ(all("b").size(), 1u);
}

TEST_F(PerfettoTest, AnyNameIsAStringOfJson) {
  StringTable& strings = source_.strings();
  const std::string long_name(100'000, 'x');
  Frame frame{.file = strings.intern("/home/me/\"a\xff<script>\n.py"),
              .function = strings.intern(long_name),
              .line = 3,
              .end_line = 3};
  StackTable& stacks = source_.stacks();
  alloc(0, 0xA, 100, kPool, stacks.intern(StackId(), stacks.intern_frame(frame)));
  record(1, PhaseRecord{.phase = 1, .module = long_name});
  record(2, MarkRecord{.action = 0, .text = "\x01\"\\", .domain = "d"});
  record(3, PhaseRecord{.phase = 77, .module = ""});  // no phase that is known
  write({.name = "\xc3\x28"});                        // no UTF-8
  const Json block = all("b").at(0);
  EXPECT_EQ(block["name"], "\"a\xEF\xBF\xBD<script>\n.py:3");
  EXPECT_LE(block["args"]["function"].get<std::string>().size(), 310u);
  EXPECT_EQ(all("i").at(0)["name"], "\x01\"\\");
  EXPECT_EQ(all("X").at(0)["name"], "forward");
  EXPECT_EQ(all("X").at(1)["name"], "other");
}

TEST_F(PerfettoTest, AFullDiskIsAnError) {
  const int fd = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  auto file = PerfettoFile::begin(fd, "out.json.gz");
  ::close(fd);
  ASSERT_TRUE(file);
  file.value().event(1, {{"ph", "M"}, {"name", "x"}});
  const auto done = file.value().finish();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("cannot write out.json.gz: No space left on device"),
            std::string::npos);
}

}  // namespace
}  // namespace memscope
