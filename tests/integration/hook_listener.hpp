// HookListener: stands where weir-hook expects the orchestrator: keeps what is posted, and answers what the test says.
//
// One connection after the other, on a thread of its own that ends with the object; everything else may be called from
// any thread.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::test {

struct Posted {
  std::string head, body;
};

class HookListener {
 public:
  static constexpr const char* kAccepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}";

  // "" as an answer: the connection stays open without one, until `release`.
  explicit HookListener(std::string answer = kAccepted, bool ipv6 = false) : answer_(std::move(answer)), ipv6_(ipv6) {
    fd_ = ::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 at6{};
    at6.sin6_family = AF_INET6;
    at6.sin6_addr = in6addr_loopback;
    sockaddr_in at4{};
    at4.sin_family = AF_INET;
    at4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* at = ipv6 ? reinterpret_cast<sockaddr*>(&at6) : reinterpret_cast<sockaddr*>(&at4);
    socklen_t size = ipv6 ? sizeof at6 : sizeof at4;
    EXPECT_EQ(::bind(fd_, at, size), 0);
    EXPECT_EQ(::listen(fd_, 64), 0);
    EXPECT_EQ(::getsockname(fd_, at, &size), 0);
    port_ = ntohs(ipv6 ? at6.sin6_port : at4.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HookListener() {
    over_ = true;
    thread_.join();
    ::close(fd_);
  }
  HookListener(const HookListener&) = delete;

  std::string url() const { return fmt::format("http://{}:{}", ipv6_ ? "[::1]" : "127.0.0.1", port_); }
  int port() const { return port_; }
  std::vector<Posted> posted() const {
    std::lock_guard held(lock_);
    return posted_;
  }
  // The connections that wait, and all that follow, are answered now.
  void release(const std::string& answer = kAccepted) {
    std::lock_guard held(lock_);
    answer_ = answer;
  }

 private:
  bool readable(int fd) const {
    pollfd look{fd, POLLIN, 0};
    while (!over_)
      if (::poll(&look, 1, 10) > 0) return true;
    return false;
  }
  std::string answer() const {
    std::lock_guard held(lock_);
    return answer_;
  }
  void serve() {
    while (readable(fd_)) {
      int peer = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;
      read_one(peer);
      while (!over_ && answer().empty() && !ended(peer)) std::this_thread::yield();
      std::string text = answer();
      (void)!::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
      ::close(peer);
    }
  }
  static bool ended(int peer) {
    char c = 0;
    return ::recv(peer, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }
  void read_one(int peer) {
    std::string text;
    size_t head = std::string::npos, length = 0;
    char some[4096];
    while (head == std::string::npos || text.size() < head + 4 + length) {
      ssize_t got = readable(peer) ? ::recv(peer, some, sizeof some, 0) : -1;
      if (got <= 0) return;
      text.append(some, static_cast<size_t>(got));
      head = text.find("\r\n\r\n");
      if (size_t at = text.find("Content-Length: "); at < head) length = std::stoul(text.substr(at + 16));
    }
    std::lock_guard held(lock_);
    posted_.push_back({text.substr(0, head + 2), text.substr(head + 4)});
  }

  mutable std::mutex lock_;
  std::vector<Posted> posted_;  // under the lock
  std::string answer_;          // under the lock
  const bool ipv6_;
  int fd_ = -1, port_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace weir::test
