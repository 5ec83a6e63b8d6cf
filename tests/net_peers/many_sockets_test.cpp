// As many WebSockets as a cluster's master keeps to its detectors, on one loop.
#include "resident.hpp"
#include "stall.hpp"
#include "web_socket_testing.hpp"

#include "weir/base/spawn.hpp"

#include <boost/asio/this_coro.hpp>
#include <gtest/gtest.h>

namespace weir::test {
namespace {

namespace asio = boost::asio;

constexpr int kSockets = 200, kRounds = 20;

struct Tally {
  int open = 0, echoed = 0, done = 0;
};

// Sends a picture's worth of bytes and a text, and takes them back.
asio::awaitable<void> converse(net::HttpClient& client, Tally& tally) {
  net::ClientRequest request;
  request.target = "/echo";
  auto socket = co_await client.web_socket(std::move(request));
  EXPECT_TRUE(socket) << socket.error().message;
  if (!socket) co_return;
  ++tally.open;
  const std::string picture(20'000, 'p'), text = fmt::format("{:a>1000}", tally.open);
  for (int round = 0; round < kRounds; ++round) {
    for (bool binary : {true, false}) {
      net::WebSocketMessage message(binary ? picture : text, binary);
      (void)co_await socket->send(std::move(message));
      auto back = co_await socket->receive();
      if (back && back->bytes == (binary ? picture : text)) ++tally.echoed;
    }
  }
  ++tally.done;
  while (tally.done < kSockets) co_await asio::post(asio::use_awaitable);  // all are open at the same time
  co_await socket->close();
}

TEST(ManySockets, TwoHundred_OnOneLoop_AreServedInLittleMemory) {
  net::testing::RunningServer server;
  net::testing::add_socket(server.router, "/echo", net::testing::echo_messages);
  server.start();
  Resident memory;
  Tally tally;
  Duration stalled = StallMonitor::get().total();
  Instant begun = boot_now();
  net::testing::as_client(server.port(), [&](net::HttpClient& client) -> asio::awaitable<void> {
    auto executor = co_await asio::this_coro::executor;
    for (int i = 0; i < kSockets; ++i) weir::spawn(executor, converse(client, tally), "a conversation");
  });
  double took = seconds(boot_now() - begun), each = memory.grown_megabytes() / kSockets;
  std::printf("%d sockets, %d messages there and back: %.2f s, %.0f kB for both ends of one\n", kSockets, tally.echoed,
              took, each * 1024);
  EXPECT_EQ(tally.echoed, kSockets * kRounds * 2);
  EXPECT_TRUE(within(took, 20, stalled));
  EXPECT_LT(each, 0.5);
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 0; }));
}

}  // namespace
}  // namespace weir::test
