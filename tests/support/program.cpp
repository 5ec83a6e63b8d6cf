#include "program.hpp"

#include "stall.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace weir::test {

Program::Program(std::string log_path, std::vector<std::string> words, std::string input)
    : log_path_(std::move(log_path)) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int in[2];
  EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(in[0], 0);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::close_range(3, ~0U, 0);  // sockets of the test itself, which would outlive their end there
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  EXPECT_EQ(::write(in[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(in[0]);
  ::close(in[1]);
}

Program::~Program() {
  if (!running()) return;
  signal(SIGTERM);
  if (wait(3s) == -1) {
    signal(SIGCONT);
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Program::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

bool Program::running() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return !status_;
}

int Program::wait(Duration limit) {
  eventually(limit, [&] { return !running(); });
  return status_.value_or(-1);
}

bool accepts(int port) {
  int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port)),
                 .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  bool connected = ::connect(probe, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  ::close(probe);
  return connected;
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace weir::test
