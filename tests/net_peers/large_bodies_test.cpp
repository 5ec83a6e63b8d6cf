// Bodies far larger than the memory that they may cost, through Weir's client and Weir's server in one process.
#include "resident.hpp"
#include "web_socket_testing.hpp"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

namespace asio = boost::asio;

constexpr std::uint64_t kBytes = 300'000'000;
constexpr size_t kPiece = 64 << 10;

// Yields kBytes bytes, of which the one at n is n % 251.
net::BodySource pattern(bool length_known) {
  auto at = std::make_shared<std::uint64_t>(0);
  auto wheel = std::make_shared<std::string>(kPiece + 251, '\0');
  for (size_t i = 0; i < wheel->size(); ++i) (*wheel)[i] = static_cast<char>(i % 251);
  net::BodySource source;
  if (length_known) source.bytes = kBytes;
  source.next = [at, wheel]() -> asio::awaitable<Result<std::string>> {
    size_t bytes = std::min<std::uint64_t>(kPiece, kBytes - *at);
    std::string piece = wheel->substr(*at % 251, bytes);
    *at += bytes;
    co_return piece;
  };
  return source;
}

// Counts what comes, and looks at the ends of each piece.
struct Count {
  std::uint64_t bytes = 0;
  bool good = true;
  void add(const std::string& piece) {
    auto right = [](char byte, std::uint64_t at) { return static_cast<unsigned char>(byte) == at % 251; };
    good = good && right(piece.front(), bytes);
    bytes += piece.size();
    good = good && right(piece.back(), bytes - 1);
  }
};

void add_routes(net::Router& router, Count& stored) {
  router.add(net::Method::put, "/model", [&](net::Request& request) -> asio::awaitable<net::Response> {
    for (;;) {
      auto piece = co_await request.streamed->read_some();
      if (!piece) co_return net::Response::failure(piece.error());
      if (piece->empty()) co_return net::Response::text("stored");
      stored.add(*piece);
    }
  }, net::StreamedBody{kBytes});
  router.add(net::Method::get, "/model", [](net::Request& request) -> asio::awaitable<net::Response> {
    net::Response response;
    response.source = pattern(request.query_value("known").has_value());
    co_return response;
  });
}

TEST(LargeBodies, ThreeHundredMegabytesUpAndDown_CostLessThanEight) {
  net::testing::RunningServer server;
  Count stored;
  add_routes(server.router, stored);
  server.start();
  Resident memory;
  for (bool known : {true, false}) {
    stored = Count();
    auto talk = [&](net::HttpClient& client) -> asio::awaitable<void> {
      net::ClientRequest up;
      up.method = net::Method::put;
      up.target = "/model";
      up.content_type = "application/octet-stream";
      up.upload = pattern(known);
      auto stored_answer = co_await client.send(std::move(up));
      EXPECT_TRUE(stored_answer && stored_answer->body == "stored");
      Count loaded;
      net::ClientRequest down;
      down.target = known ? "/model?known=1" : "/model";
      down.sink = [&](std::string piece) -> asio::awaitable<Status> {
        loaded.add(piece);
        co_return ok();
      };
      auto loaded_answer = co_await client.send(std::move(down));
      EXPECT_TRUE(loaded_answer && loaded_answer->status == 200);
      EXPECT_TRUE(loaded.good);
      EXPECT_EQ(loaded.bytes, kBytes);
    };
    net::testing::as_client(server.port(), talk, "http");
    EXPECT_TRUE(stored.good);
    EXPECT_EQ(stored.bytes, kBytes);
  }
  EXPECT_LT(memory.grown_megabytes(), 8);
  std::printf("memory grew by %.1f MB\n", memory.grown_megabytes());
}

}  // namespace
}  // namespace weir::test
