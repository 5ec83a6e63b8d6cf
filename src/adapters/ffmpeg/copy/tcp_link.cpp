#include "tcp_link.hpp"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace weir::ffmpeg {

namespace {
constexpr int kEstablished = 1, kClosed = 7;  // the kernel's numbers; its own header does not name them

bool leads_to(int fd, int port) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  int protocol = 0;
  socklen_t protocol_size = sizeof protocol;
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_size) != 0 || protocol != IPPROTO_TCP) return false;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  in_port_t found = peer.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(peer).sin6_port
                                               : reinterpret_cast<sockaddr_in&>(peer).sin_port;
  return ntohs(found) == port;
}

template <class Visit>
void each_connection(int port, const Visit& visit) {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    int fd = std::atoi(entry->d_name);
    if (fd > 2 && fd != ::dirfd(folder) && leads_to(fd, port)) visit(fd);
  }
  ::closedir(folder);
}

// Connecting to nowhere is how Linux is told to reset a connection that others may be waiting on.
void reset(int fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  ::connect(fd, &nowhere, sizeof nowhere);
}

tcp_info info_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

}  // namespace

std::vector<int> TcpLink::all(int peer_port) {
  std::vector<int> found;
  each_connection(peer_port, [&](int fd) { found.push_back(fd); });
  return found;
}

std::unique_ptr<TcpLink> TcpLink::find(int peer_port, const std::vector<int>& before) {
  int newest = -1;
  for (int fd : all(peer_port))
    if (std::ranges::find(before, fd) == before.end()) newest = fd;
  int mine = newest < 0 ? -1 : ::fcntl(newest, F_DUPFD_CLOEXEC, 3);
  return mine < 0 ? nullptr : std::make_unique<TcpLink>(mine);
}

void TcpLink::reset_all(int peer_port) { each_connection(peer_port, reset); }

void TcpLink::finish(Duration within, const std::function<bool()>& may_send) const {
  constexpr int kStepMs = 10;
  ::shutdown(fd_, SHUT_WR);
  for (auto left = within; info_of(fd_).tcpi_state != kClosed && progress().outstanding_bytes > 0; left -= std::chrono::milliseconds(kStepMs)) {
    if (left <= Duration{0} || !may_send()) return reset(fd_);
    ::poll(nullptr, 0, kStepMs);
  }
}

TcpLink::~TcpLink() { ::close(fd_); }

forward::Progress TcpLink::progress() const {
  int outstanding = 0;
  ::ioctl(fd_, SIOCOUTQ, &outstanding);
  return {info_of(fd_).tcpi_bytes_acked, static_cast<std::uint64_t>(std::max(outstanding, 0))};
}

TcpLink::State TcpLink::state() const {
  int now = info_of(fd_).tcpi_state;
  return now == kEstablished ? State::open : now == kClosed ? State::reset : State::ended;
}

void TcpLink::hold_at_most(int bytes) const {
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

bool TcpLink::has_room(size_t bytes) {
  if (bytes <= known_room_) {
    known_room_ -= bytes;
    return true;
  }
  std::uint32_t memory[SK_MEMINFO_VARS] = {};
  socklen_t size = sizeof memory;
  if (::getsockopt(fd_, SOL_SOCKET, SO_MEMINFO, memory, &size) != 0) return true;
  size_t held = memory[SK_MEMINFO_WMEM_QUEUED], most = memory[SK_MEMINFO_SNDBUF];
  known_room_ = held + bytes < most / 4 ? most / 4 - held - bytes : 0;
  // The kernel's own records take room, too; and it calls a connection writable while a third is free.
  return held <= most / 4 || held + bytes + bytes / 4 <= most / 3 * 2;
}

void TcpLink::send_at_once() const {
  int value = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

void TcpLink::cork(bool on) const {
  int value = on ? 1 : 0;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

}  // namespace weir::ffmpeg
