// Both ends of a WebSocket: Weir's with Weir's, and Weir's server with a client that sends what nobody should.
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
using testing::echo_messages;
using testing::has;
using testing::RawClient;
using testing::RunningServer;
using testing::text_message;
using Why = WebSocketEnd::Why;

constexpr std::string_view kUpgrade =
    "GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// A frame of a client, with a mask of zeros.
std::string frame(int first_byte, std::string_view payload, std::uint64_t declared) {
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
std::string frame(int first_byte, std::string_view payload) { return frame(first_byte, payload, payload.size()); }

// What the server said last: the code of its close frame, 0 where there is none.
int close_code(std::string_view tail) {
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
  bool is(Why expected) const { return why == static_cast<int>(expected); }
};

// Echoes, and notes how the connection ended.
struct EchoServer : RunningServer {
  explicit EchoServer(WebSocketLimits limits = {}, ServerLimits of_server = {}) : RunningServer(of_server) {
    auto talk = [this](WebSocket& socket) -> asio::awaitable<void> {
      ++seen.handlers;
      co_await echo_messages(socket);
      seen.note(socket);
      --seen.handlers;
    };
    testing::add_socket(router, "/echo", talk, limits);
    start();
  }
  Seen seen;
};

ClientRequest to(std::string target) {
  ClientRequest request;
  request.target = std::move(target);
  return request;
}

TEST(WebSocket, Messages_GoBothWays_AsTheyWereSent) {
  EchoServer server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/echo"));
    EXPECT_TRUE(socket) << socket.error().message;
    if (!socket) co_return;
    std::string large(1 << 20, 'x'), noise(1 << 20, '\0');
    for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i >> 7);
    std::vector<WebSocketMessage> all{text_message("hello"), text_message(""), binary_message(std::string(3, '\0')),
                                      text_message("ünïcödé"), text_message(large), binary_message(noise)};
    for (const WebSocketMessage& each : all) {
      auto sent = co_await socket->send(each);
      EXPECT_TRUE(sent);
      auto back = co_await socket->receive();
      EXPECT_TRUE(back);
      EXPECT_TRUE(back && back->bytes == each.bytes && back->binary == each.binary) << each.bytes.size();
    }
    EXPECT_EQ(socket->queued_bytes(), 0u);
    co_await socket->close(4001, "done");
    EXPECT_TRUE(socket->end() && socket->end()->why == Why::closed_here && socket->end()->code == 4001);
    auto late = co_await socket->send(text_message("late"));
    EXPECT_FALSE(late);
    auto none = co_await socket->receive();
    EXPECT_FALSE(none);
  });
  EXPECT_TRUE(server.eventually([&] { return server.seen.is(Why::closed_by_peer) && server.server->connections() == 0; }));
  EXPECT_EQ(server.seen.code, 4001);
}

TEST(WebSocket, ManySenders_EachInItsOwnOrder_NothingIsTorn) {
  std::atomic<int> wrong = 0, heard = 0;
  RunningServer server;
  testing::add_socket(server.router, "/listen", [&](WebSocket& socket) -> asio::awaitable<void> {
    std::map<char, int> next;
    while (auto message = co_await socket.receive()) {
      ++heard;
      int number = std::stoi(message->bytes.substr(1));
      if (number != next[message->bytes[0]]++) ++wrong;
    }
  });
  server.start();
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/listen"), {.queue_bytes_max = 100});
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    auto left = std::make_shared<int>(5);
    auto send_all = [](WebSocket& on, char name, std::shared_ptr<int> running) -> asio::awaitable<void> {
      for (int i = 0; i < 200; ++i) {
        auto sent = co_await on.send({fmt::format("{}{}", name, i), false});
        EXPECT_TRUE(sent);
        EXPECT_LE(on.queued_bytes(), 100u);
      }
      if (--*running == 0) on.begin_close();
    };
    auto executor = co_await asio::this_coro::executor;
    for (char name = 'a'; name < 'f'; ++name)
      asio::co_spawn(executor, send_all(*socket, name, left), asio::use_future);
    co_await socket->over();
  });
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
  EXPECT_EQ(heard, 1000);
  EXPECT_EQ(wrong, 0);
}

TEST(WebSocket, Refused_IsAnOrdinaryError_AndNothingIsUpgraded) {
  EchoServer server;
  RunningServer guarded;
  guarded.router.add(Method::get, "/feed", [](Request& request) -> asio::awaitable<Response> {
    if (request.header("authorization") != "Bearer good" || request.header("x-from") != "here")
      co_return Response::failure({Errc::forbidden, "wrong_role", "not you"});
    Response response;
    response.socket = [](WebSocket& socket) -> asio::awaitable<void> { (void)co_await socket.send({"in", false}); };
    co_return response;
  });
  guarded.start();
  as_client(guarded.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto refused = co_await client.web_socket(to("/feed"));
    EXPECT_TRUE(!refused && refused.error().reason == "wrong_role");
    auto absent = co_await client.web_socket(to("/nowhere"));
    EXPECT_TRUE(!absent && absent.error().code == Errc::not_found);
    ClientRequest request = to("/feed");
    request.bearer = Secret("good");
    request.headers = {{"X-From", "here"}};
    auto allowed = co_await client.web_socket(std::move(request));
    EXPECT_TRUE(allowed);
    if (!allowed) co_return;
    auto first = co_await allowed->receive();
    EXPECT_TRUE(first && first->bytes == "in");
    auto none = co_await allowed->receive();
    EXPECT_FALSE(none);
    EXPECT_TRUE(allowed->end() && allowed->end()->why == Why::closed_by_peer && allowed->end()->code == 1000);
  });
}

TEST(WebSocket, RequestThatIsNoUpgrade_IsToldWhatIsSpoken) {
  EchoServer server;
  RawClient client(server.port());
  client.send(testing::get("/echo"));
  std::string answer = client.read_answer();
  EXPECT_EQ(testing::status_of(answer), 426);
  EXPECT_TRUE(has(answer, "upgrade: websocket\r\n") && has(answer, "sec-websocket-version: 13\r\n"));
  std::string old(kUpgrade);
  client.send(old.replace(old.find("13"), 2, "12"));
  EXPECT_EQ(testing::status_of(client.read_answer()), 426);
  std::string keyless(kUpgrade);
  client.send(keyless.replace(keyless.find("dGhl"), 8, ""));
  EXPECT_EQ(testing::status_of(client.read_answer()), 400);
  client.send("HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(testing::status_of(client.read_until("\r\n\r\n")), 426);
}

TEST(WebSocket, FramesBehindTheRequest_InOnePacket_AreRead) {
  EchoServer server;
  RawClient client(server.port());
  client.send(std::string(kUpgrade) + frame(0x81, "early"));
  std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(testing::status_of(head), 101);
  EXPECT_TRUE(has(head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")) << head;
  EXPECT_TRUE(has(head, "x-request-id: "));
  EXPECT_EQ(client.read_until("early"), "\x81\x05" "early");
}

TEST(WebSocket, WhatIsAgainstTheProtocol_EndsWithTheCodeForIt) {
  EchoServer server({.message_bytes_max = 1000});
  struct Row {
    std::string sent;
    int code;
    Why why;
  };
  const std::vector<Row> rows{
      {frame(0x81, "\xC3\x28"), 1007, Why::bad_message},                      // not UTF-8
      {frame(0x81, "\xC3"), 1007, Why::bad_message},                          // cut within a character
      {frame(0x82, "", 50'000'000), 1009, Why::too_large},                    // by its declared length alone
      {frame(0x02, std::string(600, 'x')) + frame(0x80, std::string(600, 'x')), 1009, Why::too_large},
      {std::string("\x81\x02hi"), 1002, Why::bad_message},                    // without a mask
      {frame(0x83, "x"), 1002, Why::bad_message},                             // an unknown opcode
      {frame(0xC1, "x"), 1002, Why::bad_message},                             // compressed, which was not agreed
      {frame(0x80, "x"), 1002, Why::bad_message},                             // continues nothing
      {frame(0x89, std::string(126, 'x')), 1002, Why::bad_message},           // a ping of that length
      {frame(0x88, "\x03"), 1002, Why::bad_message},                          // half a close code
      {frame(0x88, "\x03\xE8" "bye"), 1000, Why::closed_by_peer},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    server.seen.why = -1;
    RawClient client(server.port());
    client.send(kUpgrade);
    EXPECT_EQ(testing::status_of(client.read_until("\r\n\r\n")), 101);
    client.send(rows[i].sent);
    EXPECT_EQ(close_code(client.read_to_end()), rows[i].code) << i;
    client.close();
    EXPECT_TRUE(server.eventually([&] { return server.seen.is(rows[i].why); })) << i << " " << server.seen.why;
    EXPECT_EQ(server.seen.code, rows[i].code) << i;
  }
}

TEST(WebSocket, PingsAreAnswered_AndFragmentsJoined) {
  EchoServer server;
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  client.send(frame(0x01, "Hel") + frame(0x89, "are you there") + frame(0x00, "") + frame(0x80, "lo"));
  EXPECT_EQ(client.read_until("Hello"), "\x8A\x0D" "are you there\x81\x05" "Hello");
}

TEST(WebSocket, SilentPeer_IsPinged_AndThenGivenUp) {
  EchoServer server({.ping_after = 40ms, .pong_timeout = 80ms});
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  std::string said = client.read_to_end();
  EXPECT_TRUE(said.starts_with(std::string("\x89\0", 2))) << said;
  EXPECT_TRUE(server.eventually([&] { return server.seen.is(Why::silent) && server.server->connections() == 0; }));
}

TEST(WebSocket, PeerThatAnswersPings_StaysConnected) {
  EchoServer server({.ping_after = 20ms, .pong_timeout = 60ms});
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/echo"));
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    asio::steady_timer later(co_await asio::this_coro::executor, 400ms);  // ten times as long as silence is borne
    co_await later.async_wait(asio::use_awaitable);
    auto sent = co_await socket->send(text_message("still here"));
    EXPECT_TRUE(sent);
    auto back = co_await socket->receive();
    EXPECT_TRUE(back && back->bytes == "still here");
  });
}

// The handler takes its time with each message; that says nothing about the peer.
TEST(WebSocket, BusyHandler_IsNotTakenForASilentPeer) {
  RunningServer server;
  Seen seen;
  testing::add_socket(server.router, "/busy", [&](WebSocket& socket) -> asio::awaitable<void> {
    while (auto message = co_await socket.receive()) co_await server.clock.wait(300ms);
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

TEST(WebSocket, PeerThatDoesNotRead_IsCutOff_ByTheQueueOrByTime) {
  RunningServer server;
  Seen posted, sent;
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

TEST(WebSocket, TextThatIsNotUtf8_IsNotSent) {
  EchoServer server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto socket = co_await client.web_socket(to("/echo"));
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    auto sent = co_await socket->send(text_message("\xFF"));
    EXPECT_TRUE(!sent && sent.error().reason == "not_utf8");
    EXPECT_FALSE(socket->post(text_message("\xC3")));
    EXPECT_TRUE(socket->post(binary_message("\xFF")));
    auto back = co_await socket->receive();
    EXPECT_TRUE(back && back->bytes == "\xFF");
  });
}

TEST(WebSocket, ServerStops_Says1001_AndWaitsForTheHandlers) {
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

TEST(WebSocket, PeerThatDoesNotAnswerAClose_IsNotWaitedForBeyondTheLimit) {
  EchoServer server({.close_timeout = 60ms});
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  auto before = boot_now();
  server.stop(10s);
  EXPECT_LT(boot_now() - before, 5s);
  EXPECT_TRUE(server.seen.is(Why::closed_here));
}

TEST(WebSocket, HandlerThatNeverLooks_IsCancelledAfterTheConnectionsEnd) {
  RunningServer server;
  std::atomic<int> cancelled = 0;
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

TEST(WebSocket, HandlerThatThrows_Ends1011) {
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

TEST(WebSocket, ServerThatDoesNotAnswer_IsGivenUpInTime_AndACancelledCallerAtOnce) {
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

TEST(WebSocket, DroppedAtEitherEnd_LeaksNothing_AndTheOtherEndHearsOfIt) {
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

}  // namespace
}  // namespace weir::net
