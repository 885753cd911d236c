#include "capture/trace_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "capture/agent_state.h"
#include "capture/clock.h"
#include "capture/held_signal.h"
#include "capture/own_pages.h"
#include "trace/record_table.h"

namespace memscope::capture::trace_log {
namespace {

int log_fd = -1;
char log_path[kPathMax + kSegmentNameBytes];
struct stat log_identity;  // st_dev and st_ino
uint32_t segment_number = 1;
alignas(LogWriter) std::byte writer_memory[sizeof(LogWriter)];
LogWriter* writer;
std::byte* writer_buffer;

bool is_log(int fd) {
  struct stat now;
  return fstat(fd, &now) == 0 && now.st_dev == log_identity.st_dev &&
         now.st_ino == log_identity.st_ino;
}

// Out of the way of programs that count on low numbers, if the limit allows it.
int moved_up(int fd) {
  constexpr int kLowest = 100;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, kLowest);
  if (moved < 0 && fd <= STDERR_FILENO) moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved < 0) return fd;
  ::close(fd);
  return moved;
}

bool have_log() {
  if (is_log(log_fd)) return true;
  const int fd = open(log_path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  if (!is_log(fd)) {
    ::close(fd);
    errno = ESTALE;
    return false;
  }
  log_fd = moved_up(fd);
  writer->reopened(log_fd);
  return true;
}

void close_fd() {
  if (log_fd >= 0 && is_log(log_fd)) ::close(log_fd);
  log_fd = -1;
}

bool begin() {
  const Anchor anchor = take_anchor();
  LogHeader header{};
  header.major = kFormatMajor;
  header.minor = kFormatMinor;
  header.tick_source = static_cast<uint32_t>(tick_source());
  header.pid = static_cast<uint64_t>(getpid());
  header.ticks = anchor.ticks;
  header.mono_ns = anchor.mono_ns;
  header.real_ns = anchor.real_ns;
  writer = new (writer_memory) LogWriter({writer_buffer, LogWriter::kBufferBytes});
  return writer->open(log_fd, header);
}

}  // namespace

bool make(const char* path) {
  const SizeSignalHeld held;
  if (writer_buffer == nullptr) writer_buffer = own_pages<std::byte>(LogWriter::kBufferBytes);
  if (writer_buffer == nullptr) {
    errno = ENOMEM;
    return false;
  }
  std::snprintf(log_path, sizeof(log_path), "%s", path);
  segment_number = 1;
  log_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (log_fd < 0) return false;
  log_fd = moved_up(log_fd);
  if (fstat(log_fd, &log_identity) == 0 && begin()) return true;
  const int error = errno;
  unlink(path);
  close();
  errno = error;
  return false;
}

bool is_open() {
  return log_fd >= 0;
}

bool append(const ChunkMeta& meta, const void* records, size_t bytes) {
  const SizeSignalHeld held;
  return have_log() && writer->append(meta, {static_cast<const std::byte*>(records), bytes});
}

void close() {
  close_fd();
  if (writer != nullptr) writer->~LogWriter();
  writer = nullptr;
}

uint64_t bytes() {
  return writer == nullptr ? 0 : writer->bytes();
}

uint32_t segment() {
  return segment_number;
}

// The new file is whole before the log is in it; until then nothing has changed.
bool next_segment() {
  const SizeSignalHeld held;
  static char path[sizeof(log_path)];
  const char* end = std::strrchr(log_path, '/');
  if (writer == nullptr || end == nullptr) return false;
  char name[kSegmentNameBytes];
  segment_name(name, segment_number + 1);
  const int length = std::snprintf(path, sizeof(path), "%.*s/%s", static_cast<int>(end - log_path),
                                   log_path, name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return false;
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  fd = moved_up(fd);
  struct stat identity;
  const bool known = fstat(fd, &identity) == 0;
  LogHeader header{};
  if (known && pread(have_log() ? log_fd : -1, &header, sizeof(header), 0) == sizeof(header)) {
    header.flags = flags_of_segment(segment_number + 1);
    if (writer->continue_in(fd, header)) {
      close_fd();
      log_fd = fd;
      log_identity = identity;
      ++segment_number;
      std::memcpy(log_path, path, sizeof(log_path));
      return true;
    }
  }
  const int error = errno;
  ::close(fd);
  unlink(path);
  errno = error;
  return false;
}

void forget_after_fork() {
  close_fd();
  writer = nullptr;  // its zstd context is left behind: the heap may be in any state here
}

}  // namespace memscope::capture::trace_log
