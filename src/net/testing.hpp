// For this folder's tests: a server in a thread of its own, and a client that sends exactly the bytes it is told to.
#pragma once

#include "weir/base/log.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>

namespace weir::net::testing {

namespace asio = boost::asio;

class RunningServer {
 public:
  explicit RunningServer(ServerLimits limits = {}, std::function<void(const Finished&)> observer = {})
      : limits_(limits), observer_(std::move(observer)) {
    log::set_level(log::Level::off);
  }
  ~RunningServer() {
    if (thread_.joinable()) stop(0s);
  }

  Router router;
  asio::io_context io{1};
  RealClock clock;
  std::unique_ptr<HttpServer> server;

  // Starts the server; routes are added before. Returns its port.
  std::uint16_t start(std::string_view address = "127.0.0.1:0") {
    server = std::make_unique<HttpServer>(io, clock, router, limits_, observer_);
    auto listening = server->listen(address);
    WEIR_ASSERT(bool(listening));
    std::string bound = server->address();
    port_ = static_cast<std::uint16_t>(std::stoi(bound.substr(bound.rfind(':') + 1)));
    thread_ = std::thread([this] { io.run(); });
    return port_;
  }
  std::uint16_t port() const { return port_; }

  // Begins to stop; the future is ready when the server has ended.
  std::future<void> begin_stop(Duration grace) {
    return asio::co_spawn(io, server->stop(grace), asio::use_future);
  }
  void stop(Duration grace) {
    begin_stop(grace).get();
    busy_.reset();
    thread_.join();
  }
  // Runs on the server's thread.
  template <class F>
  auto ask(F question) {
    std::packaged_task<decltype(question())()> task(std::move(question));
    auto answer = task.get_future();
    asio::post(io, [&task] { task(); });
    return answer.get();
  }
  // Asks again and again, at most two seconds.
  template <class F>
  bool eventually(F question) {
    auto end = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < end) {
      if (ask(question)) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  const ServerLimits limits_;
  const std::function<void(const Finished&)> observer_;
  asio::executor_work_guard<asio::io_context::executor_type> busy_{io.get_executor()};  // until the test is over
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// Blocking, with two seconds of patience for each call.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval patience{2, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  RawClient(const RawClient&) = delete;
  ~RawClient() { close(); }

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool send(std::string_view text) {
    while (!text.empty()) {
      ssize_t put = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      text.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }
  // Nothing more will be sent; answers are still read.
  void finish() { ::shutdown(fd_, SHUT_WR); }
  void send_slowly(std::string_view text) {
    for (char c : text)
      if (!send(std::string_view(&c, 1))) return;
  }
  // What came, up to and with `end`.
  std::string read_until(std::string_view end) {
    while (held_.find(end) == std::string::npos && fill()) {
    }
    size_t at = held_.find(end);
    return take(at == std::string::npos ? held_.size() : at + end.size());
  }
  // One answer with a Content-Length, or one without a body.
  std::string read_answer() {
    std::string head = read_until("\r\n\r\n");
    size_t at = head.find("content-length: ");
    if (at == std::string::npos) return head;
    auto length = static_cast<size_t>(std::stoul(head.substr(at + 16)));
    while (held_.size() < length && fill()) {
    }
    return head + take(length);
  }
  std::string read_to_end() {
    while (fill()) {
    }
    return take(held_.size());
  }
  // The server closed, in whichever way, and had nothing more to say.
  bool closed() { return held_.empty() && !fill() && !timed_out_; }

 private:
  bool fill() {
    std::array<char, 65536> block;
    ssize_t got = ::recv(fd_, block.data(), block.size(), 0);
    timed_out_ = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (got <= 0) return false;
    held_.append(block.data(), static_cast<size_t>(got));
    return true;
  }
  std::string take(size_t bytes) {
    std::string out = held_.substr(0, bytes);
    held_.erase(0, bytes);
    return out;
  }
  int fd_ = -1;
  bool connected_ = false;
  bool timed_out_ = false;
  std::string held_;
};

inline int status_of(std::string_view answer) {
  return answer.size() > 12 ? std::stoi(std::string(answer.substr(9, 3))) : 0;
}
inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace weir::net::testing
