#include "weir/net/server.hpp"

#include "request_parser.hpp"
#include "testing.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::has;
using testing::RawClient;
using testing::RunningServer;
using testing::status_of;

asio::awaitable<Response> say_ok(Request&) { co_return Response::text("ok"); }
asio::awaitable<Response> echo(Request& request) { co_return Response::text(request.body); }

void add_usual_routes(Router& router) {
  router.add(Method::get, "/ok", say_ok);
  router.add(Method::post, "/v1/echo", echo);
  router.add(Method::get, "/v1/things/{id}", [](Request& request) -> asio::awaitable<Response> {
    co_return Response::text(request.param("id") + "|" + request.query_value("q").value_or("-"));
  });
}

struct Usual : RunningServer {
  explicit Usual(ServerLimits limits = {}, std::function<void(const Finished&)> observer = {})
      : RunningServer(limits, std::move(observer)) {
    add_usual_routes(router);
    start();
  }
};

std::string get(std::string_view target, std::string_view more = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", target, more);
}
std::string post(std::string_view body, std::string_view more = "") {
  return fmt::format("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}", body.size(), more, body);
}

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
                                  "/v1/things/%ff",
                                  "/v1/things/%7f", "/v1/things/\xC3\x28", "ok"}) {
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

TEST(HttpServer, LargeAnswer_ArrivesWhole) {
  RunningServer server;
  server.router.add(Method::get, "/big", [](Request&) -> asio::awaitable<Response> {
    co_return Response::text(std::string(8 << 20, 'a'));
  });
  RawClient client(server.start());
  client.send(get("/big"));
  EXPECT_GT(client.read_answer().size(), size_t{8 << 20});
}

TEST(HttpServer, ConnectionsOverLimit_Answer503_AndClose) {
  Usual server({.connections_max = 2});
  RawClient first(server.port()), second(server.port());
  first.send(get("/ok"));
  second.send(get("/ok"));
  EXPECT_EQ(status_of(first.read_answer()), 200);
  EXPECT_EQ(status_of(second.read_answer()), 200);
  RawClient third(server.port());
  third.send(get("/ok"));
  std::string answer = third.read_answer();
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_TRUE(has(answer, "x-request-id: "));
  EXPECT_TRUE(third.closed());
  third.close();
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; }));
  RawClient fourth(server.port());
  fourth.send(get("/ok"));
  EXPECT_EQ(status_of(fourth.read_answer()), 200);
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

// ---- event streams ----
TEST(EventStream, Events_ArriveAsChunks_AndTheStreamEnds) {
  RunningServer server;
  server.router.add(Method::get, "/events", [](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [](EventStream& out) -> asio::awaitable<void> {
      (void)co_await out.send("1", "greeting", "two\nlines");
      (void)co_await out.send("", "", "");
      (void)co_await out.send("x\ny", "", "a\r\nb\n");
    };
    co_return response;
  });
  RawClient client(server.start());
  client.send(get("/events"));
  std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(has(head, "content-type: text/event-stream\r\n"));
  EXPECT_TRUE(has(head, "cache-control: no-store\r\n"));
  EXPECT_TRUE(has(head, "transfer-encoding: chunked\r\n"));
  EXPECT_FALSE(has(head, "content-length"));
  std::string body = client.read_to_end();
  EXPECT_TRUE(has(body, "id: 1\nevent: greeting\ndata: two\ndata: lines\n\n\r\n"));
  EXPECT_TRUE(has(body, "\r\ndata: \n\n\r\n"));
  EXPECT_TRUE(has(body, "id: xy\ndata: a\ndata: b\ndata: \n\n"));
  EXPECT_TRUE(body.ends_with("\r\n0\r\n\r\n"));
}

struct Waiting {
  std::atomic<int> started = 0, ended = 0;
  std::atomic<bool> send_failed = false;
};

// Waits for something that never comes, as a handler does that follows a quiet source.
void add_waiting_stream(RunningServer& server, Waiting& seen) {
  server.router.add(Method::get, "/wait", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [&](EventStream& out) -> asio::awaitable<void> {
      co_await asio::this_coro::throw_if_cancelled(false);
      (void)co_await out.send("", "", "hello");
      ++seen.started;
      co_await server.clock.wait(1h);
      auto late = co_await out.send("", "", "late");
      seen.send_failed = !late;
      ++seen.ended;
    };
    co_return response;
  });
}

TEST(EventStream, ClientLeaves_CancelsTheHandler_AndSendFails) {
  Waiting seen;
  RunningServer server;
  add_waiting_stream(server, seen);
  RawClient client(server.start());
  client.send(get("/wait"));
  client.read_until("hello");
  client.close();
  EXPECT_TRUE(server.eventually([&] { return seen.ended == 1 && server.server->connections() == 0; }));
  EXPECT_TRUE(seen.send_failed);
}

TEST(EventStream, Stop_EndsStreams) {
  Waiting seen;
  RunningServer server;
  add_waiting_stream(server, seen);
  RawClient client(server.start());
  client.send(get("/wait"));
  client.read_until("hello");
  server.stop(10s);
  EXPECT_EQ(seen.ended, 1);
  EXPECT_TRUE(client.read_to_end().ends_with("0\r\n\r\n"));
}

TEST(EventStream, ClientThatDoesNotRead_IsCutOff) {
  std::atomic<bool> failed = false;
  RunningServer server({.write_timeout = 100ms});
  server.router.add(Method::get, "/flood", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [&](EventStream& out) -> asio::awaitable<void> {
      std::string data(1 << 20, 'x');
      for (int i = 0; i < 1000 && !failed; ++i) {
        auto sent = co_await out.send("", "", data);
        failed = !sent;
      }
    };
    co_return response;
  });
  RawClient client(server.start(), 4096);
  client.send(get("/flood"));
  EXPECT_TRUE(server.eventually([&] { return failed && server.server->connections() == 0; }));
}

TEST(EventStream, ThrowingHandler_CutsTheStreamWithoutAnEnd) {
  RunningServer server;
  server.router.add(Method::get, "/events", [](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [](EventStream& out) -> asio::awaitable<void> {
      (void)co_await out.send("", "", "one");
      throw std::runtime_error("secret");
    };
    co_return response;
  });
  RawClient client(server.start());
  client.send(get("/events"));
  std::string all = client.read_to_end();
  EXPECT_TRUE(has(all, "data: one"));
  EXPECT_FALSE(all.ends_with("0\r\n\r\n"));
  EXPECT_FALSE(has(all, "secret"));
}

TEST(EventStream, QuietStream_GetsACommentEvery15Seconds) {
  // Virtual time and real sockets: the loop runs here, so that nothing moves the clock but this test.
  asio::io_context io(1);
  VirtualClock clock(io);
  Router router;
  router.add(Method::get, "/quiet", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [&](EventStream&) -> asio::awaitable<void> { co_await clock.wait(1h); };
    co_return response;
  });
  {
    HttpServer server(io, clock, router, {});
    ASSERT_TRUE(server.listen("127.0.0.1:0"));
    std::string address = server.address();
    RawClient client(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    client.send(get("/quiet"));
    for (int i = 0; i < 1000 && server.connections() == 0; ++i) clock.run(clock.now());
    for (int i = 0; i < 100; ++i) clock.run(clock.now());
    client.read_until("\r\n\r\n");
    clock.run(clock.now() + 14s);
    clock.run(clock.now() + 3s);
    EXPECT_EQ(client.read_until("\n\n"), "8\r\n: keep\n\n");
  }
  clock.run(clock.now());
}

// ---- stopping ----
TEST(HttpServerStop, ClosesIdleConnectionsAtOnce) {
  Usual server;
  RawClient fresh(server.port()), used(server.port());
  used.send(get("/ok"));
  used.read_answer();
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 2; }));
  auto before = boot_now();
  server.stop(10s);
  EXPECT_LT(boot_now() - before, 1s);
  EXPECT_TRUE(fresh.closed());
  EXPECT_TRUE(used.closed());
  EXPECT_FALSE(RawClient(server.port()).connected());
}

TEST(HttpServerStop, RunningRequestFinishes_AndItsAnswerSaysClose) {
  RunningServer server;
  asio::steady_timer gate(server.io, asio::steady_timer::time_point::max());
  std::atomic<bool> waiting = false;
  server.router.add(Method::get, "/slow", [&](Request&) -> asio::awaitable<Response> {
    waiting = true;
    boost::system::error_code opened;
    co_await gate.async_wait(asio::redirect_error(asio::use_awaitable, opened));
    co_return Response::text("done");
  });
  RawClient client(server.start());
  client.send(get("/slow"));
  EXPECT_TRUE(server.eventually([&] { return waiting.load(); }));
  auto stopped = server.begin_stop(10s);
  server.ask([&] { return gate.cancel(); });
  std::string answer = client.read_answer();
  EXPECT_TRUE(answer.ends_with("done"));
  EXPECT_TRUE(has(answer, "connection: close"));
  stopped.get();
  EXPECT_TRUE(client.closed());
  server.stop(0s);
}

TEST(HttpServerStop, AfterTheGrace_HandlersAreCancelled) {
  std::atomic<int> statuses = 0;
  RunningServer server({}, [&](const Finished& f) { statuses = f.status; });
  std::atomic<bool> waiting = false;
  server.router.add(Method::get, "/slow", [&](Request&) -> asio::awaitable<Response> {
    waiting = true;
    co_await server.clock.wait(1h);
    co_await server.clock.wait(1h);
    co_return Response::text("never");
  });
  RawClient client(server.start());
  client.send(get("/slow"));
  EXPECT_TRUE(server.eventually([&] { return waiting.load(); }));
  server.stop(50ms);
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(statuses, 503);
}

TEST(HttpServerStop, Twice_OrBeforeListening_Returns) {
  Usual server;
  auto first = server.begin_stop(1s), second = server.begin_stop(1s);
  first.get();
  second.get();
  asio::io_context io;
  HttpServer idle(io, server.clock, server.router, {});
  auto done = asio::co_spawn(io, idle.stop(1s), asio::use_future);
  io.run_for(1s);
  EXPECT_EQ(done.wait_for(0s), std::future_status::ready);
  server.stop(0s);
}

// The loop ends while a request, a stream and an idle connection are open; nothing may leak or be used too late.
void leave_open(bool drain_after_server) {
  Waiting seen;
  auto io = std::make_unique<asio::io_context>(1);
  RealClock clock;
  Router router;
  router.add(Method::get, "/slow", [&](Request&) -> asio::awaitable<Response> {
    ++seen.started;
    co_await clock.wait(1h);
    co_return Response{};
  });
  router.add(Method::get, "/wait", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [&](EventStream& out) -> asio::awaitable<void> {
      (void)co_await out.send("", "", "hello");
      ++seen.started;
      co_await clock.wait(1h);
    };
    co_return response;
  });
  auto server = std::make_unique<HttpServer>(*io, clock, router, ServerLimits{});
  ASSERT_TRUE(server->listen("127.0.0.1:0"));
  std::string address = server->address();
  auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  RawClient idle(port), slow(port), stream(port);
  slow.send(get("/slow"));
  stream.send(get("/wait"));
  for (int i = 0; i < 200 && (seen.started < 2 || server->connections() < 3); ++i) io->run_one_for(10ms);
  EXPECT_EQ(server->connections(), 3u);
  server.reset();
  if (drain_after_server) io->run_for(1s);
  io.reset();
}
TEST(HttpServer, DestroyedWithOpenConnections_LeaksNothing) { leave_open(false); }
TEST(HttpServer, DestroyedBeforeItsLoop_EndsItsCoroutines) { leave_open(true); }

// ---- listening ----
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
