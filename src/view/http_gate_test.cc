#include "view/http_gate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "trace/test_directory.h"
#include "trace/trace_builder.h"
#include "view/server.h"

namespace memscope::view {
namespace {

constexpr Where kWhere{Layer::kTensor, Device{}};
const std::string kToken = "0123456789abcdef0123456789abcdef";

// A session over a trace that the test writes.
class GateTest : public ::testing::Test {
 protected:
  void open(const std::function<void(LaneBuilder&)>& write) {
    {
      TraceBuilder builder(directory_ / "trace");
      LaneBuilder& lane = builder.lane(1, 7, "python");
      write(lane);
      ASSERT_TRUE(builder.finish());
    }
    session_ =
        std::make_unique<Session>(SessionOptions{.paths = {(directory_ / "trace").string()}});
    session_->start();
    session_->wait_diagnosed();
    ASSERT_NE(session_->state(), nullptr) << session_->status().error;
    api_ = std::make_unique<Api>(*session_);
    gate_ = std::make_unique<Gate>(
        *api_, GateOptions{.port = 80, .token = kToken, .web = directory_ / "web"});
  }
  void open_simple() {
    open([](LaneBuilder& lane) {
      const uint32_t stack = lane.stack({{"/home/me/train.py", "main", 3}});
      lane.alloc(100, 0xA000, 64, kWhere, stack);
      lane.alloc(200, 0xB000, 32, kWhere, stack);
      lane.free(300, 0xA000, kWhere);
    });
  }
  HttpAnswer ask(HttpRequest request) const { return gate_->answer(request); }
  HttpAnswer get(const std::string& path) const {
    const std::string target = "/" + kToken + "/" + path;
    return gate_->answer({.method = "GET", .target = target, .host = "127.0.0.1:80"});
  }
  nlohmann::json json(const std::string& path) const {
    const HttpAnswer answer = get("api/" + path);
    EXPECT_EQ(answer.content.status, 200) << path << ": " << answer.content.body;
    return nlohmann::json::parse(answer.content.body);
  }

  TestDirectory directory_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Gate> gate_;
};

TEST_F(GateTest, OnlyTheTokenOpensAnything) {
  open_simple();
  EXPECT_EQ(get("api/session").content.status, 200);
  for (const std::string target :
       {"/", "/api/session", "/0123456789abcdef0123456789abcdee/api/session", "//api/session",
        "/0123456789abcdef/api/session", "", "/0123456789ABCDEF0123456789ABCDEF/api/session"}) {
    const HttpAnswer answer = ask({.method = "GET", .target = target, .host = "127.0.0.1:80"});
    EXPECT_EQ(answer.content.status, 404) << target;
    EXPECT_TRUE(answer.content.body.empty());
  }
}

TEST_F(GateTest, OnlyThisServersOwnHostAndOrigin) {
  open_simple();
  const std::string target = "/" + kToken + "/api/status";
  const auto status = [&](std::string_view host, std::string_view origin = "",
                          std::string_view site = "") {
    return ask({.method = "GET",
                .target = target,
                .host = host,
                .origin = origin,
                .fetch_site = site})
        .content.status;
  };
  EXPECT_EQ(status("127.0.0.1:80"), 200);
  EXPECT_EQ(status("localhost:80"), 200);
  EXPECT_EQ(status("[::1]:80"), 200);
  EXPECT_EQ(status("LOCALHOST:80"), 200);
  // A name that somebody made to point here (DNS rebinding), another port, none at all.
  for (const char* host : {"evil.example:80", "127.0.0.1", "127.0.0.1:81", "", "127.0.0.1:80.evil",
                           "localhost:8080"}) {
    EXPECT_EQ(status(host), 403) << host;
  }
  EXPECT_EQ(status("127.0.0.1:80", "http://127.0.0.1:80"), 200);
  EXPECT_EQ(status("127.0.0.1:80", "http://localhost:80", "same-origin"), 200);
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:80",
                             "http://127.0.0.1:81", "http://127.0.0.1:80.evil"}) {
    EXPECT_EQ(status("127.0.0.1:80", origin), 403) << origin;
  }
  EXPECT_EQ(status("127.0.0.1:80", "", "cross-site"), 403);
}

TEST_F(GateTest, NothingButReading) {
  open_simple();
  const std::string target = "/" + kToken + "/api/status";
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", ""}) {
    EXPECT_EQ(ask({.method = method, .target = target, .host = "127.0.0.1:80"}).content.status, 405)
        << method;
  }
  EXPECT_EQ(ask({.method = "HEAD", .target = target, .host = "127.0.0.1:80"}).content.status, 200);
}

TEST_F(GateTest, EveryAnswerKeepsThePageToItself) {
  open_simple();
  for (const char* path : {"api/status", "", "nothing", "api/nothing"}) {
    const HttpAnswer answer = get(path);
    std::map<std::string, std::string> headers(answer.headers.begin(), answer.headers.end());
    EXPECT_TRUE(headers["Content-Security-Policy"].starts_with("default-src 'none'; "));
    EXPECT_EQ(headers["Content-Security-Policy"].find("unsafe"), std::string::npos);
    EXPECT_EQ(headers["X-Content-Type-Options"], "nosniff");
    EXPECT_EQ(headers["Referrer-Policy"], "no-referrer");
    EXPECT_EQ(headers["Cross-Origin-Resource-Policy"], "same-origin");
    EXPECT_EQ(headers["Cache-Control"], "no-store");
  }
}

TEST_F(GateTest, FilesOfThePageAndNoOthers) {
  std::filesystem::create_directories(directory_ / "web/assets");
  std::ofstream(directory_ / "web/index.html") << "<!doctype html>page";
  std::ofstream(directory_ / "web/assets/main-1a2b.js") << "1";
  std::ofstream(directory_ / "web/.hidden") << "secret";
  std::ofstream(directory_ / "secret") << "secret";
  std::filesystem::create_symlink(directory_ / "secret", directory_ / "web/link.txt");
  open_simple();
  EXPECT_EQ(get("").content.body, "<!doctype html>page");
  EXPECT_EQ(get("").content.type, "text/html; charset=utf-8");
  EXPECT_EQ(get("assets/main-1a2b.js").content.type, "text/javascript; charset=utf-8");
  EXPECT_EQ(get("assets/main-1a2b.js?v=1").content.status, 200);
  for (const char* path :
       {"../secret", "assets/../../secret", "%2e%2e/secret", "assets/..%2f..%2fsecret", ".hidden",
        "link.txt", "assets", "assets/", "assets//main-1a2b.js", "/etc/passwd",
        "assets\\main-1a2b.js", "none.js"}) {
    const HttpAnswer answer = get(path);
    EXPECT_EQ(answer.content.status, 404) << path;
    EXPECT_EQ(answer.content.body.find("secret"), std::string::npos);
  }
  // Without the slash relative addresses would lead elsewhere.
  const std::string bare = "/" + kToken;
  EXPECT_EQ(ask({.method = "GET", .target = bare, .host = "127.0.0.1:80"}).content.status, 301);
}

TEST_F(GateTest, AnswersSayWhatWasWrong) {
  open_simple();
  const auto refused = [&](const std::string& path, const std::string& parameter) {
    const HttpAnswer answer = get("api/" + path);
    EXPECT_EQ(answer.content.status, 400) << path;
    const auto json = nlohmann::json::parse(answer.content.body);
    EXPECT_EQ(json["parameter"], parameter) << path;
    EXPECT_FALSE(json["error"].get<std::string>().empty());
  };
  refused("graph", "pool");
  refused("graph?pool=9&t0=0&t1=1&width=9&height=9", "pool");
  refused("graph?pool=0&t0=0&t1=1&height=9", "width");
  refused("graph?pool=0&t0=0&t1=1&width=4097&height=9", "width");
  refused("graph?pool=0&t0=0&t1=1&width=-1&height=9", "width");
  refused("graph?pool=0&t0=5&t1=5&width=9&height=9", "t1");
  refused("graph?pool=0&t0=x&t1=5&width=9&height=9", "t0");
  refused("graph?pool=0&t0=nan&t1=5&width=9&height=9", "t0");
  refused("graph?pool=0&t0=0&t1=5&width=9&height=9&order=none", "order");
  refused("graph?pool=0&t0=0&t1=5&width=9&height=9&m0=5&m1=4", "m1");
  refused("lines?series=allocated:7&t0=0&t1=5&width=9", "series");
  refused("lines?series=counter:0:0&t0=0&t1=5&width=9", "series");
  refused("blocks?pool=0&where=%5B%7B%5D", "where");
  refused("blocks?pool=0&limit=1001", "limit");
  refused("compare?a=0&b=0@end", "a");
  refused("composition?pool=0&t=later", "t");
  EXPECT_EQ(get("api/none").content.status, 404);
  EXPECT_EQ(get("api/block?pool=0&block=99").content.status, 404);
  EXPECT_EQ(get("api/stack?input=0&stack=99").content.status, 404);
  EXPECT_EQ(get("api/source?input=0&file=/etc/passwd&line=1").content.status, 404);
}

// What the traced program may call its things.
TEST_F(GateTest, HostileNamesComeOutAsStrings) {
  const std::string markup = "<img src=x onerror=alert(1)>\"'&\x01\n</script>";
  const std::string broken = "\xff\xfe broken";
  const std::string longest(60'000, 'x');
  open([&](LaneBuilder& lane) {
    const uint32_t a = lane.stack({{markup, markup, 3}}), b = lane.stack({{broken, broken, 4}}),
                   c = lane.stack({{"/home/me/" + longest, longest, 5}});
    lane.alloc(100, 0xA000, 64, kWhere, a);
    lane.record(150, OwnerRecord{.addr = 0xA000, .owner = markup});
    lane.alloc(200, 0xB000, 32, kWhere, b);
    lane.alloc(300, 0xC000, 32, kWhere, c);
    lane.record(310, MarkRecord{.text = markup, .domain = broken});
    lane.record(320, CounterRecord{.name = markup, .value = 5});
  });
  for (const char* query :
       {"session", "legend?pool=0&colour=site", "legend?pool=0&colour=owner",
        "composition?pool=0&by=owner", "composition?pool=0&by=stack", "sites?pool=0",
        "blocks?pool=0", "events?pool=0", "lanes?input=0&t0=0&t1=1000&width=100", "search?q=x",
        "search?q=img", "compare?a=0@0&b=0@end&by=stack", "block?pool=0&block=1",
        "block?pool=0&block=2", "hover?pool=0&block=3"}) {
    const HttpAnswer answer = get(std::string("api/") + query);
    EXPECT_EQ(answer.content.type, "application/json") << query;
    EXPECT_TRUE(nlohmann::json::accept(answer.content.body)) << query;
    EXPECT_LT(answer.content.body.size(), 30'000u) << query;  // lists cut names short
  }
  // 64 bytes each: in the order of their numbers, nobody's first.
  EXPECT_EQ(json("legend?pool=0&colour=owner")["classes"][2]["name"], markup);
  EXPECT_EQ(json("lanes?input=0&t0=0&t1=1000&width=100")["marks"][0]["text"], markup);
  // Whole in a block's own answer; what is no UTF-8 is replaced.
  EXPECT_EQ(json("block?pool=0&block=3")["stack"][0]["function"], longest);
  EXPECT_EQ(json("block?pool=0&block=2")["stack"][0]["function"],
            "\xef\xbf\xbd\xef\xbf\xbd broken");
}

TEST_F(GateTest, ASpreadsheetRunsNothing) {
  open([&](LaneBuilder& lane) {
    lane.alloc(100, 0xA000, 64, kWhere, lane.stack({{"a.py", "=cmd(), \"x\"", 3}}));
  });
  HttpAnswer answer = get("api/blocks?pool=0&format=csv");
  ASSERT_TRUE(answer.content.more);
  std::string text;
  while (answer.content.more(text)) {
  }
  EXPECT_NE(text.find("\"'=cmd(), \"\"x\"\"\""), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("block,address,size,"));
  HttpAnswer other = get("api/events?pool=0&format=json");
  std::string objects;
  while (other.content.more(objects)) {
  }
  const auto parsed = nlohmann::json::parse(objects);
  ASSERT_EQ(parsed.size(), 1u);
  EXPECT_EQ(parsed[0]["kind"], "alloc");
}

TEST_F(GateTest, TheQueriesAgreeWithOneAnother) {
  open_simple();
  const auto session = json("session");
  EXPECT_EQ(session["pools"][0]["peak"]["bytes"], 96);
  EXPECT_EQ(session["pools"][0]["live_bytes"], 32);
  const auto blocks = json("blocks?pool=0&sort=size:desc");
  EXPECT_EQ(blocks["total"], 2);
  EXPECT_EQ(blocks["sum"]["size"], 96);
  EXPECT_EQ(blocks["rows"][0][2], 64);
  const auto block = json("block?pool=0&block=1");
  EXPECT_EQ(block["size"], 64);
  EXPECT_EQ(block["stack"][0]["line"], 3);
  EXPECT_EQ(block["user_frame"], 0);
  EXPECT_EQ(block["neighbours"]["above"], nlohmann::json::array());
  const auto second = json("block?pool=0&block=2")["neighbours"]["below"];
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0]["gap"], 0x1000 - 64);
  EXPECT_EQ(json("index?pool=0&table=blocks&block=2&sort=size:desc")["offset"], 1);
  const auto compare = json("compare?a=0@peak&b=0@end");
  EXPECT_EQ(compare["rows"][0]["delta"], -64);
  EXPECT_EQ(json("locate?pool=0&state=2&bytes=70&order=alloc")["block"], 2);
  EXPECT_EQ(json("place?pool=0&block=2&order=alloc")["from"], 64);
  EXPECT_EQ(json("search?q=0xA010")["results"][0]["block"], 1);
  EXPECT_EQ(json("pool_map?pool=0")["available"], false);
}

// Over a real socket: the server answers, keeps to its port, and ends.
TEST_F(GateTest, TheServerServes) {
  open_simple();
  auto server = Server::start(*api_, {.token = kToken});
  ASSERT_TRUE(server) << server.error().message;
  const std::string url = server.value()->url();
  EXPECT_EQ(url, "http://127.0.0.1:" + std::to_string(server.value()->port()) + "/" + kToken + "/");
  auto taken = Server::start(*api_, {.port = server.value()->port()});
  EXPECT_FALSE(taken);
  server.value()->stop();
}

// A connection to a port of this machine, by hand.
class Wire {
 public:
  explicit Wire(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  bool connected() const { return connected_; }
  void say(const std::string& text) const {
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // The answer's first 12 bytes: "HTTP/1.1 200".
  std::string hear() const {
    std::string heard(12, '\0');
    heard.resize(static_cast<size_t>(
        std::max<ssize_t>(recv(fd_, heard.data(), heard.size(), MSG_WAITALL), 0)));
    return heard;
  }

 private:
  int fd_;
  bool connected_ = false;
};

TEST_F(GateTest, ManySilentConnectionsKeepNobodyOut) {
  open_simple();
  auto server = Server::start(*api_, {.token = kToken});
  ASSERT_TRUE(server);
  const uint16_t port = server.value()->port();
  const std::string request = "GET /" + kToken +
                              "/api/status HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                              "\r\n\r\n";
  // More than the server keeps (256), each with half a request and then nothing.
  std::vector<std::unique_ptr<Wire>> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(std::make_unique<Wire>(port));
    ASSERT_TRUE(silent.back()->connected());
    silent.back()->say(request.substr(0, 20));
  }
  const Wire asking(port);
  asking.say(request);
  EXPECT_EQ(asking.hear(), "HTTP/1.1 200");
  // Many that ask at once are all answered, those whose turn comes late as well.
  std::vector<std::unique_ptr<Wire>> many;
  for (int i = 0; i < 400; ++i) {
    many.push_back(std::make_unique<Wire>(port));
    many.back()->say(request);
  }
  for (const auto& one : many) ASSERT_EQ(one->hear(), "HTTP/1.1 200");
}

TEST(Token, IsLongAndNeverTheSame) {
  EXPECT_EQ(make_token().size(), 32u);
  EXPECT_NE(make_token(), make_token());
}

}  // namespace
}  // namespace memscope::view
