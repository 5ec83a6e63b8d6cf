// The server over TLS, asked by Weir's own client and by OpenSSL, and by those who do not speak TLS.
#include "log_lines.hpp"
#include "server_testing.hpp"
#include "stall.hpp"
#include "temp_files.hpp"
#include "tls_testing.hpp"
#include "web_socket_testing.hpp"

#include <boost/asio/redirect_error.hpp>
#include <gtest/gtest.h>

#include <csignal>
#include <random>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::as_client;
using testing::Authority;
using testing::Certificate;
using testing::get;
using testing::has;
using testing::RawClient;
using testing::RunningServer;
using testing::status_of;
using testing::to;

// Blocking, on OpenSSL alone, with two seconds of patience for each call.
class SealedClient {
 public:
  struct Ways {
    int newest = TLS1_3_VERSION;
    std::string protocols = {};  // as ALPN wants them: each behind its length
  };
  explicit SealedClient(std::uint16_t port) : SealedClient(port, Ways()) {}
  SealedClient(std::uint16_t port, const Ways& ways) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval patience{2, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int on = 1, small = 4096;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    WEIR_ASSERT(::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    ::SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    ::SSL_CTX_set_max_proto_version(context_, ways.newest);
    ::SSL_CTX_set_cipher_list(context_, "DEFAULT@SECLEVEL=0");
    ssl_ = ::SSL_new(context_);
    ::SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(ways.protocols.data()),
                          static_cast<unsigned>(ways.protocols.size()));
    ::SSL_set_fd(ssl_, fd_);
    greeted_ = ::SSL_connect(ssl_) == 1;
  }
  SealedClient(const SealedClient&) = delete;
  ~SealedClient() {
    ::SSL_free(ssl_);
    ::SSL_CTX_free(context_);
    ::close(fd_);
  }
  bool greeted() const { return greeted_; }
  std::string version() const { return ::SSL_get_version(ssl_); }
  std::string protocol() const {
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    ::SSL_get0_alpn_selected(ssl_, &chosen, &size);
    return {reinterpret_cast<const char*>(chosen), size};
  }
  long shown() const {
    X509* certificate = ::SSL_get1_peer_certificate(ssl_);
    long serial = certificate == nullptr ? 0 : ::ASN1_INTEGER_get(::X509_get0_serialNumber(certificate));
    ::X509_free(certificate);
    return serial;
  }
  bool send(std::string_view text) {
    return ::SSL_write(ssl_, text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size());
  }
  std::string read_until(std::string_view end) {
    size_t at = std::string::npos;
    while ((at = held_.find(end)) == std::string::npos && fill()) continue;
    std::string out = held_.substr(0, at == std::string::npos ? at : at + end.size());
    held_.erase(0, out.size());
    return out;
  }
  std::string read_to_end() {
    while (fill()) continue;
    return std::exchange(held_, {});
  }
  // Whether the server has said that nothing follows, rather than the connection having ended without a word.
  bool told_the_end() {
    read_to_end();
    return (::SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
  }
  // Has the server change its keys, too.
  bool ask_for_new_keys() { return ::SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED) == 1; }

 private:
  bool fill() {
    char block[16384];
    int got = ::SSL_read(ssl_, block, sizeof block);
    if (got > 0) held_.append(block, static_cast<size_t>(got));
    return got > 0;
  }
  SSL_CTX* const context_ = ::SSL_CTX_new(::TLS_client_method());
  SSL* ssl_ = nullptr;
  int fd_ = -1;
  bool greeted_ = false;
  std::string held_;
};

class TlsServing : public ::testing::Test {
 protected:
  TlsServing() {
    std::signal(SIGPIPE, SIG_IGN);
    authority_.write(ca_file_);
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::shared_ptr<const TlsIdentity> make_identity() {
    auto made = authority_.issue("IP:127.0.0.1");
    made->write(path("server.pem"));
    made->write_key(path("server.key"));
    auto loaded = TlsIdentity::load(path("server.pem"), path("server.key"));
    WEIR_ASSERT(bool(loaded));
    return *loaded;
  }
  void use_another(RunningServer& server) {
    server.ask([&, made = make_identity()] {
      server.server->use(made);
      return true;
    });
  }
  // With the usual routes, and one that says whether it was asked over TLS.
  void start(RunningServer& server) {
    testing::add_usual_routes(server.router);
    server.router.add(Method::get, "/encrypted", [](Request& request) -> asio::awaitable<Response> {
      co_return Response::text(request.encrypted ? "yes" : "no");
    });
    server.start();
    use_another(server);
  }
  template <class Talk>
  void talk(RunningServer& server, Talk said) {
    as_client(server.port(), std::move(said), "https", {.ca_file = ca_file_});
  }

  test::TempDir folder_;
  const Authority authority_;
  const std::string ca_file_ = folder_.path() + "/ca.pem";
};

asio::awaitable<std::string> ask(HttpClient& client, ClientRequest request) {
  auto answer = co_await client.send(std::move(request));
  co_return answer ? fmt::format("{} {}", answer->status, answer->body) : answer.error().reason;
}

TEST_F(TlsServing, Requests_AreAnsweredOnOneConnection_AndKnowHowTheyCame) {
  RunningServer server;
  start(server);
  talk(server, [&](HttpClient& client) -> asio::awaitable<void> {
    std::string answer = co_await ask(client, to("/encrypted"));
    EXPECT_EQ(answer, "200 yes");
    for (size_t bytes : {0, 1, 16 << 10, 900'000}) {
      ClientRequest request = to("/v1/echo");
      request.method = Method::post;
      request.body.assign(bytes, 'e');
      answer = co_await ask(client, std::move(request));
      EXPECT_EQ(answer.size(), bytes + 4);
    }
  });
  SealedClient client(server.port());
  client.send(get("/ok") + get("https://127.0.0.1/ok"));  // two in one record
  EXPECT_TRUE(client.read_until("\r\n\r\nok").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(client.read_until("\r\n\r\nok").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; }));
}

TEST_F(TlsServing, VersionsAndProtocols_ThatAreTooOldOrOthers_AreRefused) {
  RunningServer server;
  start(server);
  struct Row {
    SealedClient::Ways ways;
    std::string version, protocol;  // "": refused
  };
  for (const Row& row : std::vector<Row>{{{.newest = TLS1_1_VERSION}, "", ""},
                                         {{.newest = TLS1_2_VERSION}, "TLSv1.2", ""},
                                         {{}, "TLSv1.3", ""},
                                         {{.protocols = "\x02h2\x08http/1.1"}, "TLSv1.3", "http/1.1"},
                                         {{.protocols = "\x02h2"}, "", ""}}) {
    SealedClient client(server.port(), row.ways);
    EXPECT_EQ(client.greeted(), !row.version.empty()) << row.version;
    if (!client.greeted()) continue;
    EXPECT_EQ(client.version(), row.version);
    EXPECT_EQ(client.protocol(), row.protocol);
    client.send(get("/ok"));
    EXPECT_TRUE(client.read_until("\r\n\r\nok").starts_with("HTTP/1.1 200"));
  }
}

TEST_F(TlsServing, StreamedBodies_TravelBothWays_PieceByPiece) {
  constexpr std::uint64_t kPieces = 200, kPiece = 100'000;
  RunningServer server;
  auto many = [](std::uint64_t& made) -> asio::awaitable<Result<std::string>> {
    co_return made++ < kPieces ? std::string(kPiece, static_cast<char>('a' + made % 26)) : std::string();
  };
  auto count = [](Request& request) -> asio::awaitable<Response> {
    for (std::uint64_t all = 0;;) {
      auto piece = co_await request.streamed->read_some();
      if (!piece) co_return Response::failure(piece.error());
      if (piece->empty()) co_return Response::text(std::to_string(all));
      all += piece->size();
    }
  };
  server.router.add(Method::put, "/up", count, StreamedBody{.bytes_max = 1 << 30});
  server.router.add(Method::get, "/down", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.source.next = [&, made = std::uint64_t(0)]() mutable { return many(made); };
    co_return response;
  });
  start(server);
  talk(server, [&](HttpClient& client) -> asio::awaitable<void> {
    std::uint64_t sent = 0, received = 0;
    ClientRequest up = to("/up");
    up.method = Method::put;
    up.content_type = "application/octet-stream";
    up.upload.next = [&] { return many(sent); };
    std::string answer = co_await ask(client, std::move(up));
    EXPECT_EQ(answer, fmt::format("200 {}", kPieces * kPiece));
    ClientRequest down = to("/down");
    down.sink = [&](std::string piece) -> asio::awaitable<Status> {
      received += piece.size();
      co_return ok();
    };
    answer = co_await ask(client, std::move(down));
    EXPECT_EQ(answer, "200 ");
    EXPECT_EQ(received, kPieces * kPiece);
  });
}

TEST_F(TlsServing, EventStream_IsFollowedToItsEnd) {
  RunningServer server;
  server.router.add(Method::get, "/events", [](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [](EventStream& out) -> asio::awaitable<void> {
      for (int n = 0; n < 300; ++n)
        (void)co_await out.send_text(event_text(std::to_string(n), "", std::string(5000, 'x')));
    };
    co_return response;
  });
  start(server);
  talk(server, [&](HttpClient& client) -> asio::awaitable<void> {
    int seen = 0;
    ClientRequest request = to("/events");
    Status ended = co_await client.follow(std::move(request), 5s, [&](const StreamedEvent& event) {
      EXPECT_EQ(event.id, std::to_string(seen));
      EXPECT_EQ(event.data.size(), 5000u);
      ++seen;
      return true;
    });
    EXPECT_TRUE(ended);
    EXPECT_EQ(seen, 300);
  });
  SealedClient client(server.port());
  client.send(get("/events"));
  EXPECT_TRUE(client.read_until("id: 299").ends_with("id: 299"));
  EXPECT_TRUE(client.told_the_end());
}

// What is not taken is kept once, encrypted, and nothing is made beyond it.
TEST_F(TlsServing, EventStream_ThatNobodyReads_StopsItsSource_AndIsCutOff) {
  RunningServer server({.write_timeout = 200ms});
  std::atomic<int> sent = 0;
  std::atomic<bool> failed = false;
  server.router.add(Method::get, "/events", [&](Request&) -> asio::awaitable<Response> {
    Response response;
    response.stream = [&](EventStream& out) -> asio::awaitable<void> {
      std::string text = event_text("", "", std::string(100'000, 'x'));
      while (co_await out.send_text(text)) ++sent;
      failed = true;
    };
    co_return response;
  });
  start(server);
  SealedClient client(server.port());
  client.send(get("/events"));
  EXPECT_TRUE(server.eventually([&] { return failed && server.server->connections() == 0; }));
  EXPECT_LT(sent, 200);  // what the kernel takes
  EXPECT_FALSE(client.told_the_end());
}

TEST_F(TlsServing, WebSocket_EchoesWhatComes_AlsoInTheRecordOfTheUpgrade) {
  RunningServer server;
  testing::add_socket(server.router, "/echo", testing::echo_messages);
  start(server);
  auto echo = [&](HttpClient& client) -> asio::awaitable<void> {
    auto opened = co_await client.web_socket(to("/echo"));
    EXPECT_TRUE(opened);
    if (!opened) co_return;
    for (size_t bytes : {0, 1, 5000, 700'000}) {
      (void)co_await opened->send(testing::binary_message(std::string(bytes, '\x80')));
      auto back = co_await opened->receive();
      EXPECT_TRUE(back && back->bytes.size() == bytes) << bytes;
    }
    co_await opened->close();
    EXPECT_EQ(opened->end()->why, WebSocketEnd::Why::closed_here);
    EXPECT_EQ(opened->end()->code, 1000);
  };
  as_client(server.port(), echo, "wss", {.ca_file = ca_file_});
  SealedClient client(server.port());
  client.send(std::string(testing::kUpgrade) + testing::frame(0x81, "hello"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101"));
  EXPECT_EQ(client.read_until("hello"), "\x81\x05hello");
  client.send(testing::frame(0x88, "\x03\xE8"));
  EXPECT_EQ(testing::close_code(client.read_to_end()), 1000);
  EXPECT_TRUE(client.told_the_end());
}

TEST_F(TlsServing, AnotherIdentity_IsShownToNewConnections_AndOldOnesGoOn) {
  RunningServer server;
  testing::add_socket(server.router, "/echo", testing::echo_messages);
  start(server);
  SealedClient before(server.port()), socket(server.port());
  socket.send(testing::kUpgrade);
  EXPECT_TRUE(socket.read_until("\r\n\r\n").starts_with("HTTP/1.1 101"));
  use_another(server);
  SealedClient after(server.port());
  EXPECT_NE(before.shown(), after.shown());
  for (SealedClient* each : {&before, &after}) {
    each->send(get("/ok"));
    EXPECT_TRUE(each->read_until("\r\n\r\nok").starts_with("HTTP/1.1 200"));
  }
  socket.send(testing::frame(0x81, "still here"));
  EXPECT_TRUE(has(socket.read_until("still here"), "still here"));
}

TEST_F(TlsServing, PlainHttp_IsToldToSpeakTls_AndClosed_WithOneLineInTheLog) {
  RunningServer server;
  start(server);
  test::LogLines log;
  for (std::string_view text : {"GET /ok HTTP/1.1\r\nHost: x\r\n\r\n", "DELETE /ok HTTP/1.1\r\nHost: x\r\n\r\n",
                                "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    RawClient client(server.port());
    client.send(text);
    std::string answer = client.read_answer();
    EXPECT_EQ(status_of(answer), 503) << answer;
    EXPECT_TRUE(has(answer, "\"code\":\"tls_required\"") && has(answer, "https://")) << answer;
    EXPECT_TRUE(client.closed());
  }
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    auto answer = co_await client.send(to("/ok"));
    EXPECT_TRUE(answer && response_error(*answer).reason == "tls_required");
  }, "http");
  EXPECT_EQ(log.count("\"event\":\"http.handshake_failed\""), 1u) << log.all();
  EXPECT_EQ(log.count("spoke plain HTTP"), 1u) << log.all();
  EXPECT_EQ(log.count("\"remote\":\"127.0.0.1\""), 1u) << log.all();
}

TEST_F(TlsServing, ClientThatDoesNotTrustTheServer_IsNamedInTheLog) {
  RunningServer server;
  start(server);
  test::LogLines log;
  as_client(server.port(), [](HttpClient& client) -> asio::awaitable<void> {
    std::string answer = co_await ask(client, to("/ok"));
    EXPECT_EQ(answer, "tls_unknown_authority");
  }, "https");
  EXPECT_TRUE(test::eventually(5s, [&] { return log.count("http.handshake_failed") == 1; })) << log.all();
  EXPECT_EQ(log.count("unknown ca"), 1u) << log.all();
}

TEST_F(TlsServing, HalfAHandshake_EndsAtTheTimeOfARequest_OrSoonerWhereOthersWait) {
  {
    RunningServer server({.read_timeout = 100ms});
    start(server);
    RawClient silent(server.port()), begun(server.port());
    begun.send(std::string_view("\x16\x03\x01\x02\x00\x01", 6));
    EXPECT_TRUE(silent.closed());
    EXPECT_TRUE(begun.closed());
  }
  RunningServer server({.connections_max = 1, .read_timeout = 1h, .idle_when_full = 100ms});
  start(server);
  RawClient silent(server.port());
  EXPECT_TRUE(test::eventually(10s, [&] {
    SealedClient another(server.port());
    another.send(get("/ok", "Connection: close\r\n"));
    return has(another.read_to_end(), "\r\n\r\nok") || silent.closed();
  }));
  EXPECT_TRUE(silent.closed());
}

TEST_F(TlsServing, ConnectionsOverTheLimit_AreToldSo_OverTls) {
  RunningServer server({.connections_max = 1});
  start(server);
  SealedClient first(server.port());
  first.send(get("/ok"));
  EXPECT_TRUE(has(first.read_until("\r\n\r\nok"), "200"));
  SealedClient second(server.port());
  second.send(get("/ok"));
  EXPECT_TRUE(has(second.read_to_end(), "too_many_connections"));
}

TEST_F(TlsServing, OnlyAWholeConversation_EndsWithAWordOfTheServer) {
  RunningServer server({.idle_timeout = 100ms});
  server.router.add(Method::get, "/broken", [](Request&) -> asio::awaitable<Response> {
    Response response;
    response.source.next = [n = 0]() mutable -> asio::awaitable<Result<std::string>> {
      if (n++ > 0) co_return Error{Errc::internal, "broken", "the disk is gone"};
      co_return std::string("half of it");
    };
    co_return response;
  });
  start(server);
  SealedClient idle(server.port());
  idle.send(get("/ok"));
  EXPECT_TRUE(idle.told_the_end());
  SealedClient cut(server.port());  // HTTP/1.0 knows the end of such an answer by the end of the connection alone
  cut.send("GET /broken HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(cut.read_until("half of it").ends_with("half of it"));
  EXPECT_FALSE(cut.told_the_end());
}

TEST_F(TlsServing, Stop_EndsThoseWhoAreStillShakingHands) {
  RunningServer server;
  start(server);
  RawClient silent(server.port());
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; }));
  auto begun = std::chrono::steady_clock::now();
  server.stop(1h);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
  EXPECT_TRUE(silent.closed());
}

// Nothing that is sent in the place of a handshake, or within a conversation, ends the server or stays in it.
TEST_F(TlsServing, RandomBytes_EndOnlyTheirOwnConnection) {
  RunningServer server({.read_timeout = 200ms});
  start(server);
  std::mt19937 random(11);
  auto draw = [&](int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    for (int i = draw(600); i >= 0; --i) bytes += static_cast<char>(draw(256));
    if (draw(4) > 0) bytes.insert(0, std::string("\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11));
    RawClient client(server.port());
    client.send(bytes);
    if (draw(2) == 0) client.finish();
  }
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
  SealedClient talkative(server.port());
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(talkative.ask_for_new_keys());
    talkative.send(get("/ok"));
    EXPECT_TRUE(has(talkative.read_until("\r\n\r\nok"), "200"));
  }
}

}  // namespace
}  // namespace weir::net
