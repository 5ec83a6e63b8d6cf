#include "weir/posix/child_process.hpp"

#include "launch.hpp"

#include "weir/posix/machine.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace weir::posix {

namespace asio = boost::asio;

namespace {

constexpr size_t kLineBytesMax = 1 << 20;
constexpr const char* kSelf = "/proc/self/exe";

class ChildProcess final : public Child {
 public:
  ChildProcess(asio::io_context& io, int pid, int pidfd, int lifeline, int output)
      : pid_(pid), lifeline_(lifeline), pidfd_(io, pidfd), output_(io, output) {}
  ~ChildProcess() override;
  int pid() const override { return pid_; }
  asio::awaitable<Result<std::string>> read_line() override;
  asio::awaitable<int> wait() override;
  bool running() override;
  void signal(int number) const override;
  Duration cpu_time() const override { return posix::cpu_time(pid_); }

 private:
  void reap();

  const int pid_;
  const Descriptor lifeline_;  // its end tells the child that its parent is gone
  std::optional<int> status_ = {};
  asio::posix::stream_descriptor pidfd_;
  asio::posix::stream_descriptor output_;
  std::string read_ = {};
};

}  // namespace

// Of a file that was replaced or removed since this program started, the kernel says "/usr/bin/weir (deleted)".
std::string self_path() {
  std::error_code unknown;
  std::string path = std::filesystem::read_symlink(kSelf, unknown).string();
  constexpr std::string_view replaced = " (deleted)";
  if (::access(path.c_str(), X_OK) != 0 && path.ends_with(replaced)) path.resize(path.size() - replaced.size());
  return ::access(path.c_str(), X_OK) == 0 ? path : kSelf;
}

std::string helper_path(std::string_view name) {
  std::error_code unknown;
  return (std::filesystem::read_symlink(kSelf, unknown).parent_path() / fmt::format("weir-{}", name)).string();
}

Result<std::unique_ptr<Child>> PosixHost::start(const Program& program) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return cannot("make a pipe for", program.path);
  Descriptor child_in(in[0]), lifeline(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return cannot("make a pipe for", program.path);
  Descriptor output(out[0]), child_out(out[1]);
  TRY(launched, launch(program, {.in = child_in.get(), .out = child_out.get()}, Kin::child));
  return std::unique_ptr<Child>(std::make_unique<ChildProcess>(io_, launched.pid, launched.watch.release(),
                                                               lifeline.release(), output.release()));
}

ChildProcess::~ChildProcess() {
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  // A child that the kernel holds is left to the process that inherits it.
  pollfd ended{.fd = pidfd_.native_handle(), .events = POLLIN, .revents = 0};
  ::poll(&ended, 1, 2000);
  reap();
}

void ChildProcess::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

void ChildProcess::reap() {
  int status = 0;
  if (status_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ChildProcess::running() {
  reap();
  return !status_;
}

asio::awaitable<int> ChildProcess::wait() {
  boost::system::error_code failed;
  if (running())
    co_await pidfd_.async_wait(asio::posix::stream_descriptor::wait_read,
                               asio::redirect_error(asio::use_awaitable, failed));
  reap();
  co_return status_.value_or(-1);
}

asio::awaitable<Result<std::string>> ChildProcess::read_line() {
  for (;;) {
    if (size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      co_return line;
    }
    if (read_.size() > kLineBytesMax) co_return Error{Errc::unavailable, "child", "the line is too long"};
    char bytes[4096];
    boost::system::error_code failed;
    size_t got = co_await output_.async_read_some(asio::buffer(bytes),
                                                  asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return Error{Errc::unavailable, "child", "the program ended before it said anything"};
    read_.append(bytes, got);
  }
}

}  // namespace weir::posix
