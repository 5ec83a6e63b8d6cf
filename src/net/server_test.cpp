// What a server answers: requests in all their forms, and where it listens.
#include "weir/net/server.hpp"

#include "server_testing.hpp"
#include "weir/net/addressee.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::add_usual_routes;
using testing::get;
using testing::has;
using testing::post;
using testing::RawClient;
using testing::RunningServer;
using testing::status_of;
using testing::Usual;

TEST(HttpServer, Get_AnswersBody_WithLengthTypeAndRequestId) {
  Usual server;
  RawClient client(server.port());
  client.send(get("/ok"));
  std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_TRUE(has(answer, "content-length: 2\r\n"));
  EXPECT_TRUE(has(answer, "content-type: text/plain; charset=utf-8\r\n"));
  EXPECT_TRUE(has(answer, "x-request-id: "));
  EXPECT_TRUE(has(answer, "date: "));
  EXPECT_TRUE(answer.ends_with("\r\n\r\nok"));
}

TEST(HttpServer, KeepAlive_ServesManyRequests_OnOneConnection) {
  Usual server;
  RawClient client(server.port());
  for (int i = 0; i < 20; ++i) {
    std::string body(static_cast<size_t>(i) * 1000, 'a');
    client.send(post(body));
    EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\n" + body));
  }
  EXPECT_EQ(server.ask([&] { return server.server->connections(); }), 1u);
}

TEST(HttpServer, Pipelined_AnswersInOrder) {
  Usual server;
  RawClient client(server.port());
  client.send(get("/v1/things/a") + post("b") + "\r\n" + get("/v1/things/c"));
  EXPECT_TRUE(client.read_answer().ends_with("a|-"));
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nb"));
  EXPECT_TRUE(client.read_answer().ends_with("c|-"));
}

TEST(HttpServer, Pipelined_OthersGetTheirTurnInBetween) {
  std::vector<std::string> order;  // the server's thread only
  RunningServer server;
  server.router.add(Method::get, "/note", [&](Request&) -> asio::awaitable<Response> {
    order.push_back("answer");
    asio::post(server.io, [&] { order.push_back("other"); });
    co_return Response::text("ok");
  });
  server.start();
  RawClient client(server.port());
  client.send(get("/note") + get("/note") + get("/note"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(client.read_answer()), 200);
  EXPECT_TRUE(server.eventually([&] { return order.size() == 6; }));
  EXPECT_EQ(server.ask([&] { return order; }),
            (std::vector<std::string>{"answer", "other", "answer", "other", "answer", "other"}));
}

TEST(HttpServer, RequestSentByteByByte_IsUnderstood) {
  Usual server;
  RawClient client(server.port());
  client.send_slowly(get("/v1/things/a%2Fb?q=1+%2B2&z") + post("hello"));
  EXPECT_TRUE(client.read_answer().ends_with("a/b|1 +2"));
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nhello"));
}

TEST(HttpServer, ChunkedBody_IsJoined_TrailersIgnored) {
  Usual server;
  std::string_view head = "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  RawClient client(server.port());
  client.send(head);
  client.send("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Request-Id: late\r\n\r\n");
  std::string answer = client.read_answer();
  EXPECT_TRUE(answer.ends_with("\r\n\r\nabcdefg"));
  EXPECT_FALSE(has(answer, "late"));
  for (std::string_view body : {"0\r\n\r\n", "1\r\nz\r\n0\r\n\r\n", "0\r\nA: b\r\n\r\n"}) {
    client.send(head);
    client.send_slowly(body);
    EXPECT_EQ(status_of(client.read_answer()), 200) << body;
  }
}

TEST(HttpServer, ExpectContinue_IsToldToGoOn_UnlessTooLarge) {
  Usual server;
  RawClient client(server.port());
  client.send("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hi");
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nhi"));
  client.send("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 413);
  RawClient other(server.port());
  other.send(get("/ok", "Expect: miracles\r\n"));
  EXPECT_EQ(status_of(other.read_answer()), 417);
}

TEST(HttpServer, Head_HasLengthButNoBody) {
  Usual server;
  RawClient client(server.port());
  client.send("HEAD /ok HTTP/1.1\r\nHost: x\r\n\r\n" + get("/ok"));
  std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(has(head, "content-length: 2"));
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

TEST(HttpServer, OtherMethod_Answers405WithAllow_AndOptions204) {
  Usual server;
  RawClient client(server.port());
  client.send("DELETE /api/v1/echo/ HTTP/1.1\r\nHost: x\r\n\r\n");
  std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 405);
  EXPECT_TRUE(has(answer, "allow: POST, OPTIONS\r\n"));
  EXPECT_TRUE(has(answer, "\"method_not_allowed\""));
  client.send("OPTIONS /ok HTTP/1.1\r\nHost: x\r\n\r\n");
  answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 204);
  EXPECT_TRUE(has(answer, "allow: GET, HEAD, OPTIONS\r\n"));
  EXPECT_FALSE(has(answer, "content-length"));
  client.send("BREW /ok HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 405);
  client.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 204);
  client.send("OPTIONS /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 404);
}

TEST(HttpServer, UnknownPath_Answers404_AndGoesOn) {
  Usual server;
  RawClient client(server.port());
  client.send(get("/nowhere") + get("/ok"));
  std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 404);
  EXPECT_TRUE(has(answer, "{\"error\":{\"code\":\"not_found\""));
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

TEST(HttpServer, LargeAnswer_ArrivesWhole) {
  RunningServer server;
  server.router.add(Method::get, "/big",
                    [](Request&) -> asio::awaitable<Response> { co_return Response::text(std::string(8 << 20, 'a')); });
  RawClient client(server.start());
  client.send(get("/big"));
  EXPECT_GT(client.read_answer().size(), size_t{8 << 20});
}

TEST(HttpServer, RequestId_IsTakenOverWhenSane_ElseMade) {
  Usual server;
  RawClient client(server.port());
  client.send(get("/ok", "X-Request-Id: abc-1._Z\r\n"));
  EXPECT_TRUE(has(client.read_answer(), "x-request-id: abc-1._Z\r\n"));
  for (std::string_view bad : {"a b", "a\"b", "<x>"}) {
    client.send(get("/ok", fmt::format("X-Request-Id: {}\r\n", bad)));
    std::string answer = client.read_answer();
    EXPECT_FALSE(has(answer, bad));
    size_t at = answer.find("x-request-id: ") + 14;
    EXPECT_EQ(answer.find("\r\n", at) - at, 16u);
  }
  client.send(get("/ok", "X-Request-Id: " + std::string(65, 'a') + "\r\n"));
  EXPECT_FALSE(has(client.read_answer(), std::string(65, 'a')));
}

TEST(HttpServer, ThrowingHandler_Answers500WithoutItsText_AndGoesOn) {
  RunningServer server;
  add_usual_routes(server.router);
  server.router.add(Method::get, "/throw", [](Request&) -> asio::awaitable<Response> {
    throw std::runtime_error("password=hunter2");
    co_return Response{};
  });
  server.router.add(Method::get, "/throw-odd", [](Request&) -> asio::awaitable<Response> {
    throw 7;
    co_return Response{};
  });
  RawClient client(server.start());
  client.send(get("/throw") + get("/throw-odd") + get("/ok"));
  std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 500);
  EXPECT_TRUE(has(answer, "{\"error\":{\"code\":\"internal\""));
  EXPECT_FALSE(has(answer, "hunter2"));
  EXPECT_EQ(status_of(client.read_answer()), 500);
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

TEST(HttpServer, HeaderValueWithLineBreak_StaysOneHeader) {
  RunningServer server;
  server.router.add(Method::get, "/", [](Request&) -> asio::awaitable<Response> {
    Response response = Response::text("x", 200, "text/plain\r\nA: b");
    response.headers = {{"Location", "/x\r\nSet-Cookie: evil=1"}, {"Bad Name\r\nC", "d"}, {"Content-Length", "99"}};
    co_return response;
  });
  RawClient client(server.start());
  client.send(get("/"));
  std::string answer = client.read_answer();
  EXPECT_TRUE(has(answer, "Location: /xSet-Cookie: evil=1\r\n"));
  EXPECT_TRUE(has(answer, "content-type: text/plainA: b\r\n"));
  EXPECT_FALSE(has(answer, "\nA: b"));
  EXPECT_FALSE(has(answer, "\nSet-Cookie"));
  EXPECT_FALSE(has(answer, ": 99\r\n"));
}

TEST(HttpServer, Http10_IsClosedUnlessItAsksToStay) {
  Usual server;
  RawClient client(server.port());
  client.send("GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(has(client.read_answer(), "connection: keep-alive"));
  client.send("GET /ok HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(has(client.read_answer(), "connection: close"));
  EXPECT_TRUE(client.closed());
}

TEST(HttpServer, Observer_IsToldOnceForEachRequest) {
  struct Seen {
    Method method;
    std::string pattern;
    int status;
  };
  std::vector<Seen> seen;  // server's thread only
  Usual server({}, [&](const Finished& f) {
    EXPECT_GE(f.took, Duration::zero());
    seen.push_back({f.method, std::string(f.pattern), f.status});
  });
  RawClient client(server.port());
  client.send(get("/v1/things/7") + get("/nowhere") + post("x", "Content-Type: a/b\r\n") + "bad\r\n\r\n");
  client.read_to_end();
  auto all = server.ask([&] { return seen; });
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].pattern, "/v1/things/{id}");
  EXPECT_EQ(all[0].status, 200);
  EXPECT_EQ(all[1].pattern, "");
  EXPECT_EQ(all[1].status, 404);
  EXPECT_EQ(all[2].method, Method::post);
  EXPECT_EQ(all[2].status, 415);
  EXPECT_EQ(all[3].status, 400);
}

TEST(HttpServerListen, ProblemsAreSentences) {
  Usual running;
  asio::io_context io;
  RealClock clock;
  Router router;
  HttpServer server(io, clock, router, {});
  auto taken = server.listen(fmt::format("127.0.0.1:{}", running.port()));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().reason, "address_in_use");
  EXPECT_TRUE(has(taken.error().message, "address in use"));
  for (std::string_view bad : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:80",
                               "[127.0.0.1]:80", "nowhere.example:80", "127.0.0.1:-1", "[::1]"}) {
    auto refused = server.listen(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().reason, "bad_address") << bad;
  }
  EXPECT_EQ(server.address(), "");
}

// Runners look downwards and workers upwards, so that none takes a port at which the other was known.
TEST(HttpServerListen, Downwards_TakesAtMostSevenPorts_AndNoneAbove) {
  Usual running;
  asio::io_context io;
  RealClock clock;
  Router router;
  std::vector<std::unique_ptr<HttpServer>> servers;
  Status listening = ok();
  for (int last = running.port(); listening; ) {
    servers.push_back(std::make_unique<HttpServer>(io, clock, router, ServerLimits{}));
    listening = servers.back()->listen_down_from("127.0.0.1", running.port());
    if (!listening) break;
    int port = std::stoi(servers.back()->address().substr(std::string_view("127.0.0.1:").size()));
    EXPECT_LT(port, last);
    EXPECT_GT(port, running.port() - 7);
    last = port;
  }
  EXPECT_EQ(listening.error().reason, "address_in_use");
  EXPECT_TRUE(has(listening.error().message, fmt::format("from {} down to {}", running.port(), running.port() - 6)))
      << listening.error().message;
  HttpServer any(io, clock, router, {});
  EXPECT_TRUE(any.listen_down_from("127.0.0.1", 0));
}

TEST(Addressee, WhoIsNamed_IsAnsweredByThatOneAlone) {
  Request request;
  EXPECT_TRUE(meant_for(request, "edge-1")) << "nobody was named";
  request.query["runner_id"] = "edge-1";
  EXPECT_TRUE(meant_for(request, "edge-1"));
  auto refused = meant_for(request, "edge-2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(http_status(refused.error().code), 404);
  EXPECT_EQ(refused.error().message, "this is runner edge-2, not edge-1");
}

TEST(HttpServerListen, Ipv6_AndIpv4_OnOneServer) {
  asio::io_context io;
  RealClock clock;
  Router router;
  HttpServer server(io, clock, router, {});
  auto six = server.listen("[::1]:0");
  if (!six) GTEST_SKIP() << "no IPv6 here: " << six.error().message;
  EXPECT_TRUE(server.address().starts_with("[::1]:"));
  EXPECT_TRUE(server.listen("127.0.0.1:0"));
}

}  // namespace
}  // namespace weir::net
