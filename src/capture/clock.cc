#include "capture/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace memscope::capture {

TickSource clock_detail::source = TickSource::kMonotonic;

void clock_init() {
#if defined(__x86_64__)
  const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                      O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char name[16] = {};
  const ssize_t got = read(fd, name, sizeof(name) - 1);
  close(fd);
  if (got >= 4 && std::memcmp(name, "tsc\n", 4) == 0) clock_detail::source = TickSource::kTsc;
#elif defined(__aarch64__)
  clock_detail::source = TickSource::kArmCounter;
#endif
}

Anchor take_anchor() {
  timespec real;
  Anchor anchor;
  anchor.mono_ns = clock_detail::monotonic_ns();
  anchor.ticks = ticks_now();
  clock_gettime(CLOCK_REALTIME, &real);
  anchor.real_ns =
      static_cast<uint64_t>(real.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(real.tv_nsec);
  return anchor;
}

}  // namespace memscope::capture
