#include "weir/worker/crash_record.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace weir::worker {

namespace {

int record = -1;
thread_local const char* serving = nullptr;

// Only what a signal handler may do: plain memory, poll(2) and write(2).
class Line {
 public:
  void text(const char* s) {
    for (; *s != 0 && used_ < sizeof bytes_; ++s) bytes_[used_++] = *s;
  }
  void quoted(const char* s) {
    for (; *s != 0; ++s) {
      char escaped[] = {'\\', *s, 0}, plain[] = {*s, 0};
      text(*s == '"' || *s == '\\' ? escaped : plain);
    }
  }
  void number(int n) {
    char digits[] = {static_cast<char>('0' + n / 10 % 10), static_cast<char>('0' + n % 10), 0};
    text(n < 10 ? digits + 1 : digits);
  }
  std::string_view all() const { return {bytes_, used_}; }
  void write_to(int fd) const { [[maybe_unused]] ssize_t ignored = ::write(fd, bytes_, used_); }

 private:
  char bytes_[1024] = {};
  size_t used_ = 0;
};

void on_crash(int signal) {
  Line line;
  line.text("{\"event\":\"worker.crashed\",\"signal\":");
  line.number(signal);
  line.text(",\"camera_uuid\":\"");
  line.quoted(serving == nullptr ? "" : serving);
  line.text("\"}\n");
  if (record >= 0) line.write_to(record);
  write_unless_full(2, line.all());
  // The handler was reset when it was entered: this ends the process as the signal would have, core and all.
  ::raise(signal);
}

}  // namespace

void write_unless_full(int fd, std::string_view text) {
  pollfd asked{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&asked, 1, 0) != 1 || (asked.revents & POLLOUT) == 0) return;
  [[maybe_unused]] ssize_t ignored = ::write(fd, text.data(), text.size());
}

Status install_crash_record(const std::string& path) {
  if (!path.empty()) {
    record = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (record < 0)
      return Error{Errc::unavailable, "crash_file", fmt::format("crash_file cannot be opened: {}", std::strerror(errno))};
  }
  struct sigaction action = {};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
  return ok();
}

Serving::Serving(const CameraId& camera) : before_(serving) { serving = camera.str().c_str(); }
Serving::~Serving() { serving = before_; }

}  // namespace weir::worker
