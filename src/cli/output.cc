#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "import/find_inputs.h"
#include "report/text.h"

namespace memscope::cli {

Result<void> write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Error{fmt::format("cannot write: {}", std::strerror(errno))};
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

namespace {

// A device, a pipe: written to, as a shell's redirection would.
Result<void> write_through(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Error{fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  Result<void> result = write_all(fd, text);
  if (::close(fd) != 0 && result) {
    result = Error{fmt::format("cannot write: {}", std::strerror(errno))};
  }
  if (!result) return Error{fmt::format("{}: {}", path, result.error().message)};
  return {};
}

bool is_input(const std::string& path) {
  switch (file_kind(path)) {
    case FileKind::kTrace:
    case FileKind::kCsv:
    case FileKind::kPythonTrace:
    case FileKind::kDb:
    case FileKind::kSnapshot:
      return true;
    default:
      return false;
  }
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  const int fd = ::mkostemp(draft.data(), O_CLOEXEC);  // mode 0600, and never a file that is there
  if (fd < 0) return Error{fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  Result<void> result = write_all(fd, text);
  if (result && ::fsync(fd) != 0 && errno != EINVAL) {
    result = Error{fmt::format("cannot write: {}", std::strerror(errno))};
  }
  if (::close(fd) != 0 && result) {
    result = Error{fmt::format("cannot write: {}", std::strerror(errno))};
  }
  if (result && ::rename(draft.c_str(), path.c_str()) != 0) {
    result = Error{fmt::format("cannot rename: {}", std::strerror(errno))};
  }
  if (!result) {
    ::unlink(draft.c_str());
    return Error{fmt::format("{}: {}", path, result.error().message)};
  }
  return {};
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view text) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return replace_file(path, text);
  if (S_ISDIR(there.st_mode)) {
    return Error{fmt::format("cannot write {}: it is a directory; give a file's name", path)};
  }
  if (!S_ISREG(there.st_mode)) return write_through(path, text);
  if (is_input(path)) {
    return Error{fmt::format(
        "{} is a trace, a dump or a snapshot; inputs are never changed, give another name", path)};
  }
  // A link stays; what it leads to is replaced.
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  return replace_file(error ? path : file.string(), text);
}

Result<void> write_to(const std::string& target, std::string_view text) {
  if (target == "none") return {};
  if (target == "stdout") return write_all(STDOUT_FILENO, text);
  if (target == "stderr") return write_all(STDERR_FILENO, text);
  return write_file(target, text);
}

namespace {

// While one lives, a write of this thread's to a pipe that nobody reads fails with EPIPE and no
// more: what we have to say must not end the launcher, whose status is the program's.
class PipeSignalHeld {
 public:
  PipeSignalHeld() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~PipeSignalHeld() {
    const timespec at_once{};
    if (sigismember(&before_, SIGPIPE) == 0) (void)sigtimedwait(&set_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;

 private:
  sigset_t set_, before_;
};

}  // namespace

void raw_line(std::string_view line) {
  const PipeSignalHeld held;
  // One write, so that lines of several processes do not mix.
  (void)write_all(STDERR_FILENO, std::string(line) + "\n");
}

void say(std::string_view line) {
  raw_line("msmemscope: " + printable(line));
}

void say_damage(const std::vector<std::string>& damage) {
  if (damage.empty()) return;
  say(damage.size() == 1 ? damage.front()
                         : fmt::format("{} (and {} more, see msmemscope info)", damage.front(),
                                       damage.size() - 1));
}

int fail(std::string_view line) {
  say(line);
  return 2;
}

}  // namespace memscope::cli
