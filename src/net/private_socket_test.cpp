#include "server_testing.hpp"
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

}  // namespace
}  // namespace weir::net
