#include "weir/posix/child_process.hpp"

#include "weir/posix/machine.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace weir::posix {

namespace asio = boost::asio;

namespace {

constexpr size_t kLineBytesMax = 1 << 20;
constexpr const char* kSelf = "/proc/self/exe";

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Error cannot(std::string_view what, const std::string& program) {
  return Error{Errc::unavailable, "child", fmt::format("cannot {} {}: {}", what, program, std::strerror(errno))};
}

Result<Descriptor> document_file(const Secret& document, const std::string& program) {
  Descriptor file(::memfd_create("document", MFD_CLOEXEC));
  const std::string& text = document.reveal();
  if (file.get() < 0 || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return cannot("hand the configuration to", program);
  return file;
}

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

namespace {
std::vector<char*> environment_without(const std::vector<std::string>& names) {
  std::vector<char*> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    std::string_view name(*each);
    name = name.substr(0, name.find('='));
    if (std::ranges::find(names, name) == names.end()) kept.push_back(*each);
  }
  kept.push_back(nullptr);
  return kept;
}
}  // namespace

Result<std::unique_ptr<Child>> PosixHost::start(const Program& wanted) {
  const std::string& program = wanted.path;
  const Secret& document = wanted.document;
  std::vector<std::string> arguments = wanted.arguments;
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return cannot("make a pipe for", program);
  Descriptor child_in(in[0]), lifeline(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return cannot("make a pipe for", program);
  Descriptor output(out[0]), child_out(out[1]);
  Descriptor file;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), 1);
  if (!document.empty()) {
    TRY(made, document_file(document, program));
    file = std::move(made);
    posix_spawn_file_actions_adddup2(&actions, file.get(), 3);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGALRM}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> inherited = environment_without(wanted.unset);
  pid_t pid = 0;
  errno = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), inherited.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (errno != 0) return cannot("start", program);
  if (wanted.nice > 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), wanted.nice);
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    Error failed = cannot("watch", program);
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return failed;
  }
  std::unique_ptr<Child> child = std::make_unique<ChildProcess>(io_, pid, pidfd, lifeline.release(), output.release());
  return child;
}

ChildProcess::~ChildProcess() {
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  // One that the kernel holds is left to whoever inherits it.
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
