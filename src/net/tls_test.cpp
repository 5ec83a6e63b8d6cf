// The client over TLS, against servers with good and bad certificates of an authority made for the test.
#include "tls_testing.hpp"

#include "run.hpp"
#include "temp_files.hpp"

#include "weir/net/client.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

#include <csignal>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::Authority;
using testing::Listener;
using testing::TlsServer;

class Tls : public ::testing::Test {
 protected:
  Tls() {
    std::signal(SIGPIPE, SIG_IGN);  // a server's, whose client has left
    authority_.write(ca_file_);
  }

  Result<HttpClient> client(const std::string& urls, bool private_authority = true) {
    ClientOptions options;
    if (private_authority) options.ca_file = ca_file_;
    return HttpClient::create(io_, urls, options);
  }
  static std::string at(int port, const std::string& host = "localhost") {
    return fmt::format("https://{}:{}", host, port);
  }
  Result<ClientResponse> ask(HttpClient& client, ClientRequest request = {.target = "/x"}) {
    return test::run(io_, client.send(std::move(request)));
  }
  std::string outcome(HttpClient& client, ClientRequest request = {.target = "/x"}) {
    auto answer = ask(client, std::move(request));
    said_ = answer ? "" : answer.error().message;
    return answer ? fmt::format("{} {}", answer->status, answer->body) : answer.error().reason;
  }

  test::TempDir folder_;
  const std::string ca_file_ = folder_.path() + "/ca.pem";
  const Authority authority_;
  asio::io_context io_{1};
  std::string said_;
};

TEST_F(Tls, KnownAuthorityAndRightName_IsAsked_UnderItsPrefix_OnOneConnection) {
  auto shown = authority_.issue("DNS:localhost");
  TlsServer server(*shown);
  auto asker = client(at(server.port()) + "/api/");
  ASSERT_TRUE(asker);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(outcome(*asker, {.target = "/v1/cameras?limit=1", .bearer = Secret("tok")}), "200 ok") << said_;
  EXPECT_EQ(server.handshakes(), 1);
  EXPECT_EQ(server.asked_for(), "localhost");
  std::string head = server.requests().back();
  EXPECT_TRUE(head.starts_with("GET /api/v1/cameras?limit=1 HTTP/1.1\r\n")) << head;
  EXPECT_NE(head.find("authorization: Bearer tok"), std::string::npos);
}

TEST_F(Tls, AddressInTheCertificate_IsEnough) {
  auto shown = authority_.issue("IP:127.0.0.1");
  TlsServer server(*shown);
  auto asker = client(at(server.port(), "127.0.0.1"));
  EXPECT_EQ(outcome(*asker), "200 ok") << said_;
  EXPECT_EQ(server.asked_for(), "");
}

TEST_F(Tls, EveryFailedCheck_HasItsName_AndNothingIsAsked) {
  struct Row {
    std::string names;
    long seconds_left;
    bool private_authority;
    int newest;
    std::string expected, said;
  };
  for (const Row& row : std::vector<Row>{
           {"DNS:localhost", 3600, false, TLS1_3_VERSION, "tls_unknown_authority", "control_plane_ca_file"},
           {"DNS:elsewhere", 3600, true, TLS1_3_VERSION, "tls_wrong_name", "not for localhost"},
           {"IP:127.0.0.1", 3600, true, TLS1_3_VERSION, "tls_wrong_name", "not for localhost"},
           {"DNS:localhost", -60, true, TLS1_3_VERSION, "tls_expired", "has expired"},
           {"DNS:localhost", -60, true, TLS1_2_VERSION, "tls_expired", "has expired"},
           {"DNS:localhost", 3600, true, TLS1_1_VERSION, "tls_failed", "version"}}) {
    auto shown = authority_.issue(row.names, row.seconds_left);
    TlsServer server(*shown, {.newest = row.newest});
    auto asker = client(at(server.port()), row.private_authority);
    EXPECT_EQ(outcome(*asker, {.target = "/x", .bearer = Secret("tok")}), row.expected) << row.expected << said_;
    EXPECT_NE(said_.find(row.said), std::string::npos) << said_;
    EXPECT_NE(said_.find(fmt::format("localhost:{}", server.port())), std::string::npos) << said_;
    EXPECT_TRUE(server.requests().empty());
  }
}

TEST_F(Tls, ServerThatSpeaksNoTls_IsToldApart) {
  auto answer_plainly = [](int fd) {
    char block[4096];
    if (::recv(fd, block, sizeof block, 0) <= 0) return;
    std::string_view text = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  };
  Listener plain(answer_plainly), closing([](int) {});
  auto asker = client(at(plain.port()));
  EXPECT_EQ(outcome(*asker), "tls_not_spoken") << said_;
  auto other = client(at(closing.port()));
  EXPECT_EQ(outcome(*other), "tls_not_spoken") << said_;
}

// Holds the connection without a word until the client leaves.
void say_nothing(int fd) {
  char block[4096];
  while (::recv(fd, block, sizeof block, 0) > 0) continue;
}

TEST_F(Tls, HandshakeThatStalls_IsATimeout_AndCanBeCancelled) {
  Listener silent(say_nothing);
  auto asker = client(at(silent.port()));
  EXPECT_EQ(outcome(*asker, {.target = "/x", .timeout = 150ms}), "timeout") << said_;

  asio::cancellation_signal cancel;
  std::optional<std::string> reason;
  auto ask_it = [&]() -> asio::awaitable<void> {
    ClientRequest request{.target = "/x"};
    auto result = co_await asker->send(std::move(request));
    reason = result ? "answered" : result.error().reason;
  };
  asio::co_spawn(io_, ask_it(), asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
  asio::steady_timer soon(io_, 50ms);
  soon.async_wait([&](auto) { cancel.emit(asio::cancellation_type::terminal); });
  io_.restart();
  io_.run_for(5s);
  EXPECT_EQ(reason, "cancelled");
}

TEST_F(Tls, SeveralAddresses_TheOneThatCannotBeTrustedIsLeft_AlsoForPlainHttp) {
  auto bad = authority_.issue("DNS:elsewhere"), good = authority_.issue("DNS:localhost");
  TlsServer first(*bad), second(*good);
  auto asker = client(at(first.port()) + "," + at(second.port()));
  EXPECT_EQ(outcome(*asker), "tls_wrong_name");
  EXPECT_EQ(outcome(*asker), "200 ok") << said_;
  Listener plain([](int fd) {
    char block[4096];
    if (::recv(fd, block, sizeof block, 0) <= 0) return;
    std::string_view text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nplain";
    ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  });
  ASSERT_TRUE(asker->use(fmt::format("http://localhost:{}", plain.port())));
  EXPECT_EQ(outcome(*asker), "200 plain") << said_;
  ASSERT_TRUE(asker->use(at(second.port())));
  EXPECT_EQ(outcome(*asker), "200 ok") << said_;
}

TEST_F(Tls, PlainClient_CanBeGivenAnEncryptedAddressLater) {
  auto shown = authority_.issue("DNS:localhost");
  TlsServer server(*shown);
  auto asker = client("http://localhost:1");
  ASSERT_TRUE(asker && asker->use(at(server.port())));
  EXPECT_EQ(outcome(*asker), "200 ok") << said_;
}

TEST_F(Tls, LargeBodies_TravelBothWays) {
  auto shown = authority_.issue("DNS:localhost");
  std::string much(1'000'000, 'x');
  TlsServer server(*shown,
                   {.answer = fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", much.size(), much)});
  auto asker = client(at(server.port()));
  auto answer = ask(*asker, {.method = Method::put, .target = "/x", .body = much});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, much);
  EXPECT_TRUE(server.requests().back().ends_with(much));
}

TEST_F(Tls, AnswerWithoutALength_EndsByTheServersWord_NotByACutConnection) {
  auto shown = authority_.issue("DNS:localhost");
  for (bool goodbye : {true, false}) {
    TlsServer server(*shown,
                     {.say_goodbye = goodbye, .answer = "HTTP/1.1 200 OK\r\n\r\nto the end", .then_close = true});
    auto asker = client(at(server.port()));
    EXPECT_EQ(outcome(*asker), goodbye ? "200 to the end" : "unreachable") << said_;
  }
}

TEST_F(Tls, NothingIsWritten_PastTheTimeToWrite) {
  auto shown = authority_.issue("DNS:localhost");
  TlsServer server(*shown);
  auto asker = client(at(server.port()));
  EXPECT_EQ(outcome(*asker, {.target = "/x", .write_by = boot_now()}), "deadline_passed");
  EXPECT_EQ(outcome(*asker, {.target = "/y", .write_by = boot_now() + 10s}), "200 ok") << said_;
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_TRUE(server.requests().back().starts_with("GET /y"));
}

TEST_F(Tls, EventStream_IsFollowed) {
  auto shown = authority_.issue("DNS:localhost");
  TlsServer server(*shown, {.answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                                      "9\r\ndata: x\n\n\r\n9\r\ndata: y\n\n\r\n0\r\n\r\n"});
  auto asker = client(at(server.port()));
  std::string seen;
  ClientRequest request{.target = "/events"};
  Status ended = test::run(io_, asker->follow(std::move(request), 2s, [&](const StreamedEvent& event) {
    seen += event.data;
    return true;
  }));
  EXPECT_TRUE(ended);
  EXPECT_EQ(seen, "xy");
}

TEST_F(Tls, FileWithoutAuthorities_IsRefusedAtOnce_WhereItIsNeeded) {
  ClientOptions options{.ca_file = folder_.path() + "/absent.pem"};
  auto refused = HttpClient::create(io_, "https://localhost:1", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "bad_ca_file");
  EXPECT_NE(refused.error().message.find("absent.pem"), std::string::npos);
  EXPECT_TRUE(HttpClient::create(io_, "http://localhost:1", options));
}

}  // namespace
}  // namespace weir::net
