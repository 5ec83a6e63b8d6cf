#include "launch.hpp"

#include "weir/posix/child_process.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

namespace weir::posix {

namespace asio = boost::asio;

namespace {

bool has_ended(int pidfd) {
  pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) > 0;
}

Error gone(int pid) { return {Errc::not_found, "process_gone", fmt::format("process {} has ended", pid)}; }

class PidfdWatch final : public ProcessWatch {
 public:
  PidfdWatch(asio::io_context& io, ProcessMark mark, int pidfd) : mark_(mark), fd_(pidfd), pidfd_(io, pidfd) {}
  ProcessMark mark() const override { return mark_; }
  bool running() const override { return !has_ended(fd_); }
  void signal(int number) const override { ::syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0); }
  asio::awaitable<std::optional<int>> wait() override {
    boost::system::error_code failed;
    if (running())
      co_await pidfd_.async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, failed));
    siginfo_t how{};
    bool own = ::waitid(P_PIDFD, static_cast<id_t>(fd_), &how, WEXITED | WNOHANG) == 0 && how.si_pid != 0;
    if (own) code_ = how.si_code == CLD_EXITED ? how.si_status : 128 + how.si_status;
    co_return code_;
  }

 private:
  const ProcessMark mark_;
  const int fd_;  // pidfd_'s, which closes it
  asio::posix::stream_descriptor pidfd_;
  std::optional<int> code_ = {};  // the kernel tells it once
};

}  // namespace

// The name may hold spaces and brackets, so fields are counted from the last bracket: the 22nd is the start.
Result<ProcessMark> mark_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int field = 3; field < 22; ++field) rest >> skipped;
  ProcessMark mark{.pid = pid};
  if (!(rest >> mark.started)) return gone(pid);
  return mark;
}

Result<ProcessMark> PosixHost::start_lasting(const Program& program, const std::string& output) {
  const std::string& path = output.empty() ? "/dev/null" : output;
  Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (in.get() < 0 || out.get() < 0) return cannot(fmt::format("open {} for", path), program.path);
  TRY(launched, launch(program, {.in = in.get(), .out = out.get(), .error = out.get()}, Kin::lasting));
  return mark_of(launched.pid);  // it is there until somebody waits for it, also where it has ended
}

// First the descriptor, then the start: as long as that process has not ended, no other process has its number.
Result<std::unique_ptr<ProcessWatch>> PosixHost::watch(const ProcessMark& mark) {
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, mark.pid, 0)));
  if (pidfd.get() < 0 && errno == ESRCH) return gone(mark.pid);
  if (pidfd.get() < 0) return cannot("watch", fmt::format("process {}", mark.pid));
  auto found = mark_of(mark.pid);
  if (!found || *found != mark) return gone(mark.pid);
  return std::unique_ptr<ProcessWatch>(std::make_unique<PidfdWatch>(io_, mark, pidfd.release()));
}

}  // namespace weir::posix
