// Bodies that pass through piece by piece, between Weir's client and Weir's server, and with raw bytes at either end.
#include "server_testing.hpp"
#include "web_socket_testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::as_client;
using testing::has;
using testing::RawClient;
using testing::RunningServer;
using testing::status_of;

// Yields `pieces` blocks of `bytes` each, then the end.
BodySource blocks(int pieces, size_t bytes, std::optional<std::uint64_t> declared) {
  auto left = std::make_shared<int>(pieces);
  BodySource source;
  source.bytes = declared;
  source.next = [left, bytes]() -> asio::awaitable<Result<std::string>> {
    if ((*left)-- <= 0) co_return std::string();
    co_return std::string(bytes, static_cast<char>('a' + *left % 26));
  };
  return source;
}

// PUT /store adds up what comes; GET /load/{pieces} answers with blocks of 1000 bytes.
struct Depot : RunningServer {
  explicit Depot(ServerLimits limits = {.body_bytes_max = 100}, std::uint64_t bytes_max = 1 << 20)
      : RunningServer(limits) {
    auto store = [this](Request& request) -> asio::awaitable<Response> {
      EXPECT_TRUE(request.body.empty());
      std::uint64_t bytes = 0;
      for (;;) {
        auto piece = co_await request.streamed->read_some();
        if (!piece) {
          problem = piece.error().reason;
          co_return Response::failure(piece.error());
        }
        if (piece->empty()) co_return Response::text(std::to_string(bytes));
        bytes += piece->size();
        received += static_cast<int>(piece->size());
      }
    };
    router.add(Method::put, "/store", store, StreamedBody{bytes_max, {"application/octet-stream", "model/onnx"}});
    router.add(Method::put, "/refuse", [](Request&) -> asio::awaitable<Response> {
      co_return Response::failure({Errc::forbidden, "wrong_role", "not you"});
    }, StreamedBody{1 << 30});
    router.add(Method::get, "/load/{pieces}", [](Request& request) -> asio::awaitable<Response> {
      int pieces = std::stoi(request.param("pieces"));
      Response response;
      response.content_type = "application/octet-stream";
      std::optional<std::uint64_t> declared;
      if (auto bytes = request.query_value("declared")) declared = std::stoull(*bytes);
      response.source = blocks(pieces, 1000, declared);
      co_return response;
    });
    router.add(Method::get, "/broken", [](Request& request) -> asio::awaitable<Response> {
      Response response;
      bool throws = request.query_value("throws").has_value();
      auto calls = std::make_shared<int>(0);
      response.source.next = [calls, throws]() -> asio::awaitable<Result<std::string>> {
        if (++*calls == 1) co_return std::string("first");
        if (throws) throw std::runtime_error("secret");
        co_return Error{Errc::internal, "disk", "the disk failed"};
      };
      co_return response;
    });
    testing::add_usual_routes(router);
    start();
  }
  std::atomic<int> received = 0;
  std::string problem;
};

ClientRequest request_of(Method method, std::string target) {
  ClientRequest request;
  request.method = method;
  request.target = std::move(target);
  request.content_type = "application/octet-stream";
  return request;
}

TEST(StreamedBody, Upload_OfKnownAndOfUnknownLength_ArrivesWhole) {
  Depot server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    for (bool known : {true, false, true}) {
      ClientRequest request = request_of(Method::put, "/store");
      request.upload = blocks(50, 10'007, known ? std::optional<std::uint64_t>(500'350) : std::nullopt);
      auto answer = co_await client.send(std::move(request));
      EXPECT_TRUE(answer && answer->status == 200 && answer->body == "500350");
    }
    ClientRequest empty = request_of(Method::put, "/store");
    auto answer = co_await client.send(std::move(empty));
    EXPECT_TRUE(answer && answer->body == "0");
  }, "http");
}

TEST(StreamedBody, Download_ReachesTheSinkPieceByPiece) {
  Depot server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    for (const char* target : {"/load/700", "/load/700?declared=700000", "/load/0", "/load/0?declared=0"}) {
      size_t bytes = 0, largest = 0;
      ClientRequest request = request_of(Method::get, target);
      request.sink = [&](std::string piece) -> asio::awaitable<Status> {
        bytes += piece.size();
        largest = std::max(largest, piece.size());
        co_return ok();
      };
      auto answer = co_await client.send(std::move(request));
      EXPECT_TRUE(answer && answer->status == 200 && answer->body.empty());
      EXPECT_EQ(bytes, std::string_view(target).starts_with("/load/700") ? 700'000u : 0u) << target;
      EXPECT_LE(largest, 64u << 10);
    }
    auto held = co_await client.send(request_of(Method::get, "/load/3"));
    EXPECT_TRUE(held && held->body.size() == 3000);
  }, "http");
}

TEST(StreamedBody, Connection_ServesTheNextRequest) {
  Depot server;
  RawClient client(server.port());
  client.send("PUT /store HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + testing::get("/load/1") +
              testing::get("/ok"));
  EXPECT_TRUE(client.read_answer().ends_with("5"));
  std::string chunked = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(has(chunked, "transfer-encoding: chunked\r\n") && has(chunked, "\r\n\r\n3e8\r\n"));
  EXPECT_TRUE(client.read_answer().ends_with("ok"));
}

TEST(StreamedBody, OldClient_GetsTheBodyUpToTheEndOfTheConnection) {
  Depot server;
  RawClient client(server.port());
  client.send("GET /load/2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  std::string answer = client.read_to_end();
  EXPECT_TRUE(has(answer, "connection: close\r\n") && !has(answer, "chunked"));
  EXPECT_TRUE(answer.ends_with(std::string(1000, 'a')));
  RawClient head(server.port());
  head.send("HEAD /load/2?declared=2000 HTTP/1.1\r\nHost: x\r\n\r\n" + testing::get("/ok"));
  EXPECT_TRUE(has(head.read_until("\r\n\r\n"), "content-length: 2000\r\n"));
  EXPECT_TRUE(head.read_answer().ends_with("ok"));
}

TEST(StreamedBody, LimitAndTypesOfTheRoute_AreKept) {
  Depot server({.body_bytes_max = 100}, 1000);
  auto status = [&](std::string_view header, std::string_view body) {
    RawClient client(server.port());
    client.send(fmt::format("PUT /store HTTP/1.1\r\nHost: x\r\n{}\r\n{}", header, body));
    return status_of(client.read_answer());
  };
  std::string thousand(1000, 'x');
  EXPECT_EQ(status("Content-Length: 1000\r\n", thousand), 200);
  EXPECT_EQ(status("Content-Length: 1001\r\n", ""), 413);
  EXPECT_EQ(status("Content-Length: 1001\r\nExpect: 100-continue\r\n", ""), 413);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "3e8\r\n" + thousand + "\r\n0\r\n\r\n"), 200);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "3e8\r\n" + thousand + "\r\n1\r\nx\r\n0\r\n\r\n"), 413);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "ffffffff\r\n"), 413);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "nonsense\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 2\r\nContent-Type: model/onnx; v=1\r\n", "ab"), 200);
  EXPECT_EQ(status("Content-Length: 2\r\nContent-Type: application/json\r\n", "{}"), 415);
  EXPECT_EQ(status("Content-Length: 2\r\nContent-Encoding: gzip\r\n", "ab"), 415);
  RawClient ordinary(server.port());
  ordinary.send(testing::post(std::string(101, 'x')));
  EXPECT_EQ(status_of(ordinary.read_answer()), 413) << "routes that declare nothing keep the server's limit";
}

TEST(StreamedBody, RefusedClient_IsNotAskedForItsBody) {
  Depot server;
  RawClient client(server.port());
  client.send("PUT /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n");
  std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), 403);
  EXPECT_TRUE(has(answer, "connection: close\r\n"));
  RawClient welcome(server.port());
  welcome.send("PUT /store HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(welcome.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  welcome.send("hello");
  EXPECT_TRUE(welcome.read_answer().ends_with("5"));
}

TEST(StreamedBody, StalledClient_Gets408_ASlowOneDoesNot) {
  Depot server({.read_timeout = 150ms});
  RawClient slow(server.port()), stalled(server.port());
  stalled.send("PUT /store HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab");
  slow.send("PUT /store HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n");
  for (int i = 1; i <= 8; ++i) {  // each piece long before its own limit, all of them long after it
    auto due = boot_now() + 60ms;
    EXPECT_TRUE(server.eventually([&] { return boot_now() >= due; }));
    slow.send("x");
  }
  EXPECT_EQ(status_of(slow.read_answer()), 200);
  EXPECT_EQ(status_of(stalled.read_answer()), 408);
}

TEST(StreamedBody, ClientThatLeaves_IsToldToTheHandler) {
  Depot server;
  RawClient client(server.port());
  client.send("PUT /store HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab");
  EXPECT_TRUE(server.eventually([&] { return server.received == 2; }));
  client.close();
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
  EXPECT_EQ(server.problem, "client_gone");
}

TEST(StreamedBody, SlowReader_HoldsTheSourceUp) {
  std::atomic<int> made = 0;
  RunningServer server;
  server.router.add(Method::get, "/endless", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.source.next = [&]() -> asio::awaitable<Result<std::string>> {
      ++made;
      co_return std::string(64 << 10, 'x');
    };
    co_return response;
  });
  server.start();
  RawClient client(server.port(), 4096);
  client.send(testing::get("/endless"));
  client.read_until("\r\n\r\n");
  // Each question gives the server a turn: one that is not held up would make a piece at each.
  for (int i = 0; i < 2000; ++i) server.ask([&] { return made.load(); });
  EXPECT_GT(made, 0);
  EXPECT_LT(made, 200);
}

TEST(StreamedBody, ReaderThatStops_IsCutOff) {
  RunningServer server({.write_timeout = 80ms});
  server.router.add(Method::get, "/endless", [](Request&) -> asio::awaitable<Response> {
    Response response;
    response.source = blocks(1'000'000, 64 << 10, std::nullopt);
    co_return response;
  });
  server.start();
  RawClient client(server.port(), 4096);
  client.send(testing::get("/endless"));
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; }));
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

TEST(StreamedBody, SourceThatFails_CutsTheAnswer_AndTheClientSeesIt) {
  Depot server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    for (const char* target : {"/broken", "/broken?throws=1", "/load/2?declared=1999", "/load/2?declared=2001"}) {
      ClientRequest request = request_of(Method::get, target);
      request.sink = [](std::string) -> asio::awaitable<Status> { co_return ok(); };
      auto answer = co_await client.send(std::move(request));
      EXPECT_TRUE(!answer && answer.error().code == Errc::unavailable) << target;
    }
  }, "http");
}

TEST(StreamedBody, ServerThatAnswersEarly_StopsTheUpload) {
  Depot server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto pieces = std::make_shared<int>(0);
    ClientRequest request = request_of(Method::put, "/refuse");
    request.upload.next = [pieces]() -> asio::awaitable<Result<std::string>> {
      ++*pieces;
      co_return std::string(64 << 10, 'x');
    };
    auto answer = co_await client.send(std::move(request));
    EXPECT_TRUE(answer && answer->status == 403) << (answer ? "" : answer.error().message);
    EXPECT_LT(*pieces, 1000);
    auto next = co_await client.send(request_of(Method::get, "/ok"));
    EXPECT_TRUE(next && next->body == "ok");
  }, "http");
}

TEST(StreamedBody, FailuresOfTheCaller_AreItsOwn) {
  Depot server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    ClientRequest upload = request_of(Method::put, "/store");
    upload.upload = blocks(2, 1000, 3000);
    auto short_one = co_await client.send(std::move(upload));
    EXPECT_TRUE(!short_one && short_one.error().reason == "bad_source");
    ClientRequest failing = request_of(Method::put, "/store");
    failing.upload.next = []() -> asio::awaitable<Result<std::string>> {
      co_return Error{Errc::internal, "disk", "the disk failed"};
    };
    auto failed = co_await client.send(std::move(failing));
    EXPECT_TRUE(!failed && failed.error().reason == "disk");
    ClientRequest download = request_of(Method::get, "/load/100");
    download.sink = [](std::string) -> asio::awaitable<Status> {
      co_return Error{Errc::internal, "full", "the disk is full"};
    };
    auto full = co_await client.send(std::move(download));
    EXPECT_TRUE(!full && full.error().reason == "full");
    ClientRequest bounded = request_of(Method::get, "/load/100");
    bounded.sink = [](std::string) -> asio::awaitable<Status> { co_return ok(); };
    bounded.sink_bytes_max = 99'999;
    auto large = co_await client.send(std::move(bounded));
    EXPECT_TRUE(!large && large.error().reason == "answer_too_large");
  }, "http");
}

// A refusal is no download: the sink gets nothing of it.
TEST(StreamedBody, Refusal_IsReadAsUsual) {
  Depot server;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    ClientRequest request = request_of(Method::get, "/nowhere");
    request.sink = [](std::string) -> asio::awaitable<Status> {
      ADD_FAILURE() << "the sink was called";
      co_return ok();
    };
    auto answer = co_await client.send(std::move(request));
    EXPECT_TRUE(answer && answer->status == 404 && response_error(*answer).reason == "not_found");
  }, "http");
}

TEST(StreamedBody, ClientsTimeout_IsForEachStep_AndNotForItsOwnSourceOrSink) {
  Depot server;
  RunningServer quiet;
  quiet.router.add(Method::get, "/stall", [&](Request&) -> asio::awaitable<Response> {
    auto calls = std::make_shared<int>(0);
    Response response;
    response.source.next = [&quiet, calls]() -> asio::awaitable<Result<std::string>> {
      if (++*calls == 1) co_return std::string("first");
      co_await quiet.clock.wait(1h);
      co_return std::string();
    };
    co_return response;
  });
  quiet.start();
  RealClock clock;
  as_client(server.port(), [&](HttpClient& client) -> asio::awaitable<void> {
    ClientRequest slow = request_of(Method::put, "/store");
    slow.timeout = 100ms;
    auto left = std::make_shared<int>(4);
    slow.upload.next = [&clock, left]() -> asio::awaitable<Result<std::string>> {
      co_await clock.wait(70ms);
      co_return std::string((*left)-- > 0 ? 1 : 0, 'x');
    };
    auto answer = co_await client.send(std::move(slow));
    EXPECT_TRUE(answer && answer->body == "4") << (answer ? "" : answer.error().message);
  }, "http");
  as_client(quiet.port(), [](HttpClient& client) -> asio::awaitable<void> {
    ClientRequest stalled = request_of(Method::get, "/stall");
    stalled.timeout = 100ms;
    stalled.sink = [](std::string) -> asio::awaitable<Status> { co_return ok(); };
    auto cut = co_await client.send(std::move(stalled));
    EXPECT_TRUE(!cut && cut.error().reason == "timeout");
  }, "http");
}

}  // namespace
}  // namespace weir::net
