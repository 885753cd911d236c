#include "capture/memory_counters.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "capture/agent_state.h"
#include "capture/clock.h"
#include "capture/host_events.h"
#include "capture/lane0.h"
#include "capture/recorder.h"

namespace memscope::capture {

void CostlyReading::took(uint64_t now_ns, uint64_t cost_ns) {
  given_up_ = cost_ns > kTooLongNs;
  next_ns_ = now_ns + (cost_ns * kTimesCost > kEveryNs ? cost_ns * kTimesCost : kEveryNs);
}

namespace memory_counters {
namespace {

constexpr uint64_t kSecond = 1'000'000'000u;

// The number behind "NAME:" at the beginning of a line, in bytes ("kB" in these files is 1,024).
bool find_kib(std::string_view text, std::string_view name, uint64_t* bytes) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    line.remove_prefix(name.size() + 1);
    const size_t digits = line.find_first_not_of(" \t");
    if (digits == std::string_view::npos) return false;
    line.remove_prefix(digits);
    uint64_t kib = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), kib);
    if (error != std::errc{} || stop == line.data() || kib > UINT64_MAX / 1024) return false;
    *bytes = kib * 1024;
    return true;
  }
  return false;
}

void find_into(std::string_view text, std::string_view name, int64_t* out) {
  uint64_t bytes = 0;
  if (find_kib(text, name, &bytes)) *out = static_cast<int64_t>(bytes);
}

// A whole small file; "" where it cannot be read.
template <size_t kSize>
class SmallFile {
 public:
  explicit SmallFile(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    while (length_ < kSize) {
      const ssize_t got = read(fd, text_ + length_, kSize - length_);
      if (got <= 0) break;
      length_ += static_cast<size_t>(got);
    }
    close(fd);
  }
  std::string_view text() const { return {text_, length_}; }

 private:
  char text_[kSize];
  size_t length_ = 0;
};

// The control group's two files, once found; "" = there are none.
struct CgroupFiles {
  bool looked = false;
  char current[512], limit[512];
};
constinit CgroupFiles cgroup{};

bool set_paths(const char* root, std::string_view place, bool version1) {
  const auto length = static_cast<int>(place.size());
  const char* names[] = {version1 ? "memory.usage_in_bytes" : "memory.current",
                         version1 ? "memory.limit_in_bytes" : "memory.max"};
  std::snprintf(cgroup.current, sizeof(cgroup.current), "%s%.*s/%s", root, length, place.data(),
                names[0]);
  std::snprintf(cgroup.limit, sizeof(cgroup.limit), "%s%.*s/%s", root, length, place.data(),
                names[1]);
  return access(cgroup.current, R_OK) == 0;
}

void find_cgroup() {
  if (cgroup.looked) return;
  cgroup.looked = true;
  const SmallFile<4096> file("/proc/self/cgroup");
  const CgroupPlace place = parse_cgroup(file.text());
  const char* root = place.version1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  // In a container the place may be the host's, and what is mounted the container's own.
  if (place.found && (set_paths(root, place.path == "/" ? "" : place.path, place.version1) ||
                      set_paths(root, "", place.version1))) {
    return;
  }
  cgroup.current[0] = cgroup.limit[0] = '\0';
}

MemoryCounters read_cheap() {
  MemoryCounters found;
  const SmallFile<4096> status("/proc/self/status");
  parse_status(status.text(), &found);
  find_cgroup();
  if (cgroup.current[0] != '\0') {
    found.cgroup = parse_limit(SmallFile<64>(cgroup.current).text());
    found.cgroup_limit = parse_limit(SmallFile<64>(cgroup.limit).text());
  }
  return found;
}

void write(const MemoryCounters& values) {
  const auto put = [](std::string_view name, int64_t value) {
    if (value == MemoryCounters::kUnknown) return;
    write_lane0(CounterRecord{.name = name, .where = kHostMemory.packed(), .value = value});
  };
  put("rss", values.rss);
  put("rss.anonymous", values.anonymous);
  put("rss.file", values.file);
  put("rss.shmem", values.shmem);
  put("swap", values.swap);
  put("cgroup.current", values.cgroup);
  put("cgroup.limit", values.cgroup_limit);
  put("agent.slab", static_cast<int64_t>(state.slab.bytes()));
}

bool wanted() {
  return state.host_on.load(std::memory_order_relaxed) != 0 &&
         state.recording.load(std::memory_order_relaxed) != 0;
}

// What the calling thread has computed, in the kernel too.
uint64_t thread_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// The agent's thread's own.
uint64_t next_cheap_ns = 0;
CostlyReading rollup_pace;
bool have_cheap = false, have_rollup = false;
MemoryCounters cheap;
SmapsRollup rollup;

}  // namespace

void parse_status(std::string_view text, MemoryCounters* out) {
  find_into(text, "VmRSS", &out->rss);
  find_into(text, "RssAnon", &out->anonymous);
  find_into(text, "RssFile", &out->file);
  find_into(text, "RssShmem", &out->shmem);
  find_into(text, "VmSwap", &out->swap);
}

bool parse_smaps_rollup(std::string_view text, SmapsRollup* out) {
  return find_kib(text, "Rss", &out->rss) && find_kib(text, "Pss", &out->pss) &&
         find_kib(text, "Anonymous", &out->anonymous) && find_kib(text, "Swap", &out->swap);
}

int64_t parse_limit(std::string_view text) {
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes the largest page count
  if (error != std::errc{} || end == text.data() || bytes >= kNoLimit) {
    return MemoryCounters::kUnknown;
  }
  return static_cast<int64_t>(bytes);
}

// Lines "HIERARCHY:CONTROLLERS:PATH" (cgroups(7)); version 2 is hierarchy 0 without controllers.
CgroupPlace parse_cgroup(std::string_view text) {
  CgroupPlace place;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) {
      if (!place.found) place = {line.substr(second + 1), false, true};
      continue;
    }
    while (!controllers.empty()) {
      const size_t comma = controllers.find(',');
      if (controllers.substr(0, comma) == "memory") return {line.substr(second + 1), true, true};
      controllers =
          comma == std::string_view::npos ? std::string_view{} : controllers.substr(comma + 1);
    }
  }
  return place;
}

void read_due(uint64_t now_ns) noexcept {
  if (!wanted() || now_ns < next_cheap_ns) return;
  next_cheap_ns = now_ns + kSecond;
  cheap = read_cheap();
  have_cheap = true;
  if (!rollup_pace.due(now_ns)) return;
  // By this thread's own time: how long it waited for a processor says nothing of the walk's cost.
  const uint64_t before_ns = thread_ns();
  const SmallFile<4096> file("/proc/self/smaps_rollup");
  have_rollup = parse_smaps_rollup(file.text(), &rollup);
  rollup_pace.took(now_ns, thread_ns() - before_ns);
  if (rollup_pace.given_up()) {
    notice("smaps_rollup", "took more than 0.1 s and is read no more");
  }
}

void write_read() noexcept {
  if (have_cheap) write(cheap);
  if (have_rollup) {
    write_lane0(SmapsRecord{.group = "all",
                            .rss = rollup.rss,
                            .pss = rollup.pss,
                            .anonymous = rollup.anonymous,
                            .swap = rollup.swap});
  }
  have_cheap = have_rollup = false;
}

void write_last() noexcept {
  if (state.host_on.load(std::memory_order_relaxed) != 0 && state.slab.mapped()) {
    write(read_cheap());
  }
}

void forget_after_fork() noexcept {
  have_cheap = have_rollup = false;
  next_cheap_ns = 0;
  rollup_pace = {};
  cgroup.looked = false;
}

}  // namespace memory_counters
}  // namespace memscope::capture
