// Event time: a counter read without a system call. HOT PATH.
//
// The counter is the time-stamp counter where the kernel itself keeps time by it (clocksource tsc:
// synchronous over processors, constant rate), cntvct_el0 on aarch64, else CLOCK_MONOTONIC.
//
// The fence before the read keeps it from running ahead of the loads before it: an allocation's, by
// which the address came to this thread, and a free's, by which the thread learned that it may free
// a block that another thread allocated. None is needed after it: the read retires before any later
// store of this thread can be seen (Intel SDM vol. 3, 8.2; AMD64 APM vol. 2, 7.1), and it is by
// such a store that the allocator passes a freed address on.
#pragma once

#include <time.h>

#include <cstdint>

#include "trace/layout.h"

namespace memscope::capture {

struct Anchor {
  uint64_t ticks, mono_ns, real_ns;
};

namespace clock_detail {
extern TickSource source;

inline uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}
}  // namespace clock_detail

// Decides on the counter. Called once, before any other thread can ask for the time.
void clock_init();
inline TickSource tick_source() {
  return clock_detail::source;
}

inline uint64_t ticks_now() {
#if defined(__x86_64__)
  if (__builtin_expect(clock_detail::source == TickSource::kTsc, 1)) {
    __builtin_ia32_lfence();
    return __builtin_ia32_rdtsc();
  }
#elif defined(__aarch64__)
  if (clock_detail::source == TickSource::kArmCounter) {
    uint64_t ticks;
    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
  }
#endif
  return clock_detail::monotonic_ns();
}

// Both clocks at one moment; the counter is read between the two.
Anchor take_anchor();

}  // namespace memscope::capture
