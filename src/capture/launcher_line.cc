#include "capture/launcher_line.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "capture/settings.h"

namespace memscope::capture {

void tell_launcher(const char* line, const char* suffix) noexcept {
  sockaddr_un address{};
  if (settings.launcher[0] == '\0') return;
  // Behind a NUL: abstract.
  const int written = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s%s",
                                    settings.launcher, suffix);
  if (written < 0 || static_cast<size_t>(written) + 1 >= sizeof(address.sun_path)) return;
  const auto length = static_cast<size_t>(written);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  address.sun_family = AF_UNIX;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const ssize_t sent = sendto(fd, line, std::strlen(line), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), size);
  (void)sent;  // nobody listens any more
  close(fd);
}

}  // namespace memscope::capture
