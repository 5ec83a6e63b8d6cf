#include "wire.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace weir::bench {

namespace {
constexpr size_t kRoom = 16 << 10;
constexpr std::string_view kLength = "\r\ncontent-length: ";

int number_at(std::string_view text, size_t at) {
  int number = 0;
  std::from_chars(text.data() + std::min(at, text.size()), text.data() + text.size(), number);
  return number;
}
}  // namespace

Wire::Wire(std::uint16_t port) : in_(kRoom, '\0') {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int on = 1;
  if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    trouble_ = fmt::format("cannot connect: {}", std::strerror(errno));
  else ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Wire::~Wire() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<Answer> Wire::fail(std::string_view what) {
  if (trouble_.empty()) trouble_ = what;
  waiting_ = false;
  return Answer{0, trouble_};
}

// Requests are a few kilobytes and the socket is empty: a send that does not take everything is a broken connection,
// which the next `receive` reports.
void Wire::send(std::string_view request) {
  waiting_ = true;
  filled_ = body_at_ = end_ = 0;
  ssize_t put = ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
  if (put != static_cast<ssize_t>(request.size())) {
    if (trouble_.empty()) trouble_ = put < 0 ? std::strerror(errno) : "the socket did not take the whole request";
    ::shutdown(fd_, SHUT_RDWR);  // wakes whoever waits for the answer
  }
}

std::optional<Answer> Wire::receive() {
  if (broken()) return fail(trouble_);
  for (;;) {
    if (filled_ == in_.size()) in_.resize(in_.size() * 2);
    ssize_t got = ::recv(fd_, in_.data() + filled_, in_.size() - filled_, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got < 0) return fail(std::strerror(errno));
    if (got == 0) return fail("the server closed the connection");
    filled_ += static_cast<size_t>(got);
    if (auto answer = complete()) return answer;
  }
}

std::optional<Answer> Wire::complete() {
  std::string_view text(in_.data(), filled_);
  if (body_at_ == 0) {
    size_t head = text.find("\r\n\r\n");
    if (head == std::string_view::npos) return std::nullopt;
    size_t length = text.substr(0, head).find(kLength);
    if (length == std::string_view::npos) return fail("an answer without content-length");
    body_at_ = head + 4;
    end_ = body_at_ + static_cast<size_t>(number_at(text, length + kLength.size()));
  }
  if (filled_ < end_) return std::nullopt;
  waiting_ = false;
  return Answer{number_at(text, std::strlen("HTTP/1.1 ")), text.substr(body_at_, end_ - body_at_)};
}

std::string post_text(std::string_view path, std::string_view token, std::string_view body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      path, token, body.size(), body);
}

}  // namespace weir::bench
