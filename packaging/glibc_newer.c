// What the C++ run time and our libraries ask of glibcs after 2.28, for a command and an agent that
// run on 2.28 and all later ones (glibc_stubs.py). Hidden: nobody else in the process sees them.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

// --- threads -------------------------------------------------------------------------------------

// 2.32: libstdc++ leaves out atomics while it is true.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// 2.30: std::condition_variable::wait_until. The wait ends by the clock that the condition variable
// itself keeps, real time; callers test their own clock again after every wake-up.
__attribute__((visibility("hidden"))) int pthread_cond_clockwait(pthread_cond_t* condition,
                                                                 pthread_mutex_t* mutex,
                                                                 clockid_t clock,
                                                                 const struct timespec* until) {
  enum { kSecond = 1000000000 };
  struct timespec now, real;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  real.tv_sec += until->tv_sec - now.tv_sec;
  real.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (real.tv_nsec < 0) {
    real.tv_nsec += kSecond;
    --real.tv_sec;
  } else if (real.tv_nsec >= kSecond) {
    real.tv_nsec -= kSecond;
    ++real.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &real);
}

// --- random numbers ------------------------------------------------------------------------------

// 2.36: std::random_device. Where the kernel has none (before 3.17), there is no other honest
// source.
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != sizeof value) abort();
  return value;
}

// --- files ---------------------------------------------------------------------------------------

// 2.33 made functions of what were macros over these.
#if defined(__x86_64__)
enum { kStatVersion = 1 };
#else
enum { kStatVersion = 0 };
#endif
extern int __xstat(int, const char*, struct stat*);
extern int __lxstat(int, const char*, struct stat*);
extern int __fxstat(int, int, struct stat*);
extern int __fxstatat(int, int, const char*, struct stat*, int);

__attribute__((visibility("hidden"))) int stat(const char* path, struct stat* result) {
  return __xstat(kStatVersion, path, result);
}
__attribute__((visibility("hidden"))) int lstat(const char* path, struct stat* result) {
  return __lxstat(kStatVersion, path, result);
}
__attribute__((visibility("hidden"))) int fstat(int file, struct stat* result) {
  return __fxstat(kStatVersion, file, result);
}
__attribute__((visibility("hidden"))) int fstatat(int directory, const char* path,
                                                  struct stat* result, int flags) {
  return __fxstatat(kStatVersion, directory, path, result, flags);
}
// The same under the names of files larger than 2 GiB, which all are on 64 bits.
__attribute__((visibility("hidden"), alias("stat"))) int stat64();
__attribute__((visibility("hidden"), alias("lstat"))) int lstat64();
__attribute__((visibility("hidden"), alias("fstat"))) int fstat64();
__attribute__((visibility("hidden"), alias("fstatat"))) int fstatat64();
