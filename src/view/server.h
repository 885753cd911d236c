// The viewer's HTTP server, on loopback: sockets around a Gate.
//
//   auto server = Server::start(api, {.port = 0, .web = find_web(command)});
//   say(server.value()->url());
//   ...
//   server.value()->stop();                       // also by the destructor
//
// A few threads answer; connections, headers and waiting are bounded; a request with a body is
// refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/result.h"
#include "view/api.h"

namespace memscope::view {

struct ServerOptions {
  uint16_t port = 0;  // 0: any
  std::filesystem::path web;
  std::string token;  // "": a new one
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> start(const Api& api, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  std::string url() const;
  void stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace memscope::view
