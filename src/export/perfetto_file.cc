#include "export/perfetto_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "export/draft_file.h"

namespace memscope {
namespace {

// Whole nanoseconds as microseconds; a double has no room for them in a run of weeks.
nlohmann::ordered_json microseconds(uint64_t ns) {
  constexpr uint64_t kExact = uint64_t{1} << 52;
  return ns < kExact ? nlohmann::ordered_json(static_cast<double>(ns) / 1000.0)
                     : nlohmann::ordered_json(ns / 1000);
}

}  // namespace

Result<PerfettoFile> PerfettoFile::begin(int fd, std::string name) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return write_error(name, errno);
  gzFile file = gzdopen(own, "wb6");
  if (file == nullptr) {
    ::close(own);
    return write_error(name, ENOMEM);
  }
  gzbuffer(file, 1 << 17);
  PerfettoFile result(file, std::move(name));
  result.write(R"({"displayTimeUnit":"ms","traceEvents":[)");
  return result;
}

PerfettoFile::PerfettoFile(PerfettoFile&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      name_(std::move(other.name_)),
      events_(other.events_),
      error_(other.error_) {}

PerfettoFile::~PerfettoFile() {
  if (file_ != nullptr) gzclose(file_);
}

void PerfettoFile::write(std::string_view text) {
  if (error_ != 0 || text.empty()) return;
  errno = 0;
  const int written = gzwrite(file_, text.data(), static_cast<unsigned>(text.size()));
  if (written <= 0) error_ = errno == 0 ? EIO : errno;
}

void PerfettoFile::event(int64_t pid, nlohmann::ordered_json fields) {
  fields["pid"] = pid;
  write((events_++ == 0 ? "\n" : ",\n") +
        fields.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void PerfettoFile::at(int64_t pid, uint64_t ns, nlohmann::ordered_json fields) {
  fields["ts"] = microseconds(ns);
  event(pid, std::move(fields));
}

void PerfettoFile::span(int64_t pid, uint64_t from_ns, uint64_t to_ns,
                        nlohmann::ordered_json fields) {
  fields["dur"] = microseconds(std::max(to_ns, from_ns) - from_ns);
  at(pid, from_ns, std::move(fields));
}

Result<void> PerfettoFile::finish() {
  write("\n]}\n");
  errno = 0;
  const int closed = gzclose(std::exchange(file_, nullptr));
  if (error_ == 0 && closed != Z_OK) error_ = errno == 0 ? EIO : errno;
  if (error_ != 0) return write_error(name_, error_);
  return {};
}

}  // namespace memscope
