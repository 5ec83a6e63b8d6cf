#include "dial_watch.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string_view>
#include <utility>

namespace weir::fuzz {
namespace {

std::mutex mutex;
int peer = 0;
Dials dials;

std::string text_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
}

// Whether a socket may talk to an address.
bool allowed(const char* call, int fd, const sockaddr* to) {
  if (to == nullptr || (to->sa_family != AF_INET && to->sa_family != AF_INET6)) return true;
  std::lock_guard lock(mutex);
  if (peer == 0) return true;
  int type = 0;
  socklen_t size = sizeof type;
  getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
  std::string address = text_of(*to);
  bool right = type == SOCK_STREAM ? address == fmt::format("127.0.0.1:{}", peer) : address.starts_with("127.0.0.1:");
  if (!right) dials.elsewhere.push_back(fmt::format("{} {}", call, address));
  else if (type == SOCK_STREAM) ++dials.to_peer;
  return right;
}

bool may_resolve(const char* name, const addrinfo* hints) {
  std::lock_guard lock(mutex);
  in6_addr any{};
  // No resolver is needed for an address, nor for the list of addresses that this machine has.
  if (peer == 0 || name == nullptr || (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0)) return true;
  if (inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1) return true;
  dials.elsewhere.push_back(fmt::format("resolve {}", name));
  return false;
}

}  // namespace

void watch_dials(int port) {
  std::lock_guard lock(mutex);
  peer = port;
}

Dials take_dials() {
  std::lock_guard lock(mutex);
  return std::exchange(dials, {});
}

}  // namespace weir::fuzz

// The executable's functions come before those of the C library.
extern "C" {
int connect(int fd, const sockaddr* to, socklen_t size) {
  if (weir::fuzz::allowed("connect", fd, to)) return static_cast<int>(syscall(SYS_connect, fd, to, size));
  errno = ECONNREFUSED;
  return -1;
}

ssize_t sendto(int fd, const void* bytes, size_t count, int flags, const sockaddr* to, socklen_t size) {
  if (weir::fuzz::allowed("send", fd, to)) return syscall(SYS_sendto, fd, bytes, count, flags, to, size);
  errno = ENETUNREACH;
  return -1;
}

int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  static auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return weir::fuzz::may_resolve(name, hints) ? real(name, service, hints, found) : EAI_NONAME;
}
}
