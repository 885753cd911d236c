#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.h"
#include "report/format.h"

namespace memscope::cli {

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + std::chrono::seconds(1)) {}

void Progress::show(uint64_t done, uint64_t all) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const uint64_t percent = all == 0 ? 0 : done * 100 / all;
  // \r: to the line's beginning; ESC [K: clears the rest of it (ECMA-48 EL).
  (void)write_all(STDERR_FILENO, fmt::format("\rmsmemscope: {} % of {} events\x1b[K", percent,
                                             format_count(static_cast<int64_t>(all))));
}

void Progress::clear() {
  if (!shown_) return;
  shown_ = false;
  (void)write_all(STDERR_FILENO, "\r\x1b[K");
}

}  // namespace memscope::cli
