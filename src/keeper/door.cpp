#include "door.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::keeper {

namespace {

bool may_speak(int peer) {
  ucred who{};
  socklen_t size = sizeof who;
  bool known = ::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
  return known && (who.uid == ::geteuid() || who.uid == 0);
}

}  // namespace

size_t Door::polls(pollfd* out) const {
  *out = {.fd = listener_, .events = POLLIN, .revents = 0};
  // The kernel ignores the negative number of a connection that there is not.
  for (size_t i = 0; i < kConnectionsMax; ++i) out[i + 1] = {.fd = connections_[i].fd, .events = POLLIN, .revents = 0};
  return kPollsMax;
}

void Door::serve(const pollfd* polled, Answers& answers) {
  for (size_t i = 0; i < kConnectionsMax; ++i)
    if (polled[i + 1].revents != 0) hear(connections_[i], answers);
  if (polled->revents != 0) accept(answers);
}

void Door::accept(Answers& answers) {
  for (size_t i = 0; i < kConnectionsMax; ++i) {
    int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer < 0) return;
    if (may_speak(peer))
      accept_one(peer, answers);
    else
      ::close(peer);
  }
}

void Door::accept_one(int peer, Answers& answers) {
  Connection* place = connections_;
  for (Connection& each : connections_)
    if (place->fd >= 0 && (each.fd < 0 || each.age < place->age)) place = &each;
  close(*place);
  place->fd = peer;
  place->age = ++accepted_;
  hear(*place, answers);
}

void Door::hear(Connection& from, Answers& answers) {
  ssize_t got = ::recv(from.fd, from.line + from.filled, kLineMax - from.filled, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(from);
  from.filled += static_cast<size_t>(got);
  for (;;) {
    std::string_view filled(from.line, from.filled);
    size_t end = filled.find('\n');
    if (end == filled.npos) break;
    char reply[256];
    size_t size = answers.answer(filled.substr(0, end), reply, sizeof reply);
    from.filled -= end + 1;
    std::memmove(from.line, from.line + end + 1, from.filled);
    // Who does not wait for the answer gets none; what was ordered counts all the same.
    (void)::send(from.fd, reply, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (from.filled == kLineMax) close(from);
}

void Door::close(Connection& connection) {
  if (connection.fd >= 0) ::close(connection.fd);
  connection.fd = -1;
  connection.filled = 0;
}

}  // namespace weir::keeper
