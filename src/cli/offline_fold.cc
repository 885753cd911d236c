// `msmemscope offline-fold DIRECTORY KEEP`: folds a process's trace (replay/fold.h). The agent
// starts it beside the program, which must feel as little of it as can be.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <csignal>

#include "cli/commands.h"
#include "cli/output.h"
#include "replay/fold.h"

namespace memscope::cli {
namespace {

// The program comes first on the processors, and stays where memory runs out.
void be_modest() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // the agent's thread has all of them blocked
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, 0, kNice);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    if (::write(score, "1000", 4) < 0) {
    }
    ::close(score);
  }
}

}  // namespace

int offline_fold_command(const std::vector<std::string>& words) {
  uint64_t keep = 0;
  const bool good = words.size() == 2 && [&] {
    const char* end = words[1].data() + words[1].size();
    const auto parsed = std::from_chars(words[1].data(), end, keep);
    return parsed.ec == std::errc{} && parsed.ptr == end;
  }();
  if (!good) return fail("offline-fold: needs a process's directory and the bytes to keep");
  be_modest();
  const auto report = fold_trace(words[0], keep);
  if (!report) return fail(report.error().message);
  const FoldReport& done = report.value();
  const auto written =
      write_to("stdout", done.folded ? fmt::format("folded {} bytes of log to {}\n",
                                                   done.bytes_before, done.bytes_after)
                                     : std::string("nothing to fold\n"));
  return written ? 0 : fail(written.error().message);
}

}  // namespace memscope::cli
