// For the tests of WebSockets: a client that runs beside a RunningServer, so that a test can be written as one
// coroutine, and the bytes that a client without Weir's manners sends.
#pragma once

#include "testing.hpp"

#include "weir/net/client.hpp"

#include <atomic>

namespace weir::net::testing {

// Runs what the test says as a client, with a loop of its own, until that has ended; fails the test by an exception.
template <class Talk>
void as_client(std::uint16_t port, Talk talk, std::string_view scheme = "ws", ClientOptions options = {}) {
  asio::io_context io(1);
  auto client = HttpClient::create(io, fmt::format("{}://127.0.0.1:{}", scheme, port), std::move(options));
  WEIR_ASSERT(bool(client));
  auto done = asio::co_spawn(io, talk(*client), asio::use_future);
  io.run();
  done.get();
}

inline WebSocketMessage text_message(std::string text) { return {std::move(text), false}; }
inline WebSocketMessage binary_message(std::string bytes) { return {std::move(bytes), true}; }

// A route that answers with a WebSocket.
inline void add_socket(Router& router, std::string_view pattern,
                       std::function<asio::awaitable<void>(WebSocket&)> talk, WebSocketLimits limits = {}) {
  router.add(Method::get, pattern, [talk = std::move(talk), limits](Request&) -> asio::awaitable<Response> {
    Response response;
    response.socket = talk;
    response.socket_limits = limits;
    co_return response;
  });
}

inline asio::awaitable<void> echo_messages(WebSocket& socket) {
  for (;;) {
    auto message = co_await socket.receive();
    if (!message) co_return;
    (void)co_await socket.send(*std::move(message));
  }
}

inline constexpr std::string_view kUpgrade =
    "GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// A frame of a client, with a mask of zeros.
inline std::string frame(int first_byte, std::string_view payload, std::uint64_t declared) {
  std::string out(1, static_cast<char>(first_byte));
  if (declared < 126) {
    out += static_cast<char>(0x80 | declared);
  } else {
    int bytes = declared < 65536 ? 2 : 8;
    out += static_cast<char>(bytes == 2 ? 0x80 | 126 : 0x80 | 127);
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out += static_cast<char>(declared >> shift & 0xFF);
  }
  out.append(4, '\0');
  return out.append(payload);
}
inline std::string frame(int first_byte, std::string_view payload) {
  return frame(first_byte, payload, payload.size());
}

// What the server said last: the code of its close frame, 0 where there is none.
inline int close_code(std::string_view tail) {
  size_t at = tail.rfind('\x88');
  if (at == std::string_view::npos || tail.size() < at + 4) return 0;
  return static_cast<unsigned char>(tail[at + 2]) << 8 | static_cast<unsigned char>(tail[at + 3]);
}

struct Seen {
  std::atomic<int> why = -1, code = 0, handlers = 0;
  void note(const WebSocket& socket) {
    if (!socket.end()) return;
    code = socket.end()->code;
    why = static_cast<int>(socket.end()->why);
  }
  bool is(WebSocketEnd::Why expected) const { return why == static_cast<int>(expected); }
};

// Echoes, and notes how the connection ended.
struct EchoServer : RunningServer {
  explicit EchoServer(WebSocketLimits limits = {}, ServerLimits of_server = {}) : RunningServer(of_server) {
    auto talk = [kept = kept_](WebSocket& socket) -> asio::awaitable<void> {
      ++kept->handlers;
      co_await echo_messages(socket);
      kept->note(socket);
      --kept->handlers;
    };
    add_socket(router, "/echo", talk, limits);
    start();
  }

 private:
  const std::shared_ptr<Seen> kept_ = std::make_shared<Seen>();  // handlers may end after this object

 public:
  Seen& seen = *kept_;
};

inline ClientRequest to(std::string target) {
  ClientRequest request;
  request.target = std::move(target);
  return request;
}

}  // namespace weir::net::testing
