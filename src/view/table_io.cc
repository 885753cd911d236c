#include "view/table_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace memscope::view {

bool write_whole(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path room = path.string() + ".new";
  unlink(room.c_str());  // of one who was killed
  const int fd = open(room.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t wrote = write(fd, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    left.remove_prefix(static_cast<size_t>(wrote));
  }
  const bool whole = close(fd) == 0 && left.empty();
  if (whole && rename(room.c_str(), path.c_str()) == 0) return true;
  unlink(room.c_str());
  return false;
}

}  // namespace memscope::view
