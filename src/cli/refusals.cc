#include "cli/refusals.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trace/untraced.h"

namespace memscope::cli {

Refusals::Refusals(const std::string& given) {
  uint64_t secret = 0;
  if (::getrandom(&secret, sizeof(secret), 0) != sizeof(secret)) return;
  const std::string name =
      given.empty() ? fmt::format("msmemscope-{}-{:016x}", ::getpid(), secret) : given;
  sockaddr_un address{};
  if (name.size() + 1 > sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a NUL: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    name_ = name;
  }
}

Refusals::~Refusals() {
  if (fd_ >= 0) ::close(fd_);
}

std::vector<std::string> Refusals::heard() const {
  constexpr size_t kMost = 1000;
  std::vector<std::string> lines;
  std::array<char, kMaxUntracedLine> line;
  while (fd_ >= 0 && lines.size() < kMost) {
    const ssize_t got = ::recv(fd_, line.data(), line.size(), 0);
    if (got < 0) break;
    lines.emplace_back(line.data(), static_cast<size_t>(got));
  }
  return lines;
}

}  // namespace memscope::cli
