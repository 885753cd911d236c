// Traces as a kill leaves them: every byte that was committed comes back once, whenever it hit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "trace/reader.h"
#include "trace/records.h"
#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};
const TraceOptions kBare{.process_record = false};

std::vector<uint64_t> addresses(const std::filesystem::path& path,
                                std::vector<std::string>* damage = nullptr) {
  auto reader = TraceReader::open(path);
  if (!reader) {
    ADD_FAILURE() << reader.error().message;
    return {};
  }
  std::vector<uint64_t> result;
  for (Event event; reader.value().next(event);) result.push_back(event.addr);
  if (damage != nullptr) *damage = reader.value().damage();
  return result;
}

// Overwrites bytes of a file.
void patch(const std::filesystem::path& path, size_t offset, const void* bytes, size_t size) {
  std::string content = read_bytes(path);
  ASSERT_LE(offset + size, content.size());
  std::memcpy(content.data() + offset, bytes, size);
  write_bytes(path, content);
}

constexpr size_t kSlot0 = kSlabHeaderBytes;
constexpr size_t kSlot0Records = kSlot0 + sizeof(SlotHeader);

TEST(Kill, WhatIsOnlyInTheSlabIsRead) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  builder.lane(2).alloc(20, 2, 8, kCpu, 0);
  builder.lane(1).free(30, 1, kCpu);
  ASSERT_TRUE(builder.kill().ok());
  std::vector<std::string> damage;
  EXPECT_THAT(addresses(directory.path(), &damage), ElementsAre(1, 2, 1));
  EXPECT_THAT(damage, IsEmpty());
}

// The log has the first part of the slot, the slab all of it.
TEST(Kill, WhatIsInBothIsReadOnce) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  LaneBuilder& lane = builder.lane(1);
  const uint32_t stack = lane.stack({{"a.py", "f", 1}});
  lane.alloc(10, 1, 8, kCpu, stack);
  lane.seal();
  lane.alloc(20, 2, 8, kCpu, stack);
  lane.seal();
  lane.alloc(30, 3, 8, kCpu, stack);
  ASSERT_TRUE(builder.kill().ok());
  EXPECT_THAT(addresses(directory.path()), ElementsAre(1, 2, 3));
  auto reader = TraceReader::open(directory.path());
  ASSERT_TRUE(reader.ok());
  for (Event event; reader.value().next(event);) {
    EXPECT_EQ(event.time, kEpochNs + 10 * event.addr);
    EXPECT_TRUE(event.stack);  // the definitions in the log serve the slab's events
  }
}

// Killed after the append and before the slot was freed: same bytes twice, whatever its state.
TEST(Kill, TheStateOfASlotDoesNotMatter) {
  for (uint32_t state = 0; state < 4; ++state) {
    TestDirectory directory;
    TraceBuilder builder(directory.path(), kBare);
    builder.lane(1).alloc(10, 1, 8, kCpu, 0);
    builder.lane(1).seal();
    builder.lane(2).alloc(20, 2, 8, kCpu, 0);
    ASSERT_TRUE(builder.kill().ok());
    patch(directory / kSlabName, kSlot0, &state, sizeof(state));
    patch(directory / kSlabName, kSlot0 + kSlotBytes, &state, sizeof(state));
    EXPECT_THAT(addresses(directory.path()), ElementsAre(1, 2));
  }
}

// A record's first word is stored last: without it, the rest of the record does not count.
TEST(Kill, AHalfWrittenRecordIsNotThere) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  LaneBuilder& lane = builder.lane(1, 0, "python");  // begins with a Lane record
  lane.alloc(10, 1, 8, kCpu, 0);
  lane.alloc(20, 2, 8, kCpu, 0);
  ASSERT_TRUE(builder.kill().ok());
  const size_t words = encoded_words(LaneRecord{.thread_name = "python"}) + 3;  // an alloc has 3
  const size_t second_alloc = kSlot0Records + words * sizeof(uint64_t);
  const uint64_t zero = 0;
  patch(directory / kSlabName, second_alloc, &zero, sizeof(zero));
  std::vector<std::string> damage;
  EXPECT_THAT(addresses(directory.path(), &damage), ElementsAre(1));
  EXPECT_THAT(damage, IsEmpty());
}

TEST(Kill, ALogCutAnywhereLosesNothingThatTheSlabStillHas) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  builder.lane(1).seal();
  const size_t whole = builder.log_bytes();
  builder.lane(1).alloc(20, 2, 8, kCpu, 0);
  builder.lane(1).seal();  // this append is the one that the kill interrupts
  builder.lane(1).alloc(30, 3, 8, kCpu, 0);
  ASSERT_TRUE(builder.kill().ok());
  const std::string log = read_bytes(directory / kLogName);
  for (size_t size = sizeof(LogHeader); size <= log.size(); ++size) {
    write_bytes(directory / kLogName, log.substr(0, size));
    std::vector<std::string> damage;
    ASSERT_THAT(addresses(directory.path(), &damage), ElementsAre(1, 2, 3)) << size;
    ASSERT_THAT(damage, IsEmpty()) << size << " of " << log.size() << ", whole " << whole;
  }
}

TEST(Kill, WithoutTheSlabACutChunkIsReportedOnce) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  builder.lane(1).seal();
  const size_t whole = builder.log_bytes();
  builder.lane(1).alloc(20, 2, 8, kCpu, 0);
  ASSERT_TRUE(builder.finish().ok());
  const std::string log = read_bytes(directory / kLogName);
  for (size_t size = whole + 1; size < log.size(); ++size) {
    write_bytes(directory / kLogName, log.substr(0, size));
    std::vector<std::string> damage;
    ASSERT_THAT(addresses(directory.path(), &damage), ElementsAre(1)) << size;
    ASSERT_THAT(damage, ElementsAre(HasSubstr("at offset " + std::to_string(whole) +
                                              ": the last chunk is cut short")));
  }
}

TEST(Kill, ASlabWithoutALogIsRead) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  ASSERT_TRUE(builder.kill().ok());
  for (const char* log : {"", "MSTRACE"}) {
    write_bytes(directory / kLogName, log);
    std::vector<std::string> damage;
    EXPECT_THAT(addresses(directory.path(), &damage), ElementsAre(1));
    EXPECT_THAT(damage, ElementsAre(HasSubstr(kLogName)));
  }
  std::filesystem::remove(directory / kLogName);
  EXPECT_THAT(addresses(directory.path()), ElementsAre(1));
}

// Two processes never share a slab; a copy beside the wrong log is left aside.
TEST(Kill, ASlabOfAnotherProcessIsRefused) {
  TestDirectory directory;
  TraceBuilder builder(directory.path(), kBare);
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  builder.lane(1).seal();
  builder.lane(1).alloc(20, 2, 8, kCpu, 0);
  ASSERT_TRUE(builder.kill().ok());
  const uint64_t other = 4712;
  patch(directory / kSlabName, offsetof(SlabHeader, pid), &other, sizeof(other));
  std::vector<std::string> damage;
  EXPECT_THAT(addresses(directory.path(), &damage), ElementsAre(1));
  EXPECT_THAT(damage, ElementsAre(HasSubstr("of process 4712, not of the log's process 4711")));
}

TEST(Kill, TheSlabMayLieWhereMetaJsonSays) {
  TestDirectory directory;
  TraceBuilder builder(directory / "p", kBare);
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  ASSERT_TRUE(builder.kill().ok());
  std::filesystem::rename((directory / "p") / kSlabName, directory / "elsewhere");
  write_bytes(directory / "p" / kMetaName,
              R"({"slab": ")" + (directory / "elsewhere").string() + R"("})");
  EXPECT_THAT(addresses(directory / "p"), ElementsAre(1));
  write_bytes(directory / "p" / kMetaName, R"({"slab": "../elsewhere"})");
  EXPECT_THAT(addresses(directory / "p"), ElementsAre(1));
  write_bytes(directory / "p" / kMetaName, R"({"slab": ""})");  // no slab was made
  std::vector<std::string> damage;
  EXPECT_THAT(addresses(directory / "p", &damage), IsEmpty());
  EXPECT_THAT(damage, IsEmpty());
}

TEST(Kill, AMissingSlabIsSaid) {
  TestDirectory directory;
  TraceBuilder builder(directory.path());
  builder.lane(1).alloc(10, 1, 8, kCpu, 0);
  ASSERT_TRUE(builder.finish().ok());
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(directory / kLogName, old);
  std::vector<std::string> damage;
  EXPECT_EQ(addresses(directory.path(), &damage).size(), 2u);  // the Process record, the alloc
  EXPECT_THAT(damage, ElementsAre(HasSubstr("hot.slab is missing")));
}

}  // namespace
}  // namespace memscope
