#include "free_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

namespace weir::test {

namespace {

constexpr int kSpan = 20'000;

// The kernel takes the ports of connections that go out from here upwards. A port of that range that is free now may be
// a connection's before the server binds it.
int first_of_connections() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first >= 12'000 ? first : 32'768;
}

// A name that nobody else has while this process runs. Nothing of it is left behind.
bool claim(int port) {
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::string text = "weir-test-port-" + std::to_string(port);
  std::copy(text.begin(), text.end(), name.sun_path + 1);  // the first byte is 0: no file
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&name), size) == 0) return true;
  ::close(fd);
  return false;
}

bool nobody_listens(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;  // as servers do: what remains of ended connections is in nobody's way
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

}  // namespace

int free_port() {
  static const int end = first_of_connections();
  thread_local std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<int> any(end - std::min(kSpan, end - 10'000), end - 1);
  for (int tries = 0; tries < 1000; ++tries)
    if (int port = any(random); claim(port) && nobody_listens(port)) return port;
  std::abort();
}

}  // namespace weir::test
