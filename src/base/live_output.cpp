#include "weir/base/live_output.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace weir {

namespace {

// A second way into the same pipe or terminal, with flags of its own; -1 where another user owns it.
int reopen(int fd) {
  return ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// For a descriptor that cannot be opened again. A pipe that takes anything takes PIPE_BUF bytes; a terminal has room
// for 256, and each newline may become two characters. Another process may take the room between the two calls: hence
// only a last resort.
ssize_t write_if_ready(int fd, bool pipe, std::string_view text) {
  pollfd asked{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&asked, 1, 0) != 1) return 0;
  return ::write(fd, text.data(), std::min<size_t>(text.size(), pipe ? PIPE_BUF : 128));
}

// Writes as much as the descriptor takes at once; returns how many bytes that was.
size_t write_now(int fd, std::string_view text) {
  struct stat about {};
  if (text.empty() || ::fstat(fd, &about) != 0) return 0;
  bool pipe = S_ISFIFO(about.st_mode), socket = S_ISSOCK(about.st_mode);
  bool can_block = pipe || ::isatty(fd) == 1;
  int again = can_block ? reopen(fd) : -1;
  size_t done = 0;
  while (done < text.size()) {
    std::string_view rest = text.substr(done);
    ssize_t wrote = socket       ? ::send(fd, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                    : again >= 0 ? ::write(again, rest.data(), rest.size())
                    : can_block  ? write_if_ready(fd, pipe, rest)
                                 : ::write(fd, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  if (again >= 0) ::close(again);
  return done;
}

}  // namespace

bool LiveOutput::write(std::string_view text, bool counted) {
  rest_.erase(0, write_now(fd_, rest_));
  std::string all = dropped_ > 0 && note_ ? note_(dropped_) : std::string();
  all += text;
  size_t wrote = rest_.empty() ? write_now(fd_, all) : 0;
  if (wrote == 0) {
    if (counted) dropped_ += static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
    return text.empty();
  }
  rest_ = all.substr(wrote);
  dropped_ = 0;
  return true;
}

}  // namespace weir
