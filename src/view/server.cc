#include "view/server.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "view/http_gate.h"

namespace memscope::view {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr int kThreads = 4;
// A browser keeps six a tab. Beyond these whoever has been silent longest goes, and who comes
// waits.
constexpr int kMaxConnections = 256;
constexpr auto kCrowded = std::chrono::milliseconds(5);
constexpr uint32_t kMaxHeader = 64 << 10;  // filters are in the address
constexpr auto kReadTimeout = std::chrono::seconds(120);
constexpr auto kWriteTimeout = std::chrono::minutes(10);  // people pause downloads

class Connection;

// The connections that wait for a request, those that have waited longest first.
class WaitingRoom {
 public:
  uint64_t enter(std::weak_ptr<Connection> connection) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(++last_, std::move(connection));
    return last_;
  }
  void leave(uint64_t ticket) {
    const std::scoped_lock lock(mutex_);
    waiting_.erase(ticket);
  }
  // The first, which is not asked again.
  std::shared_ptr<Connection> call() {
    const std::scoped_lock lock(mutex_);
    while (!waiting_.empty()) {
      auto connection = waiting_.begin()->second.lock();
      waiting_.erase(waiting_.begin());
      if (connection) return connection;
    }
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Connection>> waiting_;
  uint64_t last_ = 0;
};

// One connection: request, answer, request, ... One thing at a time, on its own strand.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket&& socket, const Gate& gate, WaitingRoom& room, std::atomic<int>& count)
      : stream_(std::move(socket)), gate_(gate), room_(room), count_(count) {}
  ~Connection() { --count_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->read(); });
  }

  // Another wants its place. A request that has come already is answered.
  void make_room() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      ErrorCode error;
      if (self->ticket_ != 0 && self->stream_.socket().available(error) == 0) self->close();
    });
  }

 private:
  void read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeader);
    parser_->body_limit(0);
    stream_.expires_after(kReadTimeout);
    ticket_ = room_.enter(weak_from_this());
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](ErrorCode error, size_t) {
                       self->room_.leave(std::exchange(self->ticket_, 0));
                       if (error) return self->close();
                       self->respond();
                     });
  }

  void respond() {
    const auto& request = parser_->get();
    const auto view = [](auto text) { return std::string_view(text.data(), text.size()); };
    HttpAnswer answer = gate_.answer({.method = view(request.method_string()),
                                      .target = view(request.target()),
                                      .host = view(request[http::field::host]),
                                      .origin = view(request[http::field::origin]),
                                      .fetch_site = view(request["Sec-Fetch-Site"])});
    stream_.expires_after(kWriteTimeout);
    const auto status = static_cast<unsigned>(answer.content.status);
    const auto fill = [&](auto& response) {
      for (const auto& [name, value] : answer.headers) response.set(name, value);
      response.keep_alive(request.keep_alive());
    };
    if (answer.content.more && request.method() != http::verb::head) {
      more_ = std::move(answer.content.more);
      pieces_.emplace(http::status(status), request.version());
      fill(*pieces_);
      pieces_->chunked(true);
      serializer_.emplace(*pieces_);
      http::async_write_header(stream_, *serializer_,
                               [self = shared_from_this()](ErrorCode error, size_t) {
                                 if (error) return self->close();
                                 self->write_piece();
                               });
      return;
    }
    whole_.emplace(http::status(status), request.version());
    fill(*whole_);
    whole_->content_length(answer.content.body.size());
    if (request.method() != http::verb::head) whole_->body() = std::move(answer.content.body);
    http::async_write(stream_, *whole_, [self = shared_from_this()](ErrorCode error, size_t) {
      if (error || !self->whole_->keep_alive()) return self->close();
      self->whole_.reset();
      self->read();
    });
  }

  void write_piece() {
    piece_.clear();
    const bool last = !more_(piece_);
    stream_.expires_after(kWriteTimeout);
    const auto next = [self = shared_from_this(), last](ErrorCode error, size_t) {
      if (error) return self->close();
      if (!last) return self->write_piece();
      self->write_end();
    };
    if (piece_.empty()) return last ? write_end() : write_piece();
    asio::async_write(stream_, http::make_chunk(asio::const_buffer(piece_.data(), piece_.size())),
                      next);
  }

  void write_end() {
    asio::async_write(stream_, http::make_chunk_last(),
                      [self = shared_from_this()](ErrorCode error, size_t) {
                        const bool on = self->pieces_->keep_alive();
                        self->more_ = nullptr;
                        self->serializer_.reset();
                        self->pieces_.reset();
                        if (error || !on) return self->close();
                        self->read();
                      });
  }

  void close() {
    ErrorCode ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.socket().close(ignored);
  }

  beast::tcp_stream stream_;
  const Gate& gate_;
  WaitingRoom& room_;
  std::atomic<int>& count_;
  uint64_t ticket_ = 0;  // while it waits for a request
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<http::response<http::string_body>> whole_;
  std::optional<http::response<http::empty_body>> pieces_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  std::function<bool(std::string&)> more_;
  std::string piece_;
};

}  // namespace

struct Server::Impl {
  asio::io_context context{kThreads};
  tcp::acceptor acceptor{context};
  std::string token;
  std::optional<Gate> gate;
  WaitingRoom room;
  std::atomic<int> connections = 0;
  std::vector<std::thread> threads;
  asio::steady_timer crowded{context};

  void accept() {
    if (connections >= kMaxConnections) {
      if (const auto silent = room.call()) silent->make_room();
      crowded.expires_after(kCrowded);
      crowded.async_wait([this](ErrorCode error) {
        if (!error) accept();
      });
      return;
    }
    acceptor.async_accept(asio::make_strand(context), [this](ErrorCode error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        ++connections;
        std::make_shared<Connection>(std::move(socket), *gate, room, connections)->run();
      }
      accept();
    });
  }
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
}

Result<std::unique_ptr<Server>> Server::start(const Api& api, const ServerOptions& options) {
  auto impl = std::make_unique<Impl>();
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), options.port);
  ErrorCode error;
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{"cannot listen on 127.0.0.1:" + std::to_string(options.port) + ": " +
                 error.message() + "; choose another with --port"};
  }
  impl->token = options.token.empty() ? make_token() : options.token;
  impl->gate.emplace(api, GateOptions{.port = impl->acceptor.local_endpoint().port(),
                                      .token = impl->token,
                                      .web = options.web});
  impl->accept();
  for (int i = 0; i < kThreads; ++i) {
    impl->threads.emplace_back([context = &impl->context] { context->run(); });
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

uint16_t Server::port() const {
  return impl_->acceptor.local_endpoint().port();
}

std::string Server::url() const {
  return "http://127.0.0.1:" + std::to_string(port()) + "/" + impl_->token + "/";
}

void Server::stop() {
  impl_->context.stop();
  for (std::thread& thread : impl_->threads) {
    if (thread.joinable()) thread.join();
  }
  impl_->threads.clear();
}

}  // namespace memscope::view
