#include "view/index_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "trace/test_directory.h"
#include "view/index_file.h"
#include "view/test_index.h"

namespace memscope::view {
namespace {

namespace fs = std::filesystem;

TEST(IndexCache, IsClosedToOthersAndKeepsWhatIsCommitted) {
  const TestDirectory directory;
  const IndexCache cache(directory / "view");
  ASSERT_TRUE(cache.usable());
  struct stat status {};
  ASSERT_EQ(stat((directory / "view").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_FALSE(cache.find("key"));
  const fs::path room = cache.make_room();
  write_bytes(room / "file", "x");
  EXPECT_FALSE(cache.find("key"));  // not yet whole
  ASSERT_TRUE(cache.commit(room, "key"));
  ASSERT_TRUE(cache.find("key"));
  EXPECT_EQ(read_bytes(*cache.find("key") / "file"), "x");
  EXPECT_FALSE(cache.find("other"));
}

TEST(IndexCache, KeepsTexts) {
  const TestDirectory directory;
  const IndexCache cache(directory / "view");
  EXPECT_FALSE(cache.find_text("key\n"));
  cache.keep_text("key\n", "{}");
  EXPECT_EQ(cache.find_text("key\n"), "{}");
  EXPECT_FALSE(cache.find_text("other\n"));
}

TEST(IndexCache, ADirectoryThatOthersMayWriteIsNotUsed) {
  const TestDirectory directory;
  fs::create_directory(directory / "view");
  fs::permissions(directory / "view", fs::perms::all);
  EXPECT_FALSE(IndexCache(directory / "view").usable());
  fs::create_directory_symlink(directory.path(), directory / "link");
  EXPECT_FALSE(IndexCache(directory / "link").usable());
  EXPECT_FALSE(IndexCache(directory / "none" / "deeper").usable());
}

TEST(IndexCache, WhatWasUsedLongestAgoGoesFirst) {
  const TestDirectory directory;
  const IndexCache cache(directory / "view");
  const std::string megabyte(1 << 20, 'x');
  for (const char* key : {"a", "b", "c"}) {
    const fs::path room = cache.make_room();
    write_bytes(room / "file", megabyte);
    ASSERT_TRUE(cache.commit(room, key));
  }
  // Used at 30, 10 and 20 s.
  const auto used = [&](const char* key, time_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    utimensat(AT_FDCWD, cache.find(key)->c_str(), times, 0);
  };
  used("a", 30), used("b", 10), used("c", 20);
  cache.evict(5 << 19);  // 2.5 MB: one must go
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_TRUE(cache.find("c"));
  cache.evict(1);  // the newest stays
  EXPECT_TRUE(cache.find("a").has_value() != cache.find("c").has_value());
}

TEST(IndexCache, AnInputThatChangesIsAnotherInput) {
  const TestDirectory directory;
  write_bytes(directory / "trace.msm", "one");
  const std::string before = input_key(directory.path());
  EXPECT_EQ(input_key(directory.path()), before);
  write_bytes(directory / "trace.msm", "two and more");
  EXPECT_NE(input_key(directory.path()), before);
}

TEST(IndexFile, ComesBackAsItWas) {
  const TestDirectory directory;
  fs::create_directory(directory / "room");
  IndexScript script(directory / "room");
  const StackId stack = script.line(99, "leak");
  script.alloc(0, 0xA0, 100, stack);
  script.record(1, OwnerRecord{.addr = 0xA0, .owner = "model@weight"});
  script.record(2, PhaseRecord{.phase = 2, .module = "net"});
  script.record(3, MarkRecord{.action = 1, .range = 4, .text = "epoch", .domain = "d"});
  script.record(4, MarkRecord{.action = 2, .range = 4});
  script.record(5, CounterRecord{.name = "rss", .value = -3});
  script.record(6, SourceRecord{.path = "/home/me/train.py", .text = "a\nb\n"});
  script.record(7, HolderRecord{.addr = 0xA0, .root = "module", .text = "__main__.store"});
  script.free(10, 0xA0);
  script.alloc(11, 0xB0, 7, stack, 2);
  // Two calls from one function of a library: told apart by nothing but their offsets.
  script.alloc(12, 0xC0, 1, script.native(stack, "/lib/a.so", "cafe", 0x10));
  script.alloc(13, 0xD0, 2, script.native(stack, "/lib/a.so", "cafe", 0x20));
  script.record(14, ModuleRecord{.path = "/lib/old.so", .mtime_ns = 77, .action = "load"});
  script.free(15, 0xC0), script.free(16, 0xD0);
  script.step(100);
  const auto made = script.build();
  ASSERT_TRUE(save_index(*made, "key", directory / "room"));
  EXPECT_FALSE(load_index("another", directory / "room"));
  auto loaded = load_index("key", directory / "room");
  ASSERT_TRUE(loaded) << loaded.error().message;
  const InputIndex& index = *loaded.value();
  EXPECT_EQ(index.origin, made->origin);
  EXPECT_EQ(index.facts.path, "/runs/1");
  EXPECT_EQ(index.owners, made->owners);
  EXPECT_EQ(index.steps.ends, std::vector<uint64_t>{100});
  EXPECT_EQ(index.names, made->names);
  EXPECT_EQ(index.marks[0].end, 4u);
  EXPECT_EQ(index.counters[0].values, std::vector<int64_t>{-3});
  EXPECT_EQ(index.side.sources.at("/home/me/train.py").text, "a\nb\n");
  EXPECT_EQ(index.side.holders[0].text, "__main__.store");
  EXPECT_EQ(index.thread_name(2), "worker (102)");
  ASSERT_EQ(index.pools.size(), 1u);
  const PoolIndex &a = *made->pools[0], &b = *index.pools[0];
  ASSERT_EQ(b.events(), a.events());
  ASSERT_EQ(b.blocks(), 4u);
  EXPECT_EQ(b.peak.bytes, 100u);
  EXPECT_EQ(b.live_bytes, 7u);
  EXPECT_EQ(b.end_time(1), 10u);
  EXPECT_EQ(b.thread[2], 2);
  EXPECT_EQ(index.site_place(index.site_of_stack(b.stack[1])), "train.py:99");
  EXPECT_EQ(index.site(index.site_of_stack(b.stack[1])).function, "leak");
  EXPECT_EQ(index.describe_stack(b.stack[3], 1).at(0).function, "a.so+0x10");
  EXPECT_EQ(index.describe_stack(b.stack[4], 1).at(0).function, "a.so+0x20");
  EXPECT_EQ(index.side.unnamed_modules, made->side.unnamed_modules);
  EXPECT_FALSE(index.side.unnamed_modules.empty());
}

TEST(IndexFile, DamageIsFoundOut) {
  const TestDirectory directory;
  fs::create_directory(directory / "room");
  IndexScript script(directory / "room");
  script.alloc(0, 0xA0, 100, script.line(1));
  script.free(5, 0xA0);
  const auto made = script.build();
  ASSERT_TRUE(save_index(*made, "key", directory / "room"));
  const std::string tables = read_bytes(directory / "room" / "tables");
  ASSERT_TRUE(load_index("key", directory / "room"));
  // Cut anywhere, or with a byte more: an error, never a crash.
  for (size_t size = 0; size < tables.size(); ++size) {
    write_bytes(directory / "room" / "tables", tables.substr(0, size));
    ASSERT_FALSE(load_index("key", directory / "room")) << size;
  }
  write_bytes(directory / "room" / "tables", tables + "x");
  EXPECT_FALSE(load_index("key", directory / "room"));
  write_bytes(directory / "room" / "tables", tables);
  write_bytes(directory / "room" / "p0.time", "short");
  EXPECT_FALSE(load_index("key", directory / "room"));
}

TEST(FileVector, GrowsKeepsAndTrims) {
  const TestDirectory directory;
  for (const fs::path& path : {fs::path(), directory / "column"}) {
    FileVector<uint32_t> column(path);
    for (uint32_t i = 0; i < 100'000; ++i) column.push_back(i * 3);
    column.finish();
    EXPECT_EQ(column.in_file(), !path.empty());
    for (uint32_t i = 0; i < 100'000; i += 999) EXPECT_EQ(column[i], i * 3);
    if (path.empty()) continue;
    EXPECT_EQ(fs::file_size(path), 400'000u);
    auto mapped = FileVector<uint32_t>::map(path, 100'000);
    ASSERT_TRUE(mapped);
    EXPECT_EQ(mapped.value()[99'999], 299'997u);
    EXPECT_FALSE(FileVector<uint32_t>::map(path, 99'999));
  }
}

}  // namespace
}  // namespace memscope::view
