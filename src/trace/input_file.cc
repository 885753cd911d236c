#include "trace/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace memscope {

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  InputFile file;
  file.path_ = path;
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) return Error{"cannot open " + path.string() + ": " + std::strerror(errno)};
  struct stat status {};
  if (fstat(file.fd_, &status) != 0) {
    return Error{"cannot read " + path.string() + ": " + std::strerror(errno)};
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{path.string() + " is not a regular file; give a run directory or a trace.msm"};
  }
  file.size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

uint64_t InputFile::next_data(uint64_t offset) const {
  const off_t found = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return static_cast<uint64_t>(found);
  return errno == ENXIO ? size_ : offset;  // else: a file system that does not tell
}

size_t InputFile::read_at(uint64_t offset, void* out, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(fd_, static_cast<char*>(out) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace memscope
