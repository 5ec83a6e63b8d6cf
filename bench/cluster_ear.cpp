#include "cluster_ear.hpp"

#include "weir/net/client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::bench {

namespace asio = boost::asio;
using namespace std::chrono_literals;

Ear::Ear(const std::string& where, const std::string& token, size_t detections) : arrived_(detections) {
  thread_ = std::thread([this, where, token] {
    if (where.starts_with("redis:")) hear_redis(std::stoi(where.substr(6)));
    else hear_socket(where, token);
    failed_ = true;
  });
  while (!listens_ && !failed_) std::this_thread::sleep_for(10ms);
}

Ear::~Ear() {
  over_ = true;
  thread_.join();
}

void Ear::note(std::string& text) {
  constexpr std::string_view kMark = "\"seen-";
  constexpr size_t kDigits = 12;
  Moment now = moment();
  for (size_t at = 0;;) {
    size_t mark = text.find(kMark, at);
    if (mark == std::string::npos || mark + kMark.size() + kDigits > text.size()) {
      text.erase(0, mark == std::string::npos ? text.size() - std::min(text.size(), kMark.size()) : mark);
      return;
    }
    at = mark + kMark.size() + kDigits;
    size_t n = std::stoull(text.substr(mark + kMark.size(), kDigits));
    if (n >= arrived_.size()) continue;
    if (arrived_[n] != Moment{}) ++repeated_;
    else arrived_[n] = now, ++count_;
  }
}

void Ear::hear_redis(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval soon{0, 50'000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
  constexpr std::string_view kAsk = "PSUBSCRIBE worker:slave:*\r\n";
  bool asked = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
               ::send(fd, kAsk.data(), kAsk.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kAsk.size());
  std::string held;
  std::vector<char> block(256 << 10);
  while (asked && !over_) {
    ssize_t got = ::recv(fd, block.data(), block.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    listens_ = true;
    held.append(block.data(), static_cast<size_t>(got));
    note(held);
  }
  if (!over_) std::fputs("Redis does not answer the listener\n", stderr);
  ::close(fd);
}

void Ear::hear_socket(const std::string& url, const std::string& token) {
  asio::io_context io;
  size_t path = url.find('/', url.find("//") + 2);
  auto client = net::HttpClient::create(io, url.substr(0, path));
  auto listen = [&]() -> asio::awaitable<void> {
    net::ClientRequest request{.target = url.substr(path), .bearer = Secret(token)};
    auto socket = co_await client->web_socket(std::move(request), {.message_bytes_max = 16 << 20});
    if (!socket) {
      std::fputs((socket.error().message + "\n").c_str(), stderr);
      co_return;
    }
    listens_ = true;
    while (auto message = co_await socket->receive()) note(message->bytes);
  };
  bool heard_out = false;
  asio::co_spawn(io, listen(), [&](std::exception_ptr) { heard_out = true; });
  while (!over_ && !heard_out) io.run_for(50ms);
}

}  // namespace weir::bench
