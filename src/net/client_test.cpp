#include "weir/net/client.hpp"

#include "event_reader.hpp"
#include "testing.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <poll.h>

#include <atomic>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::has;
using testing::RunningServer;

// Runs a coroutine to its end on a loop of this thread; nothing after two seconds.
template <class T>
std::optional<T> finish(asio::io_context& io, asio::awaitable<T> work) {
  std::optional<T> out;
  auto keep = [](asio::awaitable<T> from, std::optional<T>& to) -> asio::awaitable<void> {
    to = co_await std::move(from);
  };
  asio::co_spawn(io, keep(std::move(work), out), [](std::exception_ptr thrown) { EXPECT_FALSE(thrown); });
  io.restart();
  auto end = std::chrono::steady_clock::now() + 2s;
  while (!out && std::chrono::steady_clock::now() < end) io.run_one_for(10ms);
  return out;
}

// A client and its loop. What `send` gives is a result, or an error "hung" when nothing came in time.
struct Asker {
  explicit Asker(std::uint16_t port, std::string_view prefix = "", size_t answer_bytes_max = 1 << 20)
      : client(*HttpClient::create(io, fmt::format("http://127.0.0.1:{}{}", port, prefix),
                                   {.answer_bytes_max = answer_bytes_max})) {}

  Result<ClientResponse> send(ClientRequest request) {
    auto result = finish(io, client.send(std::move(request)));
    if (!result) return Error{Errc::internal, "hung", "no result in time"};
    return *std::move(result);
  }
  std::string outcome(ClientRequest request) {
    auto result = send(std::move(request));
    return result ? fmt::format("{} {}", result->status, result->body) : result.error().reason;
  }
  Status follow(ClientRequest request, Duration silence, std::function<bool(const StreamedEvent&)> each) {
    auto result = finish(io, client.follow(std::move(request), silence, std::move(each)));
    if (!result) return Error{Errc::internal, "hung", "no result in time"};
    return *std::move(result);
  }

  asio::io_context io{1};
  HttpClient client;
};

// Plays a script: for each connection the answers it gives, one a request; then it closes. After the last one it
// listens no more.
class ScriptedServer {
 public:
  using Connection = std::vector<std::string>;  // the answers, "" for none
  template <class... More>
  explicit ScriptedServer(Connection first, More... more) : script_{std::move(first), std::move(more)...} {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    WEIR_ASSERT(::bind(fd_, reinterpret_cast<sockaddr*>(&at), length) == 0 && ::listen(fd_, 8) == 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &length);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { play(); });
  }
  ~ScriptedServer() {
    thread_.join();
    ::close(fd_);
  }
  std::uint16_t port() const { return port_; }
  int requests() const { return requests_; }

 private:
  bool read_request(int fd) {
    std::string got;
    std::array<char, 4096> block;
    while (got.find("\r\n\r\n") == std::string::npos) {
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, 2000) != 1) return false;
      ssize_t n = ::recv(fd, block.data(), block.size(), 0);
      if (n <= 0) return false;
      got.append(block.data(), static_cast<size_t>(n));
    }
    return true;
  }
  void play() {
    for (const Connection& answers : script_) {
      pollfd ready{fd_, POLLIN, 0};
      if (::poll(&ready, 1, 2000) != 1) return;
      int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (&answers == &script_.back()) ::shutdown(fd_, SHUT_RDWR);
      for (const std::string& answer : answers) {
        if (!read_request(fd)) break;
        ++requests_;
        if (!answer.empty()) ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
      }
      ::close(fd);
    }
  }
  const std::vector<Connection> script_;
  std::atomic<int> requests_ = 0;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

using Script = ScriptedServer::Connection;
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

asio::awaitable<Response> describe(Request& request) {
  co_return Response::text(fmt::format("{} {} {} {} {} {}", to_string(request.method), request.path,
                                       request.header("authorization"), request.header("content-type"),
                                       request.header("x-extra"), request.body));
}

TEST(HttpClient, Send_CarriesMethodTargetBearerHeadersAndBody) {
  RunningServer server;
  server.router.add(Method::post, "/v1/x", describe);
  server.router.add(Method::get, "/v1/x", describe);
  Asker asker(server.start(), "/api/");
  EXPECT_EQ(asker.outcome({.method = Method::post,
                           .target = "/v1/x?a=b",
                           .body = "{}",
                           .bearer = Secret("tok"),
                           .headers = {{"x-extra", "1\r\nEvil: 2"}}}),
            "200 POST /api/v1/x Bearer tok application/json 1Evil: 2 {}");
  EXPECT_EQ(asker.outcome({.target = "/v1/x"}), "200 GET /api/v1/x    ");
  EXPECT_EQ(asker.outcome({.target = "/v1/x\r\nEvil: 1"}), "bad_target");
  EXPECT_EQ(asker.outcome({.target = "v1/x"}), "bad_target");
  auto head = asker.send({.method = Method::head, .target = "/v1/x"});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->headers.count("x-request-id"), 1u);
}

TEST(HttpClient, Connections_AreReused) {
  RunningServer server;
  server.router.add(Method::get, "/x", describe);
  Asker asker(server.start());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(asker.send({.target = "/x"}));
  EXPECT_EQ(server.ask([&] { return server.server->connections(); }), 1u);
  asker.client.close_idle();
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

TEST(HttpClient, LargeBodies_TravelBothWays) {
  RunningServer server;
  server.router.add(Method::put, "/x", [](Request& request) -> asio::awaitable<Response> {
    co_return Response::text(std::move(request.body));
  });
  Asker asker(server.start());
  std::string body(1'000'000, 'x');
  auto answer = asker.send({.method = Method::put, .target = "/x", .body = body});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, body);
}

TEST(HttpClient, NameIsResolved) {
  RunningServer server;
  server.router.add(Method::get, "/x", describe);
  std::uint16_t port = server.start();
  asio::io_context io;
  auto client = HttpClient::create(io, fmt::format("http://localhost:{}", port));
  ASSERT_TRUE(client);
  auto result = finish(io, client->send({.target = "/x"}));
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->status, 200);
}

TEST(HttpClient, KeptConnectionThatWasClosed_IsRetriedOnlyWhereThatIsSafe) {
  struct Row {
    ClientRequest request;
    std::string_view expected;
  };
  for (const Row& row : std::vector<Row>{{{.method = Method::get, .target = "/x"}, "200 ok"},
                                         {{.method = Method::del, .target = "/x"}, "200 ok"},
                                         {{.method = Method::post, .target = "/x", .replayable = true}, "200 ok"}}) {
    // The second request is read and dropped: the client cannot have seen the close before it wrote.
    ScriptedServer server(Script{std::string(kOk), ""}, Script{std::string(kOk)});
    Asker asker(server.port());
    EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
    EXPECT_EQ(asker.outcome(row.request), row.expected) << to_string(row.request.method);
  }
  ScriptedServer server(Script{std::string(kOk), ""});
  Asker asker(server.port());
  EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
  EXPECT_EQ(asker.outcome({.method = Method::post, .target = "/x"}), "answer_cut");
}

TEST(HttpClient, SeveralAddresses_TheOneThatAnswersIsKept_AndOneThatFailsIsLeft) {
  std::string_view failing = "HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n";
  RunningServer other;
  other.router.add(Method::get, "/x", describe);
  std::uint16_t port = other.start();
  ScriptedServer first(Script{std::string(kOk), std::string(kOk), std::string(failing)});
  Asker asker(first.port(), fmt::format(", http://127.0.0.1:{}", port));
  EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
  EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
  EXPECT_EQ(other.ask([&] { return other.server->connections(); }), 0u);
  EXPECT_EQ(asker.outcome({.target = "/x"}), "503 ");
  EXPECT_TRUE(asker.outcome({.target = "/x"}).starts_with("200 ")) << "the other one";
  EXPECT_EQ(other.ask([&] { return other.server->connections(); }), 1u);
  ASSERT_TRUE(asker.client.use(fmt::format("http://127.0.0.1:{},http://127.0.0.1:{}", first.port(), port)));
  EXPECT_EQ(other.ask([&] { return other.server->connections(); }), 1u) << "the same addresses change nothing";
  EXPECT_TRUE(asker.outcome({.target = "/x"}).starts_with("200 "));
  other.stop(0s);
  EXPECT_EQ(asker.outcome({.target = "/x"}), "unreachable");
  ScriptedServer third(Script{std::string(kOk)});
  EXPECT_FALSE(asker.client.use("x"));
  ASSERT_TRUE(asker.client.use(fmt::format("http://127.0.0.1:{}", third.port())));
  EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
}

TEST(HttpClient, OneAddress_ADialThatFails_LeavesKeptConnectionsAlone) {
  ScriptedServer server(Script{std::string(kOk), std::string(kOk)});
  Asker asker(server.port());
  EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
  auto stream = asker.follow({.target = "/events"}, 1s, [](const StreamedEvent&) { return true; });
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().reason, "unreachable");
  EXPECT_EQ(asker.outcome({.target = "/x"}), "200 ok");
}

TEST(HttpClient, FirstConnection_IsNotRetried) {
  ScriptedServer server(Script{""});
  Asker asker(server.port());
  EXPECT_EQ(asker.outcome({.target = "/x"}), "answer_cut");
}

TEST(HttpClient, Answers_InEveryFraming) {
  struct Row {
    std::string_view answer, expected;
  };
  for (const Row& row : std::vector<Row>{
           {"HTTP/1.1 200 OK\r\n\r\nto the end", "200 to the end"},
           {"HTTP/1.0 404 No\r\nContent-Length: 1\r\n\r\nx", "404 x"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "200 abc"},
           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nhi", "201 hi"},
           {"HTTP/1.1 204 No\r\n\r\n", "204 "},
           {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "answer_cut"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "answer_cut"},
           {"SSH-2.0-OpenSSH\r\n\r\n", "bad_answer"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "answer_too_large"}}) {
    ScriptedServer server(Script{std::string(row.answer)});
    Asker asker(server.port());
    EXPECT_EQ(asker.outcome({.target = "/x"}), row.expected) << row.answer;
  }
}

TEST(HttpClient, NobodyListens_IsUnreachable) {
  std::uint16_t port = 0;
  {
    RunningServer server;
    port = server.start();
  }
  Asker asker(port);
  auto result = asker.send({.target = "/x"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::unavailable);
  EXPECT_EQ(result.error().reason, "unreachable");
  EXPECT_TRUE(has(result.error().message, "refused"));
}

// A handler that does not answer until the server is stopped.
void add_hanging(RunningServer& server) {
  server.router.add(Method::get, "/hang", [&](Request&) -> asio::awaitable<Response> {
    co_await server.clock.wait(1h);
    co_return Response{};
  });
}

TEST(HttpClient, NoAnswerInTime_IsATimeout_AndTheConnectionIsClosed) {
  RunningServer server;
  add_hanging(server);
  server.router.add(Method::get, "/x", describe);
  Asker asker(server.start());
  EXPECT_TRUE(asker.send({.target = "/x"}));
  auto result = asker.send({.target = "/hang", .timeout = 100ms});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, "timeout");
  EXPECT_EQ(result.error().code, Errc::unavailable);
  EXPECT_TRUE(asker.send({.target = "/x"}));
}

TEST(HttpClient, CancelledCaller_GetsAnErrorAndClosesTheConnection) {
  ScriptedServer server(Script{"", ""});  // reads the request, then waits for the client's closing
  Asker asker(server.port());
  asio::cancellation_signal cancel;
  std::optional<std::string> reason;
  auto ask = [&]() -> asio::awaitable<void> {
    ClientRequest request{.target = "/x"};  // named: GCC 12 destroys an aggregate within a co_await expression twice
    auto result = co_await asker.client.send(std::move(request));
    reason = result ? "answered" : result.error().reason;
  };
  asio::co_spawn(asker.io, ask(), asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
  for (int i = 0; i < 200 && server.requests() == 0; ++i) asker.io.run_one_for(10ms);
  EXPECT_EQ(server.requests(), 1);
  EXPECT_FALSE(reason);
  asio::post(asker.io, [&] { cancel.emit(asio::cancellation_type::terminal); });
  for (int i = 0; i < 200 && !reason; ++i) asker.io.run_one_for(10ms);
  EXPECT_EQ(reason, "cancelled");
}

TEST(HttpClient, BaseUrl_MustBeHttpOrHttps_WithAtMostAPath) {
  asio::io_context io;
  for (std::string_view good : {"http://127.0.0.1:8080", "http://host", "http://[::1]:80/prefix/", "http://a:1/",
                                "http://a:1,http://b:2/p", "http://a:1 , http://b:2", "https://x:1", "https://cp/api",
                                "https://[fe80::1%2]:1", "http://a:1,https://b"})
    EXPECT_TRUE(HttpClient::create(io, good)) << good;
  for (std::string_view bad :
       {"", "127.0.0.1:8080", "https:/x:1", "https://", "https://x:0", "ftp://x", "http://", "http://:80", "http://x:0",
        "http://x:99999", "http://x:y", "http://a:1,", ",http://a:1", "http://u:p@x:1", "http://x:1/a b",
        "http://x:1?q"}) {
    auto refused = HttpClient::create(io, bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().reason, "bad_url") << bad;
    EXPECT_FALSE(has(refused.error().message, "u:p"));
  }
}

// ---- event streams ----
void add_counting(RunningServer& server, int events, bool then_wait) {
  server.router.add(Method::get, "/events", [&server, events, then_wait](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [&server, events, then_wait](EventStream& out) -> asio::awaitable<void> {
      for (int i = 0; i < events; ++i) {
        auto sent = co_await out.send_text(event_text(std::to_string(i), "tick", fmt::format("line\n{}", i)));
        if (!sent) co_return;
      }
      if (then_wait) co_await server.clock.wait(1h);
    };
    co_return response;
  });
}

TEST(HttpClientFollow, EveryEvent_ThenTheEndOfTheStream) {
  RunningServer server;
  add_counting(server, 1000, false);
  Asker asker(server.start());
  std::vector<StreamedEvent> seen;
  auto ended = asker.follow({.target = "/events"}, 1s, [&](const StreamedEvent& event) {
    seen.push_back(event);
    return true;
  });
  EXPECT_TRUE(ended);
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_EQ(seen[7].id, "7");
  EXPECT_EQ(seen[7].event, "tick");
  EXPECT_EQ(seen[7].data, "line\n7");
}

TEST(HttpClientFollow, EndsWhenTheCallerHasEnough) {
  RunningServer server;
  add_counting(server, 3, true);
  Asker asker(server.start());
  int seen = 0;
  EXPECT_TRUE(asker.follow({.target = "/events"}, 10s, [&](const StreamedEvent&) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

TEST(HttpClientFollow, StreamThatEnded_IsFollowedAtTheNextAddress) {
  RunningServer first, second;
  add_counting(first, 1, false);
  add_counting(second, 2, false);
  std::uint16_t port = second.start();
  Asker asker(first.start(), fmt::format(",http://127.0.0.1:{}", port));
  int seen = 0;
  auto count = [&](const StreamedEvent&) { return ++seen > 0; };
  EXPECT_TRUE(asker.follow({.target = "/events"}, 10s, count));
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(asker.follow({.target = "/events"}, 10s, count));
  EXPECT_EQ(seen, 3);
}

TEST(HttpClientFollow, SilentStream_IsAnError) {
  RunningServer server;
  add_counting(server, 1, true);
  Asker asker(server.start());
  auto ended = asker.follow({.target = "/events"}, 100ms, [](const StreamedEvent&) { return true; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().reason, "stream_silent");
}

TEST(HttpClientFollow, RefusedStream_IsTheServersError) {
  RunningServer server;
  Asker asker(server.start());
  auto ended = asker.follow({.target = "/events"}, 1s, [](const StreamedEvent&) { return true; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::not_found);
  EXPECT_EQ(ended.error().reason, "not_found");
}

TEST(HttpClientFollow, CutStream_IsAnError) {
  ScriptedServer server(Script{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n5\r\nda"});
  Asker asker(server.port());
  int seen = 0;
  auto ended = asker.follow({.target = "/events"}, 1s, [&](const StreamedEvent&) { return ++seen > 0; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().reason, "answer_cut");
  EXPECT_EQ(seen, 1);
}

TEST(EventReader, UnderstandsEveryLineEnding_HoweverTheTextIsCut) {
  std::string_view text =
      "\xEF\xBB\xBF: hello\n\ndata: a\r\ndata:b\r\r\n"
      "id: 1\nevent: e\ndata\n\nevent: lost\n\nunknown: x\ndata:  two\n\nid: 7\n\n: beat\n\ndata: open";
  auto read = [&](size_t step) {
    EventReader reader(1000);
    std::string out;
    for (size_t at = 0; at < text.size(); at += step)
      reader.feed(text.substr(at, step), [&](const StreamedEvent& each) {
        out += fmt::format("[{}|{}|{}{}]", each.id, each.event, each.data, each.progress ? "…" : "");
        return true;
      });
    return out;
  };
  for (size_t step : {1, 2, 3, 7, 1000}) EXPECT_EQ(read(step), "[||a\nb][1|e|][1|| two][7||…]") << step;
}

TEST(EventReader, EventOverLimit_Stops) {
  EventReader reader(100);
  auto each = [](const StreamedEvent&) { return true; };
  EXPECT_TRUE(reader.feed("data: " + std::string(60, 'x') + "\n", each));
  EXPECT_FALSE(reader.feed("data: " + std::string(60, 'x') + "\n", each));
  EXPECT_TRUE(reader.too_large());
}

TEST(ResponseError, TakesTheServersWords_WhereThereAreSome) {
  Error held = response_error({409, {}, R"({"error":{"code":"lease_held","message":"held","details":{"v":3}}})"});
  EXPECT_EQ(held.code, Errc::conflict);
  EXPECT_EQ(held.reason, "lease_held");
  EXPECT_EQ(held.message, "held");
  EXPECT_EQ(held.details.at("v"), 3);
  for (std::string_view body : {"", "<html>", "[]", "{}", R"({"error":"x"})", R"({"error":{"code":7}})"}) {
    Error plain = response_error({502, {}, std::string(body)});
    EXPECT_EQ(plain.code, Errc::unavailable) << body;
    EXPECT_EQ(plain.reason, "http_502") << body;
  }
  for (Errc code :
       {Errc::invalid, Errc::unauthorized, Errc::forbidden, Errc::not_found, Errc::conflict, Errc::too_large,
        Errc::unsupported, Errc::unprocessable, Errc::too_many, Errc::unavailable, Errc::internal})
    EXPECT_EQ(response_error({http_status(code), {}, ""}).code, code);
}

}  // namespace
}  // namespace weir::net
