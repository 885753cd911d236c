#include "trace/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <random>
#include <vector>

#include "trace/test_directory.h"

namespace memscope {
namespace {

struct LogWriterTest : testing::Test {
  LogWriterTest() { fd = open((directory / kLogName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); }
  ~LogWriterTest() override { close(fd); }
  uint64_t file_size() const { return static_cast<uint64_t>(lseek(fd, 0, SEEK_END)); }
  ChunkHeader header_at(uint64_t offset) const {
    ChunkHeader header{};
    EXPECT_EQ(pread(fd, &header, sizeof(header), static_cast<off_t>(offset)),
              static_cast<ssize_t>(sizeof(header)));
    return header;
  }

  TestDirectory directory;
  int fd = -1;
  std::vector<std::byte> buffer = std::vector<std::byte>(LogWriter::kBufferBytes);
};

std::vector<std::byte> noise(size_t size) {
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST_F(LogWriterTest, AChunkIsItsHeaderAndAFrameThatDecompressesToTheRecords) {
  LogWriter log(buffer);
  ASSERT_TRUE(log.open(fd, {.major = 1}));
  EXPECT_EQ(log.bytes(), sizeof(LogHeader));
  const auto records = noise(kSlotRecordBytes);
  ASSERT_TRUE(log.append({.lane = 3, .from = 64, .lane_seq = 5, .kinds = 2}, records));
  EXPECT_EQ(file_size(), log.bytes());

  const ChunkHeader header = header_at(sizeof(LogHeader));
  EXPECT_EQ(header.magic, kChunkMagic);
  EXPECT_EQ(header.header_check, check_of(header));
  EXPECT_EQ(header.lane, 3u);
  EXPECT_EQ(header.from, 64u);
  EXPECT_EQ(header.to, 64u + kSlotRecordBytes);
  std::vector<std::byte> frame(header.compressed_bytes), again(records.size());
  ASSERT_EQ(pread(fd, frame.data(), frame.size(), 2 * sizeof(LogHeader)),
            static_cast<ssize_t>(frame.size()));
  EXPECT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), records.size());
  EXPECT_EQ(ZSTD_decompress(again.data(), again.size(), frame.data(), frame.size()),
            records.size());
  EXPECT_EQ(again, records);
}

// A source file in lane 0 does not fit the buffer: it goes out in pieces, the header last.
TEST_F(LogWriterTest, ALargeChunkNeedsNoLargerBuffer) {
  LogWriter log(buffer);
  ASSERT_TRUE(log.open(fd, {}));
  const auto records = noise(kMaxChunkBytes);
  ASSERT_TRUE(log.append({}, records));
  ASSERT_TRUE(log.append({.lane = 1}, noise(8)));
  const ChunkHeader first = header_at(sizeof(LogHeader));
  EXPECT_EQ(first.header_check, check_of(first));
  std::vector<std::byte> frame(first.compressed_bytes), again(records.size());
  ASSERT_EQ(pread(fd, frame.data(), frame.size(), 2 * sizeof(LogHeader)),
            static_cast<ssize_t>(frame.size()));
  EXPECT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), records.size());
  EXPECT_EQ(ZSTD_decompress(again.data(), again.size(), frame.data(), frame.size()),
            records.size());
  EXPECT_EQ(again, records);
  EXPECT_EQ(header_at(2 * sizeof(LogHeader) + first.compressed_bytes).lane, 1u);
}

TEST_F(LogWriterTest, RefusesWhatIsNoChunk) {
  LogWriter log(buffer);
  EXPECT_FALSE(log.append({}, noise(8)));  // not open
  EXPECT_EQ(errno, EBADF);
  ASSERT_TRUE(log.open(fd, {}));
  EXPECT_FALSE(log.append({}, noise(9)));  // not whole words
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(log.append({}, noise(kMaxChunkBytes + 8)));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(log.append({}, {}));
  EXPECT_EQ(file_size(), sizeof(LogHeader));
}

// A limit on file sizes stands in for a full disk: the write is cut short, then fails.
TEST_F(LogWriterTest, AFailedWriteIsCutBackToTheLastWholeChunk) {
  LogWriter log(buffer);
  ASSERT_TRUE(log.open(fd, {}));
  ASSERT_TRUE(log.append({.lane = 1}, noise(4096)));
  const uint64_t whole = log.bytes();
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit { whole + 1000, before.rlim_max };
  setrlimit(RLIMIT_FSIZE, &limit);
  for (const size_t size : {size_t{4096}, size_t{1} << 20}) {
    EXPECT_FALSE(log.append({.lane = 2}, noise(size)));
    EXPECT_EQ(errno, EFBIG);
    EXPECT_EQ(file_size(), whole);
    EXPECT_EQ(log.bytes(), whole);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_action);
  EXPECT_TRUE(log.append({.lane = 2}, noise(4096)));  // there is room again
  EXPECT_EQ(header_at(whole).lane, 2u);
}

}  // namespace
}  // namespace memscope
