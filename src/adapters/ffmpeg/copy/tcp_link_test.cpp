#include "tcp_link.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace weir::ffmpeg {
namespace {

// A listener whose connections nobody reads unless the test does.
struct Listener {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
  Listener() {
    int small = 4096;
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd, 4), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    port = ntohs(at.sin_port);
  }
  ~Listener() { ::close(fd); }
  int dial() const {
    int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port)),
                   .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    ::connect(made, reinterpret_cast<sockaddr*>(&at), sizeof at);
    return made;
  }
};

void fill(int fd) {
  std::string much(64 << 10, 'x');
  while (::send(fd, much.data(), much.size(), MSG_NOSIGNAL) > 0) {
  }
}

TEST(TcpLink, OfTwoConnectionsToOnePort_TheNewOneIsFound) {
  Listener listener;
  int first = listener.dial(), gap = ::dup(first), second = -1;
  std::vector<int> before = TcpLink::all(listener.port);
  EXPECT_EQ(before.size(), 2u);
  ::close(first);  // the new one gets the lower number
  before = TcpLink::all(listener.port);
  second = listener.dial();
  auto link = TcpLink::find(listener.port, before);
  ASSERT_NE(link, nullptr);
  auto sent = [&] { return link->progress().acked_bytes + link->progress().outstanding_bytes; };
  std::uint64_t nothing = sent();
  ASSERT_EQ(::send(second, "hello", 5, MSG_NOSIGNAL), 5);
  EXPECT_GT(sent(), nothing);
  for (int fd : {gap, second}) ::close(fd);
}

TEST(TcpLink, APeerThatTakesNothing_LeavesNoRoom_AndIsReset) {
  Listener listener;
  int fd = listener.dial();
  auto link = TcpLink::find(listener.port, {});
  ASSERT_NE(link, nullptr);
  link->hold_at_most(64 << 10);
  EXPECT_TRUE(link->has_room(10'000));
  fill(fd);
  EXPECT_FALSE(link->has_room(100'000));
  EXPECT_GT(link->progress().outstanding_bytes, 0u);
  link->finish(Duration(50'000), [] { return true; });
  EXPECT_EQ(link->state(), TcpLink::State::reset);
  EXPECT_LE(::send(fd, "x", 1, MSG_NOSIGNAL), 0);
  ::close(fd);
}

}  // namespace
}  // namespace weir::ffmpeg
