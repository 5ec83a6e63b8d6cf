#include "weir/ws_detector/ws_link.hpp"

#include "run.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <istream>
#include <thread>

namespace weir::ws_detector {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// The first line of what a worker at this address is sent; it hangs up then.
std::string first_line(const std::string& behind_the_port) {
  asio::io_context io, loop;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  std::string line;
  std::thread worker([&] {
    tcp::socket socket = acceptor.accept();
    asio::streambuf got;
    boost::system::error_code bad;
    asio::read_until(socket, got, "\r\n", bad);
    std::istream words(&got);
    std::getline(words, line, '\r');
  });
  WsLink link(loop, {.dial_within = 5s});
  std::string address = fmt::format("ws://127.0.0.1:{}{}", acceptor.local_endpoint().port(), behind_the_port);
  auto dialled = test::run(loop, link.dial(std::move(address)));
  EXPECT_FALSE(dialled) << "the worker hung up";
  worker.join();
  return line;
}

TEST(WsLink, AsksForExactlyThePathThatIsConfigured) {
  EXPECT_EQ(first_line(""), "GET / HTTP/1.1");
  EXPECT_EQ(first_line("/"), "GET / HTTP/1.1");
  EXPECT_EQ(first_line("/ws"), "GET /ws HTTP/1.1");
  EXPECT_EQ(first_line("/ws/"), "GET /ws/ HTTP/1.1");
  EXPECT_EQ(first_line("/ws?room=1"), "GET /ws?room=1 HTTP/1.1");
  EXPECT_EQ(first_line("?room=1"), "GET /?room=1 HTTP/1.1");
}

}  // namespace
}  // namespace weir::ws_detector
