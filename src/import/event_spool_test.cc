// Sorted by process, time and id, however many there are and in whatever order they come.
#include "import/event_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <random>

#include "trace/records.h"

namespace memscope {
namespace {

using ::testing::HasSubstr;

SpoolEntry block(uint64_t time, uint64_t id, uint16_t part = 0) {
  SpoolEntry entry;
  entry.kind = EventKind::kAlloc;
  entry.time = time;
  entry.id = id;
  entry.part = part;
  entry.addr = time * 3 + id;
  return entry;
}

TEST(EventSpool, SmallAndOutOfOrder) {
  EventSpool spool;
  spool.add(block(30, 1));
  spool.add(block(10, 9));
  spool.add(block(10, 2));
  spool.add(block(5, 1, 1));  // another process
  ASSERT_TRUE(spool.finish().ok());
  SpoolReader reader(spool, 0, SpoolReader::kAll);
  EXPECT_EQ(reader.next()->id, 2u);
  EXPECT_EQ(reader.next()->id, 9u);
  EXPECT_EQ(reader.next()->time, 30u);
  EXPECT_EQ(reader.next(), nullptr);
  EXPECT_EQ(reader.next(), nullptr);
  SpoolReader none(spool, 7, SpoolReader::kAll);
  EXPECT_EQ(none.next(), nullptr);
}

TEST(EventSpool, ManyRunsOfTwoProcesses) {
  // 1 M entries of 64 B are four runs of 16 MiB; random times; an incompressible address each, so
  // that they do not fit into the memory of 32 MiB and go to the temporary file.
  EventSpool spool;
  std::mt19937_64 random(1);
  constexpr uint64_t kCount = 1'000'000;
  for (uint64_t i = 0; i < kCount; ++i) {
    SpoolEntry entry = block(random(), i, static_cast<uint16_t>(i % 2));
    entry.addr = entry.time ^ i;
    entry.size = random();
    entry.allocated = random();
    entry.reserved = random();
    spool.add(entry);
  }
  ASSERT_TRUE(spool.finish().ok());
  EXPECT_GE(spool.runs(), 4u);
  EXPECT_GT(spool.bytes(), EventSpool::kMemoryBytes);
  for (uint16_t part = 0; part < 2; ++part) {
    SpoolReader reader(spool, part, SpoolReader::kAll);
    uint64_t count = 0, time = 0;
    while (const SpoolEntry* entry = reader.next()) {
      ASSERT_LE(time, entry->time);
      ASSERT_EQ(entry->addr, entry->time ^ entry->id);
      ASSERT_EQ(entry->id % 2, part);
      time = entry->time;
      ++count;
    }
    EXPECT_EQ(count, kCount / 2);
    EXPECT_FALSE(reader.damaged());
  }
}

TEST(EventSpool, RecordsComeWithTheirWords) {
  EventSpool spool;
  for (uint64_t i = 1000; i > 0; --i) {
    std::vector<uint64_t> words;
    append_record(MarkRecord{.text = std::string(i % 50, 'x')}, 0, 0, words);
    SpoolEntry entry;
    entry.time = i * 2;
    entry.record_kind = static_cast<uint8_t>(Kind::kMark);
    spool.add(entry, words);
    spool.add(block(i * 2 + 1, 0));
  }
  ASSERT_TRUE(spool.finish().ok());
  SpoolReader records(spool, 0, SpoolReader::kRecords);
  uint64_t i = 0;
  while (const SpoolEntry* entry = records.next()) {
    ASSERT_EQ(entry->time, ++i * 2);
    const auto mark = decode_record<MarkRecord>(records.words());
    ASSERT_TRUE(mark);
    ASSERT_EQ(mark->text.size(), i % 50);
  }
  EXPECT_EQ(i, 1000u);
  SpoolReader all(spool, 0, SpoolReader::kAll);
  uint64_t count = 0;
  while (all.next() != nullptr) ++count;
  EXPECT_EQ(count, 2000u);
}

TEST(EventSpool, NoRoomToSortIsOneClearLine) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{1 << 20, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EventSpool spool;
  std::mt19937_64 random(1);
  uint64_t added = 0;
  for (; added < 2'000'000 && !spool.failed(); ++added) {
    SpoolEntry entry = block(random(), random());
    entry.size = random();
    entry.allocated = random();
    entry.reserved = random();
    spool.add(entry);
  }
  const auto finished = spool.finish();
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_LT(added, 2'000'000u);  // one need not read on
  ASSERT_FALSE(finished.ok());
  EXPECT_THAT(finished.error().message,
              HasSubstr("while sorting events; set TMPDIR to a directory with more room"));
}

}  // namespace
}  // namespace memscope
