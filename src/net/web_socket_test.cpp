// What two ends of a WebSocket say to each other, and what nobody should say.
#include "server_testing.hpp"
#include "web_socket_testing.hpp"

#include <boost/asio/this_coro.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::as_client;
using testing::binary_message;
using testing::close_code;
using testing::EchoServer;
using testing::frame;
using testing::has;
using testing::kUpgrade;
using testing::RawClient;
using testing::RunningServer;
using testing::text_message;
using testing::to;
using Why = WebSocketEnd::Why;

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
  EXPECT_TRUE(server.eventually([&] { return server.seen.is(Why::closed_by_peer); }));
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
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

TEST(WebSocket, CloseFrameWithoutACode_IsAnswered) {
  EchoServer server;
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  client.send(frame(0x88, ""));
  EXPECT_EQ(close_code(client.read_to_end()), 1000);
  client.close();
  EXPECT_TRUE(server.eventually([&] { return server.seen.is(Why::closed_by_peer); }));
  EXPECT_EQ(server.seen.code, 1005);
}

// Beast asserts much about its input; nothing a client sends may reach an assertion, or keep a connection.
TEST(WebSocket, MutatedFrames_EndInMessagesOrInTheConnectionsEnd) {
  EchoServer server({.message_bytes_max = 2000, .close_timeout = 100ms});
  std::string upgrade(kUpgrade);
  upgrade.insert(upgrade.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n");
  const std::string packed("\xF2\x48\xCD\xC9\xC9\x07\x00", 7);  // "Hello", as RFC 7692 compresses it
  const std::vector<std::string> seeds = {
      frame(0xC1, packed) + frame(0xC1, packed), frame(0x41, packed.substr(0, 3)) + frame(0x80, packed.substr(3)),
      frame(0x01, "Hel") + frame(0x89, "ping") + frame(0x80, "lo") + frame(0x88, "\x03\xE8" "bye"),
      frame(0x82, std::string(300, 'x')) + frame(0x81, "\xC3\xBC") + frame(0x8A, "")};
  std::mt19937 random(7);
  auto draw = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  size_t echoed = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = seeds[draw(seeds.size())];
    for (size_t i = draw(4); i > 0; --i) {
      size_t at = draw(text.size());
      if (draw(3) == 0) text.erase(at, 1 + draw(3));
      else text[at] = static_cast<char>(draw(256));
    }
    RawClient client(server.port());
    client.send(upgrade);
    EXPECT_TRUE(has(client.read_until("\r\n\r\n"), "permessage-deflate"));
    client.send(text + frame(0x88, "\x03\xE8"));
    client.finish();
    echoed += client.read_to_end().size() > 4 ? 1 : 0;
  }
  EXPECT_GT(echoed, 50u);
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

TEST(WebSocket, PingsAreAnswered_AndFragmentsJoined) {
  EchoServer server;
  RawClient client(server.port());
  client.send(kUpgrade);
  client.read_until("\r\n\r\n");
  client.send(frame(0x01, "Hel") + frame(0x89, "are you there") + frame(0x00, "") + frame(0x80, "lo"));
  EXPECT_EQ(client.read_until("Hello"), "\x8A\x0D" "are you there\x81\x05" "Hello");
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

}  // namespace
}  // namespace weir::net
