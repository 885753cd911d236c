// What a request to the viewer gets, before and after any socket: who may ask, which file or query
// is meant, and the headers that keep the page to itself.
//
//   Gate gate(api, {.port = 41234, .token = "…", .web = "/…/web"});
//   HttpAnswer answer = gate.answer({.method = "GET", .target = "/…/api/session", .host = "…"});
//
// Promises
//  * Without the token nothing but 404 comes back; it is compared in constant time.
//  * Host must be this server's own, Origin as well where there is one: a page of another origin,
//    or a name that was made to point here, gets 403.
//  * No path leaves the page's directory, no method but GET and HEAD does anything.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/api.h"

namespace memscope::view {

struct HttpRequest {
  std::string_view method, target;
  std::string_view host, origin, fetch_site;  // headers; "" where there is none
};

struct HttpAnswer {
  Answer content;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct GateOptions {
  uint16_t port = 0;
  std::string token;
  std::filesystem::path web;  // of the built page; "" where there is none
};

class Gate {
 public:
  Gate(const Api& api, GateOptions options) : api_(api), options_(std::move(options)) {}
  HttpAnswer answer(const HttpRequest& request) const;

 private:
  Answer route(const HttpRequest& request) const;
  Answer page_file(std::string_view path) const;

  const Api& api_;
  GateOptions options_;
};

// 32 hex digits from the system's source of randomness.
std::string make_token();
// Where the built page lies (docs/view-api.md, section 11); "" where it is not.
std::filesystem::path find_web(const std::filesystem::path& command);

}  // namespace memscope::view
