// For this folder's tests: a camera made of a socket and a script, which can be as rude as the test needs.
// The script runs on a thread of its own, once for each connection; the rest belongs to the test's thread.
#pragma once

#include "clip_testing.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

namespace weir::ffmpeg::testing {

// One connection, as the script sees it. Everything ends within seconds.
class Dial {
 public:
  explicit Dial(int fd) : fd_(fd) {}
  // Up to the empty line; "" at the end of the connection.
  std::string request() {
    std::string text;
    for (char c; !text.ends_with("\r\n\r\n");) {
      if (recv(fd_, &c, 1, 0) != 1) return "";
      // What a client sends between requests while it plays.
      if (text.empty() && c == '$') {
        unsigned char head[3];
        if (recv(fd_, head, 3, MSG_WAITALL) != 3) return "";
        std::string skipped(static_cast<size_t>(head[1] << 8 | head[2]), '\0');
        if (recv(fd_, skipped.data(), skipped.size(), MSG_WAITALL) <= 0) return "";
        continue;
      }
      text += c;
    }
    return text;
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // "401 Unauthorized", with the number of the request it answers.
  bool answer(const std::string& request, std::string_view status, std::string_view headers = {},
              std::string_view body = {}) {
    size_t at = request.find("CSeq: ");
    std::string number = at == std::string::npos ? "0" : request.substr(at + 6, request.find('\r', at) - at - 6);
    return send(fmt::format("RTSP/1.0 {}\r\nCSeq: {}\r\n{}Content-Length: {}\r\n\r\n{}", status, number, headers,
                            body.size(), body));
  }
  // Holds the connection until the other side goes away.
  void hold() {
    for (char c[256]; recv(fd_, c, sizeof c, 0) > 0;) {
    }
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

class ScriptedCamera {
 public:
  using Script = std::function<void(Dial&)>;
  explicit ScriptedCamera(Script script) : script_(std::move(script)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_at(address, address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ScriptedCamera(const ScriptedCamera&) = delete;
  ~ScriptedCamera() {
    ending_ = true;
    shutdown(listening_, SHUT_RDWR);
    if (int fd = current_.load(); fd >= 0) shutdown(fd, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }
  int port() const { return port_; }
  int dials() const { return dials_; }
  std::string url(std::string_view rest = "/stream", std::string_view login = "",
                  std::string_view scheme = "rtsp") const {
    return fmt::format("{}://{}127.0.0.1:{}{}", scheme, login, port_, rest);
  }

  struct Ipv6 {};
  // Port 0 where this machine has no IPv6.
  ScriptedCamera(Ipv6, Script script) : script_(std::move(script)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    listen_at(address, address.sin6_port);
    thread_ = std::thread([this] { run(); });
  }

 private:
  template <class Address>
  void listen_at(Address& address, const in_port_t& port) {
    auto* where = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    listening_ = socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening_, where, size) != 0) return;
    listen(listening_, 16);
    getsockname(listening_, where, &size);
    port_ = ntohs(port);
  }
  void run() {
    while (!ending_) {
      int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      timeval patience{10, 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      ++dials_;
      current_ = fd;
      Dial dial(fd);
      if (!ending_) script_(dial);
      current_ = -1;
      ::close(fd);
    }
  }
  const Script script_;
  int listening_ = -1, port_ = 0;
  std::atomic<int> current_ = -1, dials_ = 0;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

// ---- a camera that really streams H.264, interleaved ----

inline bool send_rtp(Dial& dial, std::string_view payload, bool last, std::uint32_t stamp, std::uint16_t& sequence) {
  std::string packet = {'$', 0, static_cast<char>((payload.size() + 12) >> 8), static_cast<char>(payload.size() + 12)};
  auto put = [&](std::uint32_t value, int bytes) {
    for (int i = bytes; i-- > 0;) packet += static_cast<char>(value >> (8 * i));
  };
  packet += static_cast<char>(0x80);
  packet += static_cast<char>(96 | (last ? 0x80 : 0));
  put(sequence++, 2);
  put(stamp, 4);
  put(0x1234, 4);
  packet += payload;
  return dial.send(packet);
}

// One coded picture (start codes), cut into RTP packets as RFC 6184 says.
inline bool send_picture(Dial& dial, const AVPacket& picture, std::uint32_t stamp, std::uint16_t& sequence) {
  std::string_view bytes(reinterpret_cast<const char*>(picture.data), static_cast<size_t>(picture.size));
  std::vector<std::string_view> units;
  constexpr std::string_view kStart("\0\0\1", 3);
  for (size_t at = bytes.find(kStart); at != std::string_view::npos;) {
    size_t next = bytes.find(kStart, at + 3);
    std::string_view unit = bytes.substr(at + 3, next == std::string_view::npos ? next : next - at - 3);
    while (next != std::string_view::npos && unit.ends_with('\0')) unit.remove_suffix(1);
    units.push_back(unit);
    at = next;
  }
  constexpr size_t kPart = 1200;
  for (size_t i = 0; i < units.size(); ++i) {
    std::string_view unit = units[i];
    bool last = i + 1 == units.size();
    if (unit.size() <= kPart) {
      if (!send_rtp(dial, unit, last, stamp, sequence)) return false;
      continue;
    }
    char head = unit[0];
    unit.remove_prefix(1);
    for (bool first = true; !unit.empty(); first = false) {
      std::string_view part = unit.substr(0, kPart);
      unit.remove_prefix(part.size());
      std::string payload = {static_cast<char>((head & 0x60) | 28),
                             static_cast<char>((head & 0x1F) | (first ? 0x80 : 0) | (unit.empty() ? 0x40 : 0))};
      payload += part;
      if (!send_rtp(dial, payload, last && unit.empty(), stamp, sequence)) return false;
    }
  }
  return true;
}

inline constexpr std::string_view kH264 =
    "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
    "a=fmtp:96 packetization-mode=1\r\na=control:track1\r\n";

// Answers everything up to and including PLAY. False where the client went away.
inline bool greet(Dial& dial, std::string_view description = kH264) {
  for (;;) {
    std::string request = dial.request();
    if (request.empty()) return false;
    if (request.starts_with("OPTIONS"))
      dial.answer(request, "200 OK", "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n");
    else if (request.starts_with("DESCRIBE"))
      dial.answer(request, "200 OK", "Content-Type: application/sdp\r\n", description);
    else if (request.starts_with("SETUP"))
      dial.answer(request, "200 OK", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n");
    else
      return dial.answer(request, request.starts_with("PLAY") ? "200 OK" : "501 Not Implemented", "Session: 1\r\n");
  }
}

// Sends the clip at once; a reader's parser sees a picture's end where the next one begins.
inline bool play(Dial& dial, const Clip& clip, std::uint32_t from = 0) {
  std::uint16_t sequence = static_cast<std::uint16_t>(from);
  for (const auto& packet : clip.packets) {
    auto stamp = static_cast<std::uint32_t>(av_rescale_q(packet->pts + from, clip.encoder->time_base, {1, 90000}));
    if (!send_picture(dial, *packet, 1000 + stamp, sequence)) return false;
  }
  return true;
}

}  // namespace weir::ffmpeg::testing
