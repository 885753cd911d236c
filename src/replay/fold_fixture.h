// A pretend job whose log is cut into segments, as the agent's is, and what replay makes of it: for
// tests of folding.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "replay/replay.h"
#include "replay/trace_events.h"
#include "trace/reader.h"
#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {

struct FoldJob {
  uint32_t steps = 1000;
  uint32_t segments = 10;
  StepSource source = StepSource::kApi;  // kMstxStart: ranges; kOptimizer: two of them
  bool no_steps = false;
  uint64_t step_ns = 1'000'000;
  bool pause = false;        // stop() and start() in the middle
  bool killed = false;       // what came last is in the slab
  uint64_t host_sample = 0;  // not 0: host memory, sampled
  uint32_t seed = 1;
};

// Writes the job's trace to <directory>/trace.msm as one log and returns where it is cut.
inline std::vector<uint64_t> write_job(const std::filesystem::path& directory, const FoldJob& job) {
  const Where kCpu{job.host_sample != 0 ? Layer::kHost : Layer::kTensor, {0, 0}};
  constexpr Where kPool{Layer::kPool, {1, 0}};
  TraceBuilder builder(directory);
  std::mt19937 random(job.seed);
  LaneBuilder& agent = builder.agent();
  LaneBuilder& one = builder.lane(1, 11, "python");
  LaneBuilder& two = builder.lane(2, 12, "worker");
  std::vector<uint64_t> cuts;
  uint64_t now = 100;
  const auto tick = [&] { return now += 10; };
  agent.record(now, SourceRecord{.path = "/a/train.py", .text = "leak = make()\n"});
  if (job.host_sample != 0) {
    agent.record(now,
                 ConfigRecord{.key = kHostSampleKey, .value = std::to_string(job.host_sample)});
  }
  agent.record(now, window_record(WindowAction::kStart, now));
  agent.record(
      now,
      SeedRecord{
          .addr = 0x10, .sized = pack_sized(4096, kCpu.packed()), .birth = 0, .window_ticks = now});
  const auto at = [&](LaneBuilder& lane, uint32_t line) {
    return lane.stack({{"/a/train.py", "main", 1}, {"/a/train.py", "step", line}});
  };
  struct Live {
    uint64_t addr;
    Where where;
  };
  std::vector<Live> live;  // with lifetimes of all lengths
  uint64_t next_addr = 0x1000, pool_bytes = 0;
  std::map<uint64_t, uint64_t> pool_sizes;
  const auto alloc = [&](LaneBuilder& lane, uint32_t line, uint64_t size, Where where) {
    const uint64_t addr = next_addr += 0x100;
    if (where == kPool) {
      pool_bytes += size;
      pool_sizes[addr] = size;
      lane.pool_alloc(tick(), addr, size, where, at(lane, line), pool_bytes, pool_bytes + 4096);
    } else {
      lane.alloc(tick(), addr, size, where, at(lane, line));
    }
    return Live{addr, where};
  };
  const auto free = [&](LaneBuilder& lane, const Live& block) {
    if (block.where == kPool) {
      pool_bytes -= pool_sizes[block.addr];
      lane.pool_free(tick(), block.addr, block.where, pool_bytes, pool_bytes + 8192);
    } else {
      lane.free(tick(), block.addr, block.where);
    }
  };
  uint32_t next_cut = 1;
  for (uint32_t step = 1; step <= job.steps; ++step) {
    const uint64_t begin = now;
    if (job.source == StepSource::kMstxStart && !job.no_steps) {
      one.record(tick(), MarkRecord{.action = 1, .range = step, .text = "step start"});
    }
    const Live leak = alloc(one, 10, 1000 + step % 7, kCpu);
    if (step % 3 == 0) free(two, leak);  // two in three stay
    if (step == 2) one.record(tick(), OwnerRecord{.addr = leak.addr, .owner = "PTA@model@weight"});
    for (int i = 0; i < 6; ++i) {
      LaneBuilder& lane = random() % 2 == 0 ? one : two;
      live.push_back(alloc(lane, 20 + random() % 5, 64 * (1 + random() % 50),
                           random() % 3 == 0 ? kPool : kCpu));
    }
    while (live.size() > 40 + step % 100) {
      const size_t which = random() % live.size();
      free(random() % 2 == 0 ? one : two, live[which]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(which));
    }
    if (step % 50 == 0) two.free(tick(), 0x77, kCpu);  // of nobody
    now = std::max(now, begin + job.step_ns);
    if (!job.no_steps) {
      if (job.source == StepSource::kMstxStart) {
        one.record(tick(), MarkRecord{.action = 2, .range = step, .text = "step start"});
        tick();
      } else if (job.source == StepSource::kOptimizer) {
        one.record(tick(), StepRecord{.source = 4, .index = step, .optimizer = 1, .name = "Adam"});
        if (step % 2 == 0) {
          one.record(tick(),
                     StepRecord{.source = 4, .index = step / 2, .optimizer = 2, .name = "SGD"});
        }
      } else {
        one.record(tick(), StepRecord{.source = 1, .index = step});
      }
    }
    agent.record(tick(), CounterRecord{.name = "rss", .value = static_cast<int64_t>(step)});
    if (job.pause && step == job.steps / 2) {
      agent.record(tick(), window_record(WindowAction::kStop, now));
      tick();
      // Of the blocks every second one was freed meanwhile.
      std::vector<Live> rest;
      for (size_t i = 0; i < live.size(); i += 2) rest.push_back(live[i]);
      const uint64_t opened = tick();
      agent.record(tick(), window_record(WindowAction::kStart, opened));
      for (const Live& block : rest) {
        const uint64_t size = block.where == kPool ? pool_sizes[block.addr] : 64;
        agent.record(tick(), SeedRecord{.addr = block.addr,
                                        .sized = pack_sized(size, block.where.packed()),
                                        .birth = 0,
                                        .window_ticks = opened});
      }
      live = rest;
    }
    if (step == job.steps * next_cut / job.segments && next_cut < job.segments) {
      ++next_cut;
      for (LaneBuilder* lane : {&agent, &one, &two}) lane->seal();
      cuts.push_back(builder.log_bytes());
    }
  }
  if (job.killed) {
    EXPECT_TRUE(builder.kill().ok());
    return cuts;
  }
  agent.record(tick(), window_record(WindowAction::kStop, now));
  EXPECT_TRUE(builder.finish().ok());
  return cuts;
}

// Puts segments `first` to `last` (from 1) of a log cut at `cuts` into `directory`.
inline void put_segments(const std::string& log, const std::vector<uint64_t>& cuts, size_t first,
                         size_t last, const std::filesystem::path& directory) {
  for (size_t number = first; number <= last; ++number) {
    const uint64_t from = number == 1 ? sizeof(LogHeader) : cuts[number - 2];
    const uint64_t to = number - 1 < cuts.size() ? cuts[number - 1] : log.size();
    LogHeader header{};
    std::memcpy(&header, log.data(), sizeof(header));
    header.flags = flags_of_segment(static_cast<uint32_t>(number));
    std::string bytes(sizeof(header), '\0');
    std::memcpy(bytes.data(), &header, sizeof(header));
    char name[kSegmentNameBytes];
    segment_name(name, static_cast<uint32_t>(number));
    write_bytes(directory / name, bytes + log.substr(from, to - from));
  }
}

// What replay makes of a trace, in a form that can be compared.
struct Seen {
  using Curve = std::vector<std::tuple<uint32_t, uint32_t, uint64_t, uint64_t>>;  // bucket, blocks,
                                                                                  // bytes, noise
  struct OfGroup {
    uint64_t allocs = 0, live_bytes = 0, live_blocks = 0, live_noise = 0;
    double stands_for = 0;
    Curve live, survivors;
    std::pair<uint32_t, uint64_t> of_start;
    friend bool operator==(const OfGroup&, const OfGroup&) = default;
  };
  struct OfPool {
    bool has_totals = false;
    std::vector<uint64_t> levels;
    std::vector<std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>> buckets;
    std::vector<std::tuple<uint32_t, double, uint64_t>> gaps;
    friend bool operator==(const OfPool&, const OfPool&) = default;
  };
  StepsFrom from{};
  uint32_t steps = 0, width = 0;
  std::map<std::string, OfGroup> groups;
  std::map<uint16_t, OfPool> pools;
  // Address, size, size as sampled, birth, group, step, fate unknown, owner.
  std::vector<
      std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, std::string, uint32_t, bool, std::string>>
      live;
  std::vector<uint64_t> counts;
  FoldedPast folded;
};

inline Seen see(const std::filesystem::path& directory) {
  Seen seen;
  auto opened = TraceReader::open(directory);
  EXPECT_TRUE(opened.ok()) << (opened ? "" : opened.error().message);
  if (!opened) return seen;
  TraceEvents events(opened.value());
  const ReplayResult result = replay(events, {});
  EXPECT_THAT(opened.value().damage(), testing::IsEmpty());
  const TraceReader& reader = opened.value();
  const auto curve = [](const std::vector<CurvePoint>& points) {
    Seen::Curve list;
    for (const CurvePoint& p : points) list.emplace_back(p.bucket, p.blocks, p.bytes, p.noise);
    return list;
  };
  std::vector<std::string> names;
  for (const Group& group : result.groups) {
    std::string name = group.seeded ? "seeded" : "";
    for (const FrameId id : reader.stacks().frames(group.stack)) {
      const Frame& frame = reader.stacks().frame(id);
      name += std::string(reader.strings().text(frame.function)) + ":" +
              std::to_string(frame.line) + " ";
    }
    name += std::to_string(group.where.packed());
    names.push_back(name);
    if (names.size() == 1) continue;
    seen.groups[name] = {
        group.allocs,           group.live_bytes,
        group.live_blocks,      group.live_noise,
        group.stands_for,       curve(group.live),
        curve(group.survivors), {group.survivors_of_start.blocks, group.survivors_of_start.bytes}};
  }
  for (const Pool& pool : result.pools) {
    Seen::OfPool& of = seen.pools[pool.where.packed()];
    of.has_totals = pool.has_totals;
    of.levels = {pool.allocated.start, pool.allocated.peak, pool.allocated.end, pool.reserved.start,
                 pool.reserved.peak,   pool.reserved.end,   pool.peak_noise,    pool.live_noise};
    for (const PoolBucket& b : pool.buckets)
      of.buckets.emplace_back(b.min, b.max, b.end, b.reserved_end);
    for (const PoolGap& g : {pool.min_gap, pool.max_gap}) {
      of.gaps.emplace_back(g.step, g.ratio, g.min_allocated);
    }
  }
  for (const LiveBlock& block : result.live) {
    seen.live.emplace_back(block.addr, block.size, block.sampled_size, block.birth,
                           names[block.group], block.step, block.fate_unknown,
                           result.side.owners[block.owner].owner);
  }
  std::sort(seen.live.begin(), seen.live.end());
  seen.from = result.plan.from;
  seen.steps = result.plan.count();
  seen.width = result.buckets.width;
  seen.counts = {result.events,      result.ambiguous,           result.unknown_frees,
                 result.preexisting, result.side.sources.size(), result.range.first,
                 result.range.last};
  seen.folded = result.folded;
  return seen;
}

inline void expect_same(const Seen& folded, const Seen& whole) {
  EXPECT_EQ(folded.from, whole.from);
  EXPECT_EQ(folded.steps, whole.steps);
  EXPECT_EQ(folded.width, whole.width);
  EXPECT_EQ(folded.counts, whole.counts);
  EXPECT_EQ(folded.live, whole.live);
  EXPECT_EQ(folded.groups.size(), whole.groups.size());
  for (const auto& [name, group] : whole.groups) {
    const auto found = folded.groups.find(name);
    ASSERT_NE(found, folded.groups.end()) << name;
    EXPECT_EQ(found->second.live, group.live) << name;
    EXPECT_EQ(found->second.survivors, group.survivors) << name;
    EXPECT_TRUE(found->second == group) << name;
  }
  EXPECT_EQ(folded.pools.size(), whole.pools.size());
  for (const auto& [where, pool] : whole.pools) {
    const Seen::OfPool& other = folded.pools.at(where);
    EXPECT_EQ(other.levels, pool.levels) << where;
    EXPECT_EQ(other.buckets, pool.buckets) << where;
    EXPECT_EQ(other.gaps, pool.gaps) << where;
    EXPECT_TRUE(other == pool) << where;
  }
}

}  // namespace memscope
