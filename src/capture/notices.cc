#include "capture/notices.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "capture/lane0.h"
#include "capture/recorder.h"

namespace memscope::capture {
namespace {

struct Notice {
  std::atomic<uint32_t> ready = 0;
  bool written = false;
  char what[64] = {};
  char why[512] = {};
};

constexpr size_t kNotices = 32;
// Filled by the library's constructor, which no initialiser may follow.
constinit Notice list[kNotices] = {};
std::atomic<size_t> count = 0;

}  // namespace

void notice(const char* what, const char* why) noexcept {
  const size_t known = std::min(count.load(std::memory_order_acquire), kNotices);
  for (size_t i = 0; i < known; ++i) {
    if (list[i].ready.load(std::memory_order_acquire) != 0 &&
        std::strncmp(list[i].what, what, sizeof(list[i].what) - 1) == 0 &&
        std::strncmp(list[i].why, why, sizeof(list[i].why) - 1) == 0) {
      return;  // said already
    }
  }
  char line[800];
  std::snprintf(line, sizeof(line), "%s: %s", what, why);
  notices::say(line);
  const size_t index = count.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kNotices) return;
  std::snprintf(list[index].what, sizeof(list[index].what), "%s", what);
  std::snprintf(list[index].why, sizeof(list[index].why), "%s", why);
  list[index].ready.store(1, std::memory_order_release);
}

namespace notices {

void say(const char* line) {
  char text[900];
  const int length = std::snprintf(text, sizeof(text), "msmemscope: %s\n", line);
  if (length <= 0) return;
  // One write, so that lines of several processes do not mix.
  const ssize_t wrote =
      write(STDERR_FILENO, text, std::min(static_cast<size_t>(length), sizeof(text) - 1));
  (void)wrote;
}

void write_pending() {
  const size_t known = std::min(count.load(std::memory_order_acquire), kNotices);
  for (size_t i = 0; i < known; ++i) {
    if (list[i].written || list[i].ready.load(std::memory_order_acquire) == 0) continue;
    list[i].written = true;
    write_lane0(NoticeRecord{.what = list[i].what, .why = list[i].why});
  }
}

}  // namespace notices
}  // namespace memscope::capture
