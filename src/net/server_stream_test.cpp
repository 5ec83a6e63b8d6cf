// What lasts longer than one answer: event streams, and the end of a server while clients are still connected.
#include "server_testing.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::get;
using testing::has;
using testing::RawClient;
using testing::RunningServer;
using testing::Usual;

TEST(EventStream, Events_ArriveAsChunks_AndTheStreamEnds) {
  RunningServer server;
  server.router.add(Method::get, "/events", [](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [](EventStream& out) -> asio::awaitable<void> {
      (void)co_await out.send_text(event_text("1", "greeting", "two\nlines"));
      (void)co_await out.send_text(event_text("", "", ""));
      (void)co_await out.send_text(event_text("x\ny", "", "a\r\nb\n"));
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
      (void)co_await out.send_text(event_text("", "", "hello"));
      ++seen.started;
      co_await server.clock.wait(1h);
      auto late = co_await out.send_text(event_text("", "", "late"));
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
        auto sent = co_await out.send_text(event_text("", "", data));
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
      (void)co_await out.send_text(event_text("", "", "one"));
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
      (void)co_await out.send_text(event_text("", "", "hello"));
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

}  // namespace
}  // namespace weir::net
