#include "capture/run_directory.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture/fixed_text.h"
#include "capture/process_stat.h"
#include "capture/settings.h"

namespace memscope::capture::run_directory {
namespace {

uint64_t nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t start_ns(pid_t pid) {
  ProcessStat stat;
  read_process_stat(pid, &stat);
  const auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  if (stat.start_ticks == 0 || per_second == 0) return nanoseconds(CLOCK_REALTIME);
  const uint64_t since_boot = stat.start_ticks * (1'000'000'000u / per_second);
  return nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_BOOTTIME) + since_boot;
}

// Each missing directory of the path, 0700. The last one may be there already.
int make_path(const char* path) {
  char partial[Settings::kPathMax];
  std::snprintf(partial, sizeof(partial), "%s", path);
  for (char* at = partial + 1;; ++at) {
    if (*at != '/' && *at != '\0') continue;
    const char end = *at;
    *at = '\0';
    if (mkdir(partial, 0700) != 0 && errno != EEXIST) return errno;
    if (end == '\0') return 0;
    *at = end;
  }
}

}  // namespace

const char* id() {
  if (settings.run_id[0] == '\0') {
    // All ranks of one launch share a parent: its start time and pid name the run.
    const pid_t pid = settings_io::rank_from_environment() >= 0 ? getppid() : getpid();
    // Not by gmtime_r(): it takes the lock of the time zone, which in a forked child may be held
    // for ever, by a thread that the child does not have.
    namespace time = std::chrono;
    const time::sys_seconds moment{time::seconds(start_ns(pid) / 1'000'000'000u)};
    const auto midnight = time::floor<time::days>(moment);
    const time::year_month_day day(midnight);
    const time::hh_mm_ss clock(moment - midnight);
    std::snprintf(settings.run_id, sizeof(settings.run_id), "%04d%02u%02uT%02ld%02ld%02ldZ-%d",
                  static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                  static_cast<unsigned>(day.day()), static_cast<long>(clock.hours().count()),
                  static_cast<long>(clock.minutes().count()),
                  static_cast<long>(clock.seconds().count()), static_cast<int>(pid));
  }
  return settings.run_id;
}

int make(char* out, size_t size) {
  FixedText run(out, size);
  run.add("%s/run-%s", settings.output_path, id());
  if (!run.whole()) return ENAMETOOLONG;
  if (const int error = make_path(out); error != 0) return error;
  char host[65] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') std::strcpy(host, "localhost");
  for (char& c : host) {
    if (c == '/') c = '_';
  }
  int64_t rank = settings.rank;
  if (rank < 0) rank = settings_io::rank_from_environment();
  char rank_text[24] = "x";
  if (rank >= 0) std::snprintf(rank_text, sizeof(rank_text), "%lld", static_cast<long long>(rank));
  const size_t parent = run.length();
  for (int n = 0; n < 10000; ++n) {
    FixedText process(out + parent, size - parent);
    process.add("/%s-%s-%d", host, rank_text, static_cast<int>(getpid()));
    if (n > 0) process.add(".%d", n);
    if (!process.whole()) return ENAMETOOLONG;
    if (mkdir(out, 0700) == 0) return 0;
    if (errno != EEXIST) return errno;
  }
  return EEXIST;
}

bool is_remote(const char* path) {
  struct statfs status;
  if (statfs(path, &status) != 0) return false;
  switch (static_cast<uint32_t>(status.f_type)) {  // magic numbers: linux/magic.h, statfs(2)
    case 0x6969:                                   // NFS
    case 0xFF534D42:                               // CIFS
    case 0xFE534D42:                               // SMB2
    case 0x0BD00BD0:                               // Lustre
    case 0x65735546:                               // FUSE
    case 0x00C36400:                               // Ceph
    case 0x47504653:                               // GPFS
    case 0x01021997:                               // 9p
    case 0x5346414F:                               // AFS
      return true;
    default:
      return false;
  }
}

uint64_t process_start_ns() {
  return start_ns(getpid());
}

}  // namespace memscope::capture::run_directory
