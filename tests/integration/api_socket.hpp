// RawSocket: sends exactly the bytes it is told to, as no well-behaved client would. Blocking, with five seconds of
// patience for each call. One thread.
#pragma once

#include "weir_process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace weir::test {

class RawSocket {
 public:
  explicit RawSocket(const WeirProcess& process) {
    std::string url = process.url();
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval patience{5, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawSocket() { ::close(fd_); }
  RawSocket(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }
  void finish_sending() { ::shutdown(fd_, SHUT_WR); }
  // Everything until the server closes. `ended` is false if it did not within the patience.
  std::string read_to_end(bool* ended = nullptr) {
    std::string all;
    std::array<char, 16384> block;
    ssize_t got = 0;
    while ((got = ::recv(fd_, block.data(), block.size(), 0)) > 0) all.append(block.data(), static_cast<size_t>(got));
    if (ended != nullptr) *ended = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return all;
  }
  // What has come so far, without waiting.
  std::string read_now() {
    std::array<char, 16384> block;
    ssize_t got = ::recv(fd_, block.data(), block.size(), MSG_DONTWAIT);
    return got > 0 ? std::string(block.data(), static_cast<size_t>(got)) : std::string();
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

}  // namespace weir::test
