#include "capture/agent_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "capture/agent_state.h"
#include "capture/disk_budget.h"
#include "capture/lane.h"
#include "capture/lane0.h"
#include "capture/last_thread.h"
#include "capture/memory_counters.h"
#include "capture/native_modules.h"
#include "capture/native_stack.h"
#include "capture/notices.h"
#include "capture/recorder.h"
#include "capture/siblings.h"
#include "capture/trace_file.h"

namespace memscope::capture::agent_thread {
namespace {

constexpr long kPollNs = 10'000'000;
constexpr uint64_t kSecond = 1'000'000'000u;
constexpr uint64_t kLookForOthersNs = kSecond / 10;
constexpr uint64_t kOldSlotNs = 10 * kSecond;  // written out though not full
constexpr uint64_t kAnchorEveryNs = 10 * kSecond;
// Slots written before others get a chance at the lock.
constexpr uint32_t kSlotsAtOnce = 8;

pthread_t thread;
bool running = false;
std::atomic<uint32_t> stop_wanted = 0;
std::atomic<uint32_t> start_wanted = 0;
pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

void sleep_until_polled() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += kPollNs;
  if (until.tv_nsec >= static_cast<long>(kSecond)) {
    until.tv_nsec -= static_cast<long>(kSecond);
    ++until.tv_sec;
  }
  pthread_mutex_lock(&sleep_lock);
  if (stop_wanted.load(std::memory_order_relaxed) == 0) {
    pthread_cond_timedwait(&wake, &sleep_lock, &until);
  }
  pthread_mutex_unlock(&sleep_lock);
}

// Whole rounds under the lock are short: a few slots, or one source file.
void poll(uint64_t now, uint64_t* next_second, uint64_t* next_anchor) {
  bool more = true;
  while (more && stop_wanted.load(std::memory_order_relaxed) == 0) {
    pthread_mutex_lock(&state.trace_lock);
    more =
        trace_file::is_open() && disk_budget::may_write() && trace_file::drain_full(kSlotsAtOnce);
    if (more) disk_budget::poll();
    pthread_mutex_unlock(&state.trace_lock);
    disk_budget::start_due_fold();
  }
  native_stack::poll(now >= *next_second);
  siblings::sweep_if_due(now, stop_wanted);
  if (now < *next_second) return;
  *next_second = now + kSecond;
  lanes::reap();
  memory_counters::read_due(now);
  pthread_mutex_lock(&state.trace_lock);
  if (trace_file::is_open()) {
    const bool room = disk_budget::may_write();
    if (room) trace_file::drain_owned(now > kOldSlotNs ? now - kOldSlotNs : 0);
    disk_budget::poll();
    notices::write_pending();
    trace_file::write_unplaced_drops();
    if (room) {
      memory_counters::write_read();
      native_modules::write_new();
      if (now >= *next_anchor) {
        *next_anchor = now + kAnchorEveryNs;
        trace_file::write_anchor();
      }
      while (trace_file::keep_next_source()) {
      }
    }
    flush_lane0();
    lane0::extend_gap();
  }
  pthread_mutex_unlock(&state.trace_lock);
  disk_budget::start_due_fold();
}

void* run(void*) {
  lanes::exclude_this_thread();
  prctl(PR_SET_NAME, "msmemscope");
  // When it wakes it must not push a thread of the program off its core (sched(7): a SCHED_BATCH
  // thread is not taken for interactive). Its fair share stays; where this is refused all is as
  // before.
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
  pthread_mutex_lock(&state.trace_lock);
  if (trace_file::is_open()) trace_file::populate_slab();
  pthread_mutex_unlock(&state.trace_lock);
  // The first anchor soon: two of them, apart, give the counter's rate.
  uint64_t next_second = clock_detail::monotonic_ns() + kSecond / 4, next_anchor = next_second;
  uint64_t next_look = 0;
  while (stop_wanted.load(std::memory_order_relaxed) == 0) {
    const uint64_t now = clock_detail::monotonic_ns();
    poll(now, &next_second, &next_anchor);
    if (now >= next_look) {
      next_look = now + kLookForOthersNs;
      if (only_this_thread_is_left()) {  // glibc calls exit(0) when we return
        running = false;
        pthread_detach(thread);
        break;
      }
    }
    sleep_until_polled();
  }
  return nullptr;
}

}  // namespace

void start() {
  start_wanted.store(0, std::memory_order_relaxed);
  if (running || state.forks.load(std::memory_order_relaxed) != 0) return;  // after the fork, then
  stop_wanted.store(0, std::memory_order_relaxed);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  const int error = pthread_create(&thread, &attributes, run, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  running = error == 0;
  if (!running) {
    notice("agent thread", "cannot be started; events beyond the slab's size will be dropped");
  }
}

void join() {
  if (!running) return;
  pthread_mutex_lock(&sleep_lock);
  stop_wanted.store(1, std::memory_order_relaxed);
  pthread_cond_signal(&wake);
  pthread_mutex_unlock(&sleep_lock);
  pthread_join(thread, nullptr);
  running = false;
}

void want_again() {
  start_wanted.store(1, std::memory_order_relaxed);
}

void start_if_wanted() noexcept {
  if (start_wanted.load(std::memory_order_relaxed) == 0) return;
  if (pthread_mutex_trylock(&state.trace_lock) != 0) return;
  if (trace_file::is_open() && state.finished.load(std::memory_order_relaxed) == 0) start();
  pthread_mutex_unlock(&state.trace_lock);
}

void forget_after_fork() {
  start_wanted.store(0, std::memory_order_relaxed);
  running = false;
  sleep_lock = PTHREAD_MUTEX_INITIALIZER;
  wake = PTHREAD_COND_INITIALIZER;
}

}  // namespace memscope::capture::agent_thread
