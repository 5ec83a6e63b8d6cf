// What a server refuses: malformed requests, and whatever exceeds a bound in size, number or time.
#include "log_lines.hpp"
#include "request_parser.hpp"
#include "server_testing.hpp"
#include "stall.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::get;
using testing::has;
using testing::post;
using testing::RawClient;
using testing::RunningServer;
using testing::status_of;
using testing::Usual;

TEST(HttpServer, MalformedRequest_Answers400_AndCloses) {
  Usual server;
  for (std::string_view text : {
           "nonsense\r\n\r\n",
           "GET /ok HTTP/9.9\r\nHost: x\r\n\r\n",
           "GET /ok HTTP/1.1\r\n\r\n",
           "GET /ok HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
           "GET /ok HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n",
           "GET /ok HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n",
           "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
           "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
           "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n\r\n",
       }) {
    RawClient client(server.port());
    client.send(text);
    std::string answer = client.read_answer();
    EXPECT_EQ(status_of(answer), 400) << text;
    EXPECT_TRUE(has(answer, "{\"error\":{\"code\":\"bad_request\"")) << text;
    EXPECT_TRUE(has(answer, "connection: close")) << text;
    EXPECT_TRUE(has(answer, "x-request-id: ")) << text;
    EXPECT_TRUE(client.closed()) << text;
  }
}

TEST(HttpServer, BadTarget_Answers400_NamingTheField) {
  Usual server;
  RawClient client(server.port());
  for (std::string_view target : {"/v1/things/%", "/v1/things/%zz", "/v1/things/%00", "/v1/things/%0a",
                                  "/v1/things/%ff", "/v1/things/%7f", "/v1/things/\xC3\x28", "ok"}) {
    client.send(get(target));
    std::string answer = client.read_answer();
    EXPECT_EQ(status_of(answer), 400) << target;
    EXPECT_TRUE(has(answer, "\"field\":\"path\"")) << target << answer;
  }
  for (std::string_view target : {"/ok?a=%", "/ok?%ff=1", "/ok?a=%00", "/ok?a=%c3"}) {
    client.send(get(target));
    std::string answer = client.read_answer();
    EXPECT_EQ(status_of(answer), 400) << target;
    EXPECT_TRUE(has(answer, "\"field\":\"query\"")) << target;
  }
  client.send(get("/v1/things/%C3%A9?q=%E2%82%AC"));
  EXPECT_TRUE(client.read_answer().ends_with("é|€"));
  client.send(get("http://elsewhere/ok"));
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

TEST(HttpServer, BodyOverLimit_Answers413_AndCloses) {
  Usual server({.body_bytes_max = 1000});
  RawClient client(server.port());
  client.send(post(std::string(1000, 'a')));
  EXPECT_EQ(status_of(client.read_answer()), 200);
  client.send(post(std::string(200'000, 'a')));
  EXPECT_EQ(status_of(client.read_answer()), 413);
  EXPECT_TRUE(client.closed());
  RawClient chunked(server.port());
  chunked.send("POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200\r\n" +
               std::string(0x200, 'a') + "\r\n200\r\n");
  EXPECT_EQ(status_of(chunked.read_answer()), 413);
  EXPECT_TRUE(chunked.closed());
}

TEST(HttpServer, HeaderOverLimit_Answers431_AlsoWhenItTrickles) {
  Usual server({.header_bytes_max = 2000});
  RawClient client(server.port());
  client.send(get("/ok", "A: " + std::string(3000, 'a') + "\r\n"));
  EXPECT_EQ(status_of(client.read_answer()), 431);
  EXPECT_TRUE(client.closed());
  RawClient slow(server.port());
  slow.send("GET /ok HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < 200; ++i) slow.send(fmt::format("A{}: 0123456789\r\n", i));
  EXPECT_EQ(status_of(slow.read_answer()), 431);
  RawClient endless(server.port());
  endless.send("POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(50'000, 'a'));
  EXPECT_EQ(status_of(endless.read_answer()), 400);
}

TEST(HttpServer, LongTarget_Answers414) {
  Usual server;
  RawClient client(server.port());
  client.send(get("/" + std::string(9000, 'a')));
  EXPECT_EQ(status_of(client.read_answer()), 414);
}

TEST(HttpServer, RequestNotFinishedInTime_Answers408_AndCloses) {
  Usual server({.read_timeout = 100ms});
  RawClient client(server.port()), body(server.port());
  client.send("GET /ok HT");
  body.send("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 408);
  EXPECT_TRUE(has(answer, "connection: close"));
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(status_of(body.read_answer()), 408);
}

TEST(HttpServer, IdleConnection_IsClosedWithoutAWord) {
  Usual server({.idle_timeout = 100ms});
  RawClient fresh(server.port()), used(server.port());
  used.send(get("/ok"));
  EXPECT_EQ(status_of(used.read_answer()), 200);
  EXPECT_TRUE(used.closed());
  EXPECT_TRUE(fresh.closed());
}

TEST(HttpServer, ClientThatDoesNotReadItsAnswer_IsClosed) {
  RunningServer server({.write_timeout = 100ms});
  server.router.add(Method::get, "/big", [](Request&) -> asio::awaitable<Response> {
    co_return Response::text(std::string(32 << 20, 'a'));
  });
  RawClient client(server.start(), 4096);
  client.send(get("/big"));
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; }));
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

TEST(HttpServer, ConnectionsOverLimit_Answer503_AndClose) {
  Usual server({.connections_max = 2});
  test::LogLines log;
  RawClient first(server.port()), second(server.port());
  first.send(get("/ok"));
  second.send(get("/ok"));
  EXPECT_EQ(status_of(first.read_answer()), 200);
  EXPECT_EQ(status_of(second.read_answer()), 200);
  RawClient third(server.port());
  third.send(get("/ok"));
  std::string answer = third.read_answer();
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_TRUE(has(answer, "Retry-After: 1\r\n")) << answer;
  EXPECT_TRUE(has(answer, "x-request-id: "));
  EXPECT_TRUE(third.closed());
  third.close();
  RawClient another(server.port());
  another.send(get("/ok"));
  EXPECT_EQ(status_of(another.read_answer()), 503);
  EXPECT_EQ(log.count("\"event\":\"http.full\""), 1u) << log.all();
  another.close();
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; }));
  RawClient fourth(server.port());
  fourth.send(get("/ok"));
  EXPECT_EQ(status_of(fourth.read_answer()), 200);
}

TEST(HttpServer, WhoIsRefused_GetsThePlaceOfWhoAsksNothing) {
  Usual server({.connections_max = 1, .idle_when_full = 100ms});
  RawClient idle(server.port());
  idle.send(get("/ok"));
  EXPECT_EQ(status_of(idle.read_answer()), 200);
  EXPECT_TRUE(test::eventually(10s, [&] {
    RawClient another(server.port());
    another.send(get("/ok"));
    return status_of(another.read_answer()) == 200;
  }));
  EXPECT_TRUE(idle.closed());
}

TEST(HttpServer, BodyOfAnotherType_Answers415) {
  Usual server;
  RawClient client(server.port());
  auto status = [&](std::string_view header) {
    client.send(post("{}", header));
    return status_of(client.read_answer());
  };
  EXPECT_EQ(status(""), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\n"), 200);
  EXPECT_EQ(status("Content-Type: Application/JSON ; charset=utf-8\r\n"), 200);
  EXPECT_EQ(status("Content-Encoding: identity\r\n"), 200);
  EXPECT_EQ(status("Content-Type: text/plain\r\n"), 415);
  EXPECT_EQ(status("Content-Type: \r\n"), 415);
  EXPECT_EQ(status("Content-Type: application/jsonx\r\n"), 415);
  EXPECT_EQ(status("Content-Encoding: gzip\r\n"), 415);
  client.send(post("", "Content-Type: text/plain\r\n"));
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

// The parser asserts much about its input; nothing a client sends may reach an assertion.
TEST(RequestParser, MutatedRequests_HoweverTheyAreCut_EndInARequestOrARefusal) {
  const std::vector<std::string> seeds = {
      get("/v1/things/a?q=1", "X-Long: a\r\n b\r\nConnection: close\r\n"), post("hello"),
      "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: v\r\n\r\n"};
  constexpr std::string_view kLikely = "\r\n :;,/0159afF%\t\"\0\x80";
  std::mt19937 random(7);
  auto draw = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  size_t complete = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seeds[draw(seeds.size())];
    for (size_t i = draw(4); i > 0; --i) {
      size_t at = draw(text.size());
      if (draw(3) == 0) text.erase(at, 1 + draw(3));
      else text.insert(at, 1, kLikely[draw(kLikely.size())]);
    }
    Request request;
    RequestParser parser({.body_bytes_max = 100, .header_bytes_max = 200});
    parser.reset(request);
    std::string held;
    for (size_t at = 0; at < text.size() && !parser.done() && !parser.refusal();) {
      size_t step = 1 + draw(draw(2) == 0 ? 3 : 200);
      held += text.substr(at, step);
      at += step;
      held.erase(0, parser.feed(held));
    }
    complete += parser.done() && !parser.refusal() ? 1 : 0;
    refused += parser.refusal() ? 1 : 0;
    EXPECT_LE(request.body.size(), 100u);
  }
  EXPECT_GT(complete, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace weir::net
