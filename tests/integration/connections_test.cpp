// As many clients as http_connections_max allows, also where the system starts programs with few descriptors.
#include "weir_process.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace weir::test {

namespace {

// This process's soft limit on descriptors, lowered while it lives; what is started meanwhile inherits it.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t soft) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit fewer{soft, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &fewer);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST(Connections, MoreClientsThanTheInheritedDescriptorLimit_AreAllAnswered) {
  namespace asio = boost::asio;
  constexpr int kInherited = 100, kClients = 300;
  TempDir folder;
  std::unique_ptr<WeirProcess> plane;
  {
    FewDescriptors few(kInherited);
    plane = std::make_unique<WeirProcess>(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  }
  asio::io_context io;
  auto port = static_cast<unsigned short>(std::stoi(plane->url().substr(plane->url().rfind(':') + 1)));
  asio::ip::tcp::endpoint to(asio::ip::address_v4::loopback(), port);
  std::string request = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  std::vector<asio::ip::tcp::socket> clients;
  for (int i = 0; i < kClients; ++i) {
    asio::ip::tcp::socket& client = clients.emplace_back(io);
    client.connect(to);
    timeval patience{10, 0};
    ::setsockopt(client.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    asio::write(client, asio::buffer(request));
    std::string answer(12, '\0');
    ASSERT_EQ(::recv(client.native_handle(), answer.data(), answer.size(), MSG_WAITALL), 12) << "client " << i;
    ASSERT_EQ(answer, "HTTP/1.1 200") << "client " << i;
  }
}

}  // namespace weir::test
