// What the kernel says of the process's memory, beside what was counted: RSS and its parts, swap,
// the control group. Read by the agent's thread while the host source records, and once more when a
// window closes.
//
//   counter record     from                           how often
//   rss, rss.anonymous,
//   rss.file,
//   rss.shmem, swap    /proc/self/status              every second: counters of the kernel's own
//   cgroup.current,
//   cgroup.limit       memory.current and memory.max  every second; of version 1
//                      (version 2)                    memory.usage_in_bytes, memory.limit_in_bytes
//   agent.slab         the agent's own                every second
//   a smaps record     /proc/self/smaps_rollup        every 10 s, or 2,000 times as long as it took
//
// Guarantees
//  * At most 0.1 % of a core: the first files cost some 20 us together. smaps_rollup walks the page
//    tables under the lock that mmap takes: what it took decides when it is read again, and once it
//    took more than kTooLongNs it is read no more.
//  * No malloc, no stdio. A file that is missing or unreadable is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memscope::capture {

struct MemoryCounters {
  static constexpr int64_t kUnknown = -1;
  int64_t rss = kUnknown, anonymous = kUnknown, file = kUnknown, shmem = kUnknown;
  int64_t swap = kUnknown;
  int64_t cgroup = kUnknown, cgroup_limit = kUnknown;  // no limit: unknown
};

struct SmapsRollup {
  uint64_t rss = 0, pss = 0, anonymous = 0, swap = 0;
};

// When a reading is due whose cost is not known before.
class CostlyReading {
 public:
  static constexpr uint64_t kEveryNs = 10'000'000'000u, kTimesCost = 2000,
                            kTooLongNs = 100'000'000u;
  bool due(uint64_t now_ns) const { return !given_up_ && now_ns >= next_ns_; }
  void took(uint64_t now_ns, uint64_t cost_ns);
  bool given_up() const { return given_up_; }

 private:
  uint64_t next_ns_ = 0;
  bool given_up_ = false;
};

namespace memory_counters {

// Of the files' texts.
void parse_status(std::string_view text, MemoryCounters* out);
bool parse_smaps_rollup(std::string_view text, SmapsRollup* out);
int64_t parse_limit(std::string_view text);  // kUnknown for "max" and for version 1's huge number
// The process's place below the controller, from /proc/self/cgroup: of the memory controller of
// version 1 if there is one, else of version 2.
struct CgroupPlace {
  std::string_view path;
  bool version1 = false, found = false;
};
CgroupPlace parse_cgroup(std::string_view text);

// By the agent's thread: reads what is due, without a lock; write_read() under the trace lock then.
void read_due(uint64_t now_ns) noexcept;
void write_read() noexcept;
// As a window closes, trace lock held: reads the cheap ones and writes them.
void write_last() noexcept;
void forget_after_fork() noexcept;

}  // namespace memory_counters
}  // namespace memscope::capture
