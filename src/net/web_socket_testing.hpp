// For the tests of WebSockets: a client that runs beside a RunningServer, in a thread of its own, so that a test can be
// written as one coroutine.
#pragma once

#include "testing.hpp"

#include "weir/net/client.hpp"

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

}  // namespace weir::net::testing
