// Weir's WebSockets and other people's: a Python and a JavaScript library, each as a client and as a server.
#include "part.hpp"
#include "program.hpp"
#include "resident.hpp"
#include "stall.hpp"
#include "tls_testing.hpp"
#include "web_socket_testing.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace weir::test {
namespace {

namespace asio = boost::asio;
using net::HttpClient;
using net::WebSocket;
using net::WebSocketMessage;
using Why = net::WebSocketEnd::Why;

constexpr const char* kPython = "/usr/bin/python3";  // Debian's own, to which its packages belong

enum class Language { python, javascript };

std::string missing(Language language) {
  TempDir folder;
  if (language == Language::python) {
    Program probe(folder.path() + "/log", {kPython, "-c", "import websockets"});
    return probe.wait(20s) == 0 ? "" : "Debian's python3-websockets is not installed";
  }
  if (part("js/ws").empty()) return "the npm package ws could not be fetched";
  Program probe(folder.path() + "/log", {"node", "--version"});
  return probe.wait(20s) == 0 ? "" : "there is no node";
}

// The words that start the peer, without its role.
std::vector<std::string> peer(Language language) {
  std::string scripts = WEIR_SOURCE_DIR "/tests/net_peers";
  if (language == Language::python) return {kPython, scripts + "/peer.py"};
  return {"node", scripts + "/peer.js", part("js/ws")};
}

std::vector<std::string> peer(Language language, std::vector<std::string> more) {
  std::vector<std::string> words = peer(language);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class WebSocketPeers : public testing::TestWithParam<Language> {
 protected:
  void SetUp() override {
    if (std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  TempDir folder_;
};

INSTANTIATE_TEST_SUITE_P(Libraries, WebSocketPeers, testing::Values(Language::python, Language::javascript),
                         [](const auto& each) {
                           return std::string(each.param == Language::python ? "Python" : "JavaScript");
                         });

// 200 MB for a peer that reads nothing, while the queue may hold 4.
struct Flood {
  std::atomic<bool> over = false;
  double grown_megabytes = 0;
  std::uint16_t code = 0;

  asio::awaitable<void> run(WebSocket& socket) {
    Resident memory;
    const std::string block(100'000, 'x');
    for (int i = 0; i < 2000 && !socket.end(); ++i) {
      (void)socket.post({block, true});
      co_await asio::post(asio::use_awaitable);
    }
    grown_megabytes = memory.grown_megabytes();
    co_await socket.over();
    code = socket.end()->code;
    over = true;
  }
};

TEST_P(WebSocketPeers, AsClient_FindsNothingWrong_AndCannotFillTheServersMemory) {
  net::testing::RunningServer server;
  Flood flood;
  std::atomic<int> echo_code = 0, too_large = 0;
  net::testing::add_socket(server.router, "/echo", [&](WebSocket& socket) -> asio::awaitable<void> {
    co_await net::testing::echo_messages(socket);
    if (socket.end()->why == Why::closed_by_peer) echo_code = socket.end()->code;
    if (socket.end()->why == Why::too_large) ++too_large;
  });
  net::testing::add_socket(server.router, "/bye", [](WebSocket& socket) -> asio::awaitable<void> {
    co_await socket.close(4003, "good bye");
  });
  net::testing::add_socket(server.router, "/flood", [&](WebSocket& socket) { return flood.run(socket); });
  net::testing::add_socket(server.router, "/flooded", [&](WebSocket& socket) -> asio::awaitable<void> {
    while (!flood.over) co_await server.clock.wait(10ms);
    (void)co_await socket.send({"cut off", false});
  });
  server.start();
  Program client(folder_.path() + "/client.log",
                 peer(GetParam(), {"client", fmt::format("ws://127.0.0.1:{}", server.port())}));
  EXPECT_EQ(client.wait(60s), 0) << client.log();
  EXPECT_TRUE(eventually(5s, [&] { return echo_code == 4002 && too_large == 2; })) << echo_code << " " << too_large;
  EXPECT_EQ(flood.code, 1008);
  EXPECT_LT(flood.grown_megabytes, 8);
  std::printf("memory grew by %.1f MB while a peer did not read\n", flood.grown_megabytes);
}

// What the test does as a client, told the address of the peer's server.
struct Talk {
  static asio::awaitable<Result<WebSocket>> open(HttpClient& client, std::string path, net::WebSocketLimits limits) {
    net::ClientRequest request;
    request.target = std::move(path);
    auto opened = co_await client.web_socket(std::move(request), limits);
    EXPECT_TRUE(opened) << opened.error().message;
    co_return std::move(opened);
  }

  static asio::awaitable<void> echo(HttpClient& client) {
    auto socket = co_await open(client, "/echo", {});
    if (!socket) co_return;
    std::string noise(1 << 20, '\0');
    for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i >> 7);
    const std::vector<WebSocketMessage> all{{"hello", false}, {"", false}, {std::string(300, 'x'), false},
                                            {"ünïcödé", false}, {std::string(1 << 20, 'x'), false},
                                            {std::string(5, '\0'), true}, {noise, true}};
    for (const WebSocketMessage& each : all) {
      auto sent = co_await socket->send(each);
      auto back = co_await socket->receive();
      EXPECT_TRUE(sent && back && back->bytes == each.bytes && back->binary == each.binary) << each.bytes.size();
    }
    co_await socket->close(4002, "enough of it");
    EXPECT_EQ(socket->end()->why, Why::closed_here);
  }

  static asio::awaitable<void> endings(HttpClient& client) {
    auto parted = co_await open(client, "/fragments", {});
    if (!parted) co_return;
    auto joined = co_await parted->receive();
    EXPECT_TRUE(joined && joined->bytes == "in three frames" && !joined->binary);
    auto large = co_await parted->receive();
    EXPECT_TRUE(large && large->bytes.size() == 1 << 20 && large->binary);
    co_await parted->close();
    auto bye = co_await open(client, "/bye", {});
    if (!bye) co_return;
    auto none = co_await bye->receive();
    EXPECT_TRUE(!none && bye->end()->why == Why::closed_by_peer && bye->end()->code == 4003);
    EXPECT_EQ(bye->end()->text, "good bye");
  }

  static asio::awaitable<void> too_large(HttpClient& client) {
    auto socket = co_await open(client, "/large", {});
    if (!socket) co_return;
    Resident memory;
    auto none = co_await socket->receive();
    EXPECT_TRUE(!none && socket->end()->why == Why::too_large && socket->end()->code == 1009);
    EXPECT_LT(memory.grown_megabytes(), 8);
  }

  static asio::awaitable<void> deaf(HttpClient& client) {
    auto socket = co_await open(client, "/deaf", {});
    if (!socket) co_return;
    Flood flood;
    co_await flood.run(*socket);
    EXPECT_EQ(flood.code, 1008);
    EXPECT_LT(flood.grown_megabytes, 8);
  }
};

// Its port, as soon as it listens.
std::uint16_t port_of(const Program& server) {
  bool listens = eventually(20s, [&] { return server.log().starts_with("port ") && server.log().ends_with("\n"); });
  EXPECT_TRUE(listens) << server.log();
  return listens ? static_cast<std::uint16_t>(std::stoi(server.log().substr(5))) : 0;
}

TEST_P(WebSocketPeers, AsServer_GetsAndGivesWhatItShould) {
  Program server(folder_.path() + "/server.log", peer(GetParam(), {"server"}));
  std::uint16_t port = port_of(server);
  ASSERT_NE(port, 0);
  net::testing::as_client(port, Talk::echo);
  net::testing::as_client(port, Talk::endings);
  net::testing::as_client(port, Talk::too_large);
  net::testing::as_client(port, Talk::deaf);
  auto heard = [&](const std::string& line) { return server.log().find(line + "\n") != std::string::npos; };
  for (const char* line : {"/echo closed 4002", "/fragments closed 1000", "/bye closed 4003", "/large closed 1009"})
    EXPECT_TRUE(eventually(10s, [&] { return heard(line); })) << line << " in:\n" << server.log();
}

TEST(WebSocketTls, Certificate_IsCheckedAsByTheHttpClient) {
  if (std::string why = missing(Language::python); !why.empty()) GTEST_SKIP() << why;
  TempDir folder;
  net::testing::Authority authority;
  auto certificate = authority.issue("IP:127.0.0.1");
  std::string file = folder.path() + "/server.pem", ca_file = folder.path() + "/ca.pem";
  authority.write(ca_file);
  FILE* to = std::fopen(file.c_str(), "we");
  ASSERT_TRUE(to != nullptr && ::PEM_write_X509(to, certificate->x509) == 1 &&
              ::PEM_write_PrivateKey(to, certificate->key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  std::fclose(to);
  Program server(folder.path() + "/server.log", peer(Language::python, {"server", file}));
  std::uint16_t port = port_of(server);
  ASSERT_NE(port, 0);
  net::testing::as_client(port, Talk::echo, "wss", {.ca_file = ca_file});
  net::testing::as_client(port, [](HttpClient& client) -> asio::awaitable<void> {
    net::ClientRequest request;
    request.target = "/echo";
    auto refused = co_await client.web_socket(std::move(request));
    EXPECT_TRUE(!refused && refused.error().reason == "tls_unknown_authority");
  }, "wss");
}

}  // namespace
}  // namespace weir::test
