#include "server_testing.hpp"
#include "socket_io.hpp"
#include "weir/net/client.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <filesystem>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::Usual;

// Sockets of this process that a child would inherit.
int inheritable_sockets() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    int fd = std::stoi(entry.path().filename().string());
    if (to.starts_with("socket:") && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) ++found;
  }
  return found;
}

template <class T>
T finish(asio::io_context& io, asio::awaitable<T> work) {
  std::optional<T> out;
  asio::co_spawn(
      io, [&]() -> asio::awaitable<void> { out = co_await std::move(work); },
      [](std::exception_ptr thrown) { EXPECT_FALSE(thrown); });
  io.restart();
  auto end = std::chrono::steady_clock::now() + 5s;
  while (!out && std::chrono::steady_clock::now() < end) io.run_one_for(10ms);
  EXPECT_TRUE(out);
  return *std::move(out);
}

TEST(PrivateSockets, NoSocket_IsInheritedByAChild) {
  int before = inheritable_sockets();
  Usual server;
  asio::io_context io{1};
  HttpClient client = *HttpClient::create(io, fmt::format("http://127.0.0.1:{}", server.port()));
  ClientRequest request;
  request.target = "/ok";
  auto answer = finish(io, client.send(request));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(server.eventually([&] { return server.server->connections() == 1; })) << "the connection is kept";
  EXPECT_EQ(inheritable_sockets(), before) << "listener, accepted connection and client's connection";
}

// The server reads nothing, so most of the request waits in the client when its time is over.
TEST(PrivateSockets, ARequestHalfWritten_IsGivenUpAtItsTime) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int small = 4096;
  ::setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);

  asio::io_context io{1};
  HttpClient client =
      *HttpClient::create(io, fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port)), {.forget_unsent = true});
  ClientRequest request;
  request.method = Method::post;
  request.target = "/x";
  request.body = std::string(4 << 20, 'x');
  request.write_by = boot_now() + 200ms;
  request.timeout = 4s;
  std::atomic<size_t> taken{0};
  std::thread slow([&] {
    // Takes a little, long after the time is over, so that the client's socket can be written again.
    int fd = ::accept(listener, nullptr, nullptr);
    while (boot_now() < *request.write_by) std::this_thread::yield();
    std::vector<char> block(64 << 10);
    for (ssize_t got = 0; (got = ::recv(fd, block.data(), block.size(), 0)) > 0;) taken += static_cast<size_t>(got);
    ::close(fd);
  });
  auto answer = finish(io, client.send(request));
  slow.join();
  ::close(listener);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "deadline_passed");
  EXPECT_LT(taken, request.body.size() / 2) << "what the kernel held was thrown away";
}

// A connection whose other end reads when it is told to.
struct SlowPair {
  explicit SlowPair(asio::io_context& io) : from(io), to(io) {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    acceptor.set_option(asio::socket_base::receive_buffer_size(8192));
    from.open(tcp::v4());
    from.set_option(asio::socket_base::send_buffer_size(65536));
    from.connect(acceptor.local_endpoint());
    to = acceptor.accept();
    from.non_blocking(true);
    to.non_blocking(true);
  }
  // What the kernel takes while nobody reads.
  size_t fill() {
    std::string block(1024, 'x');
    boost::system::error_code full;
    size_t put = 0;
    while (!full) put += from.write_some(asio::buffer(block), full);
    return put;
  }
  size_t read_all() {
    std::string block(65536, '\0');
    boost::system::error_code empty;
    size_t got = 0;
    while (!empty) got += to.read_some(asio::buffer(block), empty);
    return got;
  }
  tcp::socket from, to;
};

TEST(PrivateSockets, TheRestOfARequestThatHadToWait_IsNotWrittenAfterItsTime) {
  asio::io_context io{1};
  size_t room = SlowPair(io).fill();
  SlowPair pair(io);
  std::string body(room + room / 4, 'x');
  Instant write_by = boot_now() + 200ms;
  boost::system::error_code failed;
  bool ended = false;
  size_t got = 0;
  asio::co_spawn(io, write_all(pair.from, "", body, failed, write_by), [&](const std::exception_ptr&) { ended = true; });
  for (Instant until = boot_now() + 5s; !ended && boot_now() < until; io.run_one_for(5ms))
    if (boot_now() >= write_by) got += pair.read_all();
  for (size_t more = 1; more > 0; got += more) more = pair.read_all();
  EXPECT_TRUE(ended);
  EXPECT_EQ(failed, asio::error::timed_out);
  EXPECT_LT(got, body.size()) << "the whole request arrived, after its time";
}

}  // namespace
}  // namespace weir::net
