// Inputs that are no traces, or damaged ones: one line with file, offset and reason; never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "trace/reader.h"
#include "trace/records.h"
#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};

std::string error_of(const std::filesystem::path& path) {
  auto reader = TraceReader::open(path);
  if (reader) return "no error";
  EXPECT_THAT(reader.error().message, Not(HasSubstr("\n")));
  return reader.error().message;
}

struct BadInput : testing::Test {
  BadInput() {
    // One chunk of lane 0, then five of one slot of lane 1, with 500 allocs each.
    TraceBuilder builder(directory.path());
    builder.agent().seal();
    LaneBuilder& lane = builder.lane(1);
    for (uint64_t i = 1; i <= 2500; ++i) {
      lane.alloc(i, i, 64, kCpu, lane.stack({{"a.py", "f", static_cast<uint32_t>(i % 9 + 1)}}));
      if (i % 500 != 0) continue;
      chunks.push_back(builder.log_bytes());
      lane.seal();
    }
    EXPECT_TRUE(builder.finish().ok());
    bytes = read_bytes(log);
  }
  template <typename T>
  void set(size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    write_bytes(log, bytes);
  }
  // Reads to the end; how many allocs there were.
  uint64_t allocs(std::vector<std::string>* damage = nullptr) const {
    auto reader = TraceReader::open(directory.path());
    if (!reader) return 0;
    for (Event event; reader.value().next(event);) {
    }
    if (damage != nullptr) *damage = reader.value().damage();
    return reader.value().counts()[static_cast<size_t>(Kind::kAlloc)];
  }

  TestDirectory directory;
  std::filesystem::path log = directory / kLogName;
  std::string bytes;
  std::vector<size_t> chunks;  // where lane 1's begin
};

TEST_F(BadInput, NothingThere) {
  EXPECT_THAT(error_of(directory / "none"), AllOf(HasSubstr("none"), HasSubstr("No such file")));
  std::filesystem::create_directory(directory / "empty");
  EXPECT_THAT(error_of(directory / "empty"), HasSubstr("neither trace.msm nor hot.slab"));
}

TEST_F(BadInput, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of(directory / "pipe"), HasSubstr("not a regular file"));
}

TEST_F(BadInput, EmptyFile) {
  write_bytes(log, "");
  EXPECT_THAT(error_of(log), AllOf(HasSubstr("trace.msm"), HasSubstr("empty (0 bytes)")));
}

TEST_F(BadInput, AnotherKindOfFile) {
  write_bytes(log, "SQLite format 3" + std::string(200, '\0'));
  EXPECT_THAT(error_of(log), AllOf(HasSubstr("at offset 0"), HasSubstr("not a trace")));
}

TEST_F(BadInput, CutWithinTheHeader) {
  write_bytes(log, bytes.substr(0, 40));
  EXPECT_THAT(error_of(log), AllOf(HasSubstr("at offset 40"), HasSubstr("64-byte header")));
}

TEST_F(BadInput, CutBehindTheHeader) {
  write_bytes(log, bytes.substr(0, sizeof(LogHeader)));
  EXPECT_THAT(error_of(log),
              AllOf(HasSubstr("at offset 64"), HasSubstr("nothing after the header")));
}

TEST_F(BadInput, AHoleOfATerabyteIsNotReadThrough) {
  // A file system may leave one at the end after a crash.
  std::filesystem::resize_file(log, uint64_t{1} << 40);
  std::vector<std::string> damage;
  EXPECT_EQ(allocs(&damage), 2500u);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_THAT(damage[0], HasSubstr("no chunk starts here"));
}

TEST_F(BadInput, ANewerMajorVersion) {
  set<uint32_t>(offsetof(LogHeader, major), 2);
  EXPECT_THAT(error_of(log), AllOf(HasSubstr("format 2.0"), HasSubstr("reads 1.x")));
}

TEST_F(BadInput, AnAbsurdHeaderLength) {
  set<uint32_t>(offsetof(LogHeader, header_bytes), 0xFFFFFFF0);
  EXPECT_THAT(error_of(log), AllOf(HasSubstr("at offset 20"), HasSubstr("4294967280 bytes")));
}

TEST_F(BadInput, OnlyNoiseAfterTheHeader) {
  std::mt19937 random(3);
  std::string noise = bytes.substr(0, sizeof(LogHeader));
  for (int i = 0; i < 100'000; ++i) noise += static_cast<char>(random());
  write_bytes(log, noise);
  EXPECT_THAT(error_of(log), AllOf(HasSubstr("at offset 64"), HasSubstr("no chunk starts here")));
}

TEST_F(BadInput, ADamagedChunkHeaderLosesThatChunkOnly) {
  const size_t second = chunks[1];
  set<uint32_t>(second + offsetof(ChunkHeader, lane), 77);
  std::vector<std::string> damage;
  EXPECT_EQ(allocs(&damage), 2000u);
  ASSERT_EQ(damage.size(), 2u);
  EXPECT_THAT(damage[0], AllOf(HasSubstr("at offset " + std::to_string(second)),
                               HasSubstr("header is damaged"), HasSubstr("next sound chunk")));
  EXPECT_THAT(damage[1], HasSubstr("are missing"));
}

TEST_F(BadInput, AFlippedBitInAFrameLosesThatChunkOnly) {
  const size_t hit = chunks[2] + sizeof(ChunkHeader) + 100;
  set<uint8_t>(hit, static_cast<uint8_t>(bytes[hit] ^ 4));
  std::vector<std::string> damage;
  EXPECT_EQ(allocs(&damage), 2000u);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_THAT(damage[0], HasSubstr("cannot be decompressed"));
}

// The frame says 1 TiB, the header a slot: neither is believed without the other.
TEST_F(BadInput, AFrameThatPromisesMoreThanItsHeaderIsNotDecompressed) {
  std::vector<std::byte> buffer(LogWriter::kBufferBytes);
  std::string small = bytes.substr(0, sizeof(LogHeader));
  std::vector<uint64_t> zeros(kSlotRecordBytes / 8, hot_word(Kind::kFree, 0, 0));
  std::string frame(ZSTD_compressBound(zeros.size() * 8), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), zeros.data(), zeros.size() * 8, 1));
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.compressed_bytes = static_cast<uint32_t>(frame.size());
  header.lane = 1;
  header.to = 4096;  // less than the frame holds
  header.header_check = check_of(header);
  small += std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + frame;
  write_bytes(log, small);
  std::vector<std::string> damage;
  EXPECT_EQ(allocs(&damage), 0u);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_THAT(damage[0], HasSubstr("cannot be decompressed"));
}

TEST_F(BadInput, RecordsThatRunPastTheirChunkEndIt) {
  TraceBuilder builder(directory.path(), {.process_record = false});
  builder.lane(1).alloc(1, 1, 8, kCpu, 0);
  const uint64_t absurd[] = {hot_word(Kind::kStep, 0xFFFFFF, 0), 1};
  builder.lane(1).raw(2, absurd);
  builder.lane(1).alloc(3, 2, 8, kCpu, 0);
  ASSERT_TRUE(builder.finish().ok());
  std::vector<std::string> damage;
  EXPECT_EQ(allocs(&damage), 1u);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_THAT(damage[0], HasSubstr("not a record"));
}

TEST_F(BadInput, CutAnywhereItIsReadAsFarAsItGoes) {
  const std::string whole = bytes;
  for (size_t size = 0; size < whole.size(); size += 37) {
    write_bytes(log, whole.substr(0, size));
    const bool readable = TraceReader::open(log).ok();
    EXPECT_EQ(readable, size >= chunks[0]) << size;  // lane 0's chunk, at least
    const auto whole_chunks = static_cast<uint64_t>(
        std::count_if(chunks.begin() + 1, chunks.end(), [&](size_t end) { return end <= size; }));
    std::vector<std::string> damage;
    ASSERT_EQ(allocs(&damage), 500 * whole_chunks) << size;
    if (readable && std::find(chunks.begin(), chunks.end(), size) == chunks.end()) {
      ASSERT_EQ(damage.size(), 1u) << size;
      ASSERT_THAT(damage[0], HasSubstr("cut short"));
    }
  }
}

TEST_F(BadInput, RandomDamageNeverCrashes) {
  const std::string whole = bytes;
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    bytes = whole;
    for (uint32_t hits = random() % 20 + 1; hits != 0; --hits) {
      bytes[64 + random() % (bytes.size() - 64)] = static_cast<char>(random());
    }
    write_bytes(log, bytes);
    allocs();
  }
}

}  // namespace
}  // namespace memscope
