#include "capture/launcher_line.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "capture/settings.h"

namespace memscope::capture {

void tell_launcher(const char* line) noexcept {
  sockaddr_un address{};
  const size_t length = std::strlen(settings.launcher);
  if (length == 0 || length + 1 > sizeof(address.sun_path)) return;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, settings.launcher, length);  // behind a NUL: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const ssize_t sent = sendto(fd, line, std::strlen(line), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), size);
  (void)sent;  // nobody listens any more
  close(fd);
}

}  // namespace memscope::capture
