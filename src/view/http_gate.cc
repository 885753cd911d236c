#include "view/http_gate.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace memscope::view {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kTypes = {
    {{".html", "text/html; charset=utf-8"},
     {".js", "text/javascript; charset=utf-8"},
     {".mjs", "text/javascript; charset=utf-8"},
     {".css", "text/css; charset=utf-8"},
     {".svg", "image/svg+xml"},
     {".png", "image/png"},
     {".ico", "image/x-icon"},
     {".json", "application/json"},
     {".woff2", "font/woff2"},
     {".txt", "text/plain; charset=utf-8"},
     {".wasm", "application/wasm"}}};

constexpr const char* kNoPage =
    "<!doctype html><title>MemScope</title><h1>MemScope</h1>"
    "<p>The viewer's page is not part of this installation. Build it (make web), or set "
    "MSMEMSCOPE_WEB_DIR to a directory with its index.html.</p>";

bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    differ |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return differ == 0;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool is_own_host(std::string_view host, uint16_t port) {
  const std::string wanted = ":" + std::to_string(port), given = lower(host);
  return given == "127.0.0.1" + wanted || given == "localhost" + wanted ||
         given == "[::1]" + wanted;
}

Answer plain(int status, std::string body = {}) {
  Answer answer{.status = status, .type = "text/plain; charset=utf-8"};
  answer.body = std::move(body);
  return answer;
}

// Names of files as a build makes them: no hidden ones, no way up.
bool is_plain_path(std::string_view path) {
  for (std::string_view left = path; !left.empty();) {
    const size_t end = std::min(left.find('/'), left.size());
    const std::string_view part = left.substr(0, end);
    if (part.empty() || part.front() == '.') return false;
    for (const char c : part) {
      const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
      if (!good) return false;
    }
    if (end + 1 == left.size()) return false;  // ends with a slash
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return !path.empty();
}

}  // namespace

std::string make_token() {
  std::array<unsigned char, 16> bytes{};
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

fs::path find_web(const fs::path& command) {
  std::vector<fs::path> places;
  if (const char* given = std::getenv("MSMEMSCOPE_WEB_DIR"); given != nullptr && *given != '\0') {
    places.emplace_back(given);
  }
  if (!command.empty()) {
    const fs::path directory = command.parent_path();
    places.push_back(directory.parent_path() / "web");  // bin/ beside web/
    places.push_back(directory.parent_path() / "web" /
                     "dist");  // a build directory of the checkout
  }
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::is_regular_file(place / "index.html", error)) return fs::canonical(place, error);
  }
  return {};
}

Answer Gate::page_file(std::string_view path) const {
  if (path.empty()) path = "index.html";
  if (!is_plain_path(path)) return plain(404);
  Answer answer;
  if (options_.web.empty()) {
    if (path != "index.html") return plain(404);
    answer.type = "text/html; charset=utf-8";
    answer.body = kNoPage;
    return answer;
  }
  std::error_code error;
  // Links are followed, but not out of the directory.
  const fs::path file = fs::canonical(options_.web / path, error);
  const auto [end, rest] =
      std::mismatch(options_.web.begin(), options_.web.end(), file.begin(), file.end());
  constexpr uintmax_t kMost = 64u << 20;
  if (error || end != options_.web.end() || !fs::is_regular_file(file, error) ||
      fs::file_size(file, error) > kMost) {
    return plain(404);
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return plain(404);
  answer.body.assign(std::istreambuf_iterator<char>(stream), {});
  const std::string extension = file.extension().string();
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const auto& known) { return known.first == extension; });
  answer.type = type == kTypes.end() ? "application/octet-stream" : std::string(type->second);
  return answer;
}

Answer Gate::route(const HttpRequest& request) const {
  if (!is_own_host(request.host, options_.port)) return plain(403);
  if (!request.origin.empty()) {
    constexpr std::string_view kScheme = "http://";
    if (!request.origin.starts_with(kScheme) ||
        !is_own_host(request.origin.substr(kScheme.size()), options_.port)) {
      return plain(403);
    }
  }
  if (request.fetch_site == "cross-site") return plain(403);
  if (request.method != "GET" && request.method != "HEAD") return plain(405);
  std::string_view path = request.target, query;
  path = path.substr(0, path.find('#'));
  if (const size_t mark = path.find('?'); mark != std::string_view::npos) {
    query = path.substr(mark + 1);
    path = path.substr(0, mark);
  }
  const size_t length = options_.token.size();
  if (path.size() < length + 1 || path[0] != '/' || !same(path.substr(1, length), options_.token)) {
    return plain(404);
  }
  path.remove_prefix(1 + length);
  if (path.empty()) {  // so that relative addresses lead below the token
    Answer answer = plain(301);
    answer.file_name = "/" + options_.token + "/";
    return answer;
  }
  if (path[0] != '/') return plain(404);
  path.remove_prefix(1);
  constexpr std::string_view kApi = "api/";
  if (!path.starts_with(kApi)) return page_file(path);
  return api_.answer(path.substr(kApi.size()), Params::from_query(query));
}

HttpAnswer Gate::answer(const HttpRequest& request) const {
  HttpAnswer answer;
  answer.content = route(request);
  Answer& content = answer.content;
  answer.headers = {{"Content-Type", content.type},
                    {"Content-Security-Policy", kPolicy},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cross-Origin-Opener-Policy", "same-origin"},
                    {"Cross-Origin-Resource-Policy", "same-origin"},
                    {"Cache-Control", "no-store"}};
  if (content.generation != 0) {
    answer.headers.emplace_back("X-MemScope-Generation", std::to_string(content.generation));
  }
  if (content.status == 301) {
    answer.headers.emplace_back("Location", content.file_name);
  } else if (content.status == 405) {
    answer.headers.emplace_back("Allow", "GET, HEAD");
  } else if (!content.file_name.empty()) {
    answer.headers.emplace_back("Content-Disposition",
                                "attachment; filename=\"" + content.file_name + "\"");
  }
  return answer;
}

}  // namespace memscope::view
