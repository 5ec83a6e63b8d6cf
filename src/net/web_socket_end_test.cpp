// How a WebSocket ends, and what it bears before: silence, slowness, the end of its server or of its handler.
#include "server_testing.hpp"
#include "web_socket_testing.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/this_coro.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::as_client;
using testing::binary_message;
using testing::close_code;
using testing::echo_messages;
using testing::EchoServer;
using testing::frame;
using testing::kUpgrade;
using testing::RawClient;
using testing::RunningServer;
using testing::Seen;
using testing::text_message;
using testing::to;
using Why = WebSocketEnd::Why;

TEST(WebSocketEnd, SilentPeer_IsPinged_AndThenGivenUp) {
  EchoServer server({.ping_after = 40ms, .pong_timeout = 80ms});
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  std::string said = client.read_to_end();
  EXPECT_TRUE(said.starts_with(std::string("\x89\0", 2))) << said;
  EXPECT_TRUE(server.eventually([&] { return server.seen.is(Why::silent) && server.server->connections() == 0; }));
}

TEST(WebSocketEnd, PeerThatAnswersPings_StaysConnected) {
  EchoServer server({.ping_after = 20ms, .pong_timeout = 200ms});
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  const std::string ping("\x89\0", 2);
  for (int i = 0; i < 15; ++i) {  // longer than silence is borne
    EXPECT_EQ(client.read_until(ping), ping);
    client.send(frame(0x8A, ""));
  }
  client.send(frame(0x81, "still here"));
  EXPECT_TRUE(client.read_until("still here").ends_with("\x81\x0A" "still here"));
}

// The handler takes its time with each message; that says nothing about the peer.
TEST(WebSocketEnd, BusyHandler_IsNotTakenForASilentPeer) {
  Seen seen;
  RunningServer server;
  testing::add_socket(server.router, "/busy", [&](WebSocket& socket) -> asio::awaitable<void> {
    while (auto message = co_await socket.receive()) co_await server.clock.wait(150ms);
    seen.note(socket);
  }, {.ping_after = 20ms, .pong_timeout = 40ms});
  server.start();
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/busy"));
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    for (const char* text : {"one", "two", "three"}) (void)co_await socket->send(text_message(text));
    co_await socket->close();
  });
  EXPECT_TRUE(server.eventually([&] { return seen.is(Why::closed_by_peer); })) << seen.why;
}

TEST(WebSocketEnd, PeerThatDoesNotRead_IsCutOff_ByTheQueueOrByTime) {
  Seen posted, sent;
  RunningServer server;
  WebSocketLimits limits{.queue_bytes_max = 1 << 20, .write_timeout = 100ms};
  auto flood = [](WebSocket& socket, bool waits) -> asio::awaitable<void> {
    for (std::string block(64 << 10, 'x'); !socket.end();) {
      Status queued = ok();
      if (waits)
        queued = co_await socket.send(binary_message(block));
      else
        queued = socket.post(binary_message(block));
      EXPECT_LE(socket.queued_bytes(), 1u << 20);
    }
  };
  testing::add_socket(server.router, "/posted", [&](WebSocket& socket) -> asio::awaitable<void> {
    co_await flood(socket, false);
    posted.note(socket);
  }, limits);
  testing::add_socket(server.router, "/sent", [&](WebSocket& socket) -> asio::awaitable<void> {
    co_await flood(socket, true);
    sent.note(socket);
  }, limits);
  server.start();
  for (std::string_view path : {"/posted", "/sent"}) {
    RawClient client(server.port(), 4096);
    std::string request(kUpgrade);
    client.send(request.replace(request.find("/echo"), 5, path));
    client.read_until("\r\n\r\n");
    Seen& seen = path == "/sent" ? sent : posted;
    EXPECT_TRUE(server.eventually([&] { return seen.is(Why::too_slow) && server.server->connections() == 0; })) << path;
    EXPECT_EQ(seen.code, 1008);
  }
}

// What nobody takes is not read either, so the sender's queue fills, and then its patience ends.
TEST(WebSocketEnd, HandlerThatTakesNothing_HoldsTheSenderUp) {
  RunningServer server;
  testing::add_socket(server.router, "/idle", [&](WebSocket& socket) -> asio::awaitable<void> {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await socket.over();
  });
  server.start();
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/idle"), {.queue_bytes_max = 1 << 20, .write_timeout = 150ms});
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    int sent = 0;
    for (Status queued = ok(); queued && sent < 1000; ++sent) {
      auto message = binary_message(std::string(1 << 20, 'x'));
      queued = co_await socket->send(std::move(message));
    }
    EXPECT_LT(sent, 100);
    EXPECT_TRUE(socket->end() && socket->end()->why == Why::too_slow);
  });
}

TEST(WebSocketEnd, ServerStops_Says1001_AndWaitsForTheHandlers) {
  EchoServer server;
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  auto stopped = server.begin_stop(10s);
  std::string said = client.read_until("stops");
  EXPECT_EQ(close_code(said), 1001);
  client.send(frame(0x88, "\x03\xE9"));
  EXPECT_TRUE(client.closed());
  client.close();
  stopped.get();
  EXPECT_EQ(server.seen.handlers, 0);
  EXPECT_TRUE(server.seen.is(Why::closed_here));
  server.stop(0s);
}

TEST(WebSocketEnd, PeerThatDoesNotAnswerAClose_IsNotWaitedForBeyondTheLimit) {
  EchoServer server({.close_timeout = 60ms});
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  auto before = boot_now();
  server.stop(10s);
  EXPECT_LT(boot_now() - before, 5s);
  EXPECT_TRUE(server.seen.is(Why::closed_here));
}

TEST(WebSocketEnd, HandlerThatNeverLooks_IsCancelledAfterTheConnectionsEnd) {
  std::atomic<int> cancelled = 0;
  RunningServer server;
  testing::add_socket(server.router, "/deaf", [&](WebSocket& socket) -> asio::awaitable<void> {
    co_await asio::this_coro::throw_if_cancelled(false);
    (void)co_await socket.send(text_message("hello"));
    co_await server.clock.wait(1h);
    ++cancelled;
  }, {.close_timeout = 50ms});
  server.start();
  RawClient client(server.port());
  std::string request(kUpgrade);
  client.send(request.replace(request.find("/echo"), 5, "/deaf"));
  client.read_until("hello");
  client.close();
  EXPECT_TRUE(server.eventually([&] { return cancelled == 1 && server.server->connections() == 0; }));
}

// The peer breaks the protocol in the moment in which the server closes.
TEST(WebSocketEnd, BadFrameJustAsTheServerCloses_LeavesNothingWaiting) {
  RunningServer server;
  testing::add_socket(server.router, "/echo", [](WebSocket& socket) -> asio::awaitable<void> {
    for (int i = 0; i < 50; ++i) co_await asio::post(asio::use_awaitable);  // the first message has come
    socket.begin_close();
    (void)co_await socket.receive();
  }, {.close_timeout = 50ms});
  RawClient client(server.start());
  client.send(std::string(kUpgrade) + frame(0x81, "x") + frame(0x83, "bad"));
  client.read_to_end();
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

TEST(WebSocketEnd, HandlerThatThrows_Ends1011) {
  RunningServer server;
  testing::add_socket(server.router, "/echo", [](WebSocket&) -> asio::awaitable<void> {
    co_await asio::this_coro::executor;
    throw std::runtime_error("secret");
  });
  RawClient client(server.start());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  EXPECT_EQ(client.read_until("\x03\xF3"), "\x88\x02\x03\xF3");
  client.send(frame(0x88, "\x03\xF3"));
  EXPECT_TRUE(client.closed());
}

TEST(WebSocketEnd, ServerThatDoesNotAnswer_IsGivenUpInTime_AndACancelledCallerAtOnce) {
  RunningServer server;
  server.router.add(Method::get, "/never", [&](Request&) -> asio::awaitable<Response> {
    co_await server.clock.wait(1h);
    co_return Response{};
  });
  server.start();
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    ClientRequest request = to("/never");
    request.timeout = 50ms;
    auto late = co_await client.web_socket(std::move(request));
    EXPECT_TRUE(!late && late.error().reason == "timeout");
  });
  asio::io_context io(1);
  auto client = HttpClient::create(io, fmt::format("ws://127.0.0.1:{}", server.port()));
  asio::cancellation_signal stop;
  std::string reason;
  auto call = [&]() -> asio::awaitable<void> {
    auto opened = co_await client->web_socket(to("/never"));
    if (!opened) reason = opened.error().reason;
  };
  asio::co_spawn(io, call(), asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {}));
  io.run_for(50ms);
  stop.emit(asio::cancellation_type::terminal);
  io.run_for(2s);
  EXPECT_EQ(reason, "cancelled");
}

TEST(WebSocketEnd, DroppedAtEitherEnd_LeaksNothing_AndTheOtherEndHearsOfIt) {
  EchoServer server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/echo"));
    EXPECT_TRUE(socket && socket->post(text_message("unread")));
  });
  EXPECT_TRUE(server.eventually([&] { return server.seen.is(Why::lost) && server.server->connections() == 0; }));
  // A loop that ends while a connection is open, on either side.
  asio::io_context io(1);
  auto client = HttpClient::create(io, fmt::format("ws://127.0.0.1:{}", server.port()));
  std::optional<WebSocket> kept;
  auto open = [&]() -> asio::awaitable<void> {
    auto opened = co_await client->web_socket(to("/echo"));
    if (opened) kept.emplace(*std::move(opened));
  };
  asio::co_spawn(io, open(), asio::use_future);
  for (int i = 0; i < 200 && !kept; ++i) io.run_one_for(10ms);
  EXPECT_TRUE(kept);
  kept.reset();
}

// The loop ends while a WebSocket and an upload are open; nothing may leak or be used too late.
TEST(WebSocketEnd, ServerDestroyedWithAnOpenOne_LeaksNothing) {
  for (bool drain_after_server : {true, false}) {
    auto io = std::make_unique<asio::io_context>(1);
    RealClock clock;
    Router router;
    int started = 0;
    testing::add_socket(router, "/echo", [&](WebSocket& socket) -> asio::awaitable<void> {
      ++started;
      co_await echo_messages(socket);
    });
    router.add(Method::put, "/store", [&](Request& request) -> asio::awaitable<Response> {
      ++started;
      (void)co_await request.streamed->read_some();
      (void)co_await request.streamed->read_some();
      co_return Response{};
    }, StreamedBody{100});
    auto server = std::make_unique<HttpServer>(*io, clock, router, ServerLimits{});
    ASSERT_TRUE(server->listen("127.0.0.1:0"));
    std::string address = server->address();
    auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    RawClient socket(port), upload(port);
    socket.send(kUpgrade);
    upload.send("PUT /store HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab");
    for (int i = 0; i < 200 && started < 2; ++i) io->run_one_for(10ms);
    EXPECT_EQ(started, 2);
    server.reset();
    if (drain_after_server) io->run_for(1s);
    io.reset();
  }
}

}  // namespace
}  // namespace weir::net
