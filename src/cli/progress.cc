#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.h"
#include "report/format.h"

namespace memscope::cli {

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + std::chrono::seconds(1)) {}

void Progress::line(std::string_view text) {
  next_ = Clock::now() + std::chrono::milliseconds(200);
  shown_ = true;
  // \r: to the line's beginning; ESC [K: clears the rest of it (ECMA-48 EL).
  (void)write_all(STDERR_FILENO, fmt::format("\rmsmemscope: {}\x1b[K", text));
}

void Progress::show(uint64_t done, uint64_t all) {
  if (!terminal_ || Clock::now() < next_) return;
  const uint64_t percent = all == 0 ? 0 : done * 100 / all;
  line(fmt::format("{} % of {} events", percent, format_count(static_cast<int64_t>(all))));
}

void Progress::share(std::string_view what, double done) {
  if (!terminal_ || Clock::now() < next_) return;
  line(fmt::format("{} {} %", what, static_cast<int>(done * 100)));
}

void Progress::clear() {
  if (!shown_) return;
  shown_ = false;
  (void)write_all(STDERR_FILENO, "\r\x1b[K");
}

}  // namespace memscope::cli
