#include "child.hpp"

#include "run.hpp"
#include "stall.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace weir::test {

Child::Child(std::string log_path, std::vector<std::string> words, const boost::json::value& document)
    : log_path_(std::move(log_path)) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string text = document.is_null() ? "" : json::to_text(document);
  int memory = ::memfd_create("document", MFD_CLOEXEC);  // as descriptor 3 it is passed on, and as no other
  EXPECT_EQ(::write(memory, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::lseek(memory, 0, SEEK_SET);
  int in[2], out[2];
  EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  pid_ = ::fork();
  if (pid_ == 0) {
    int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int kept = ::fcntl(memory, F_DUPFD, 10);
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::dup2(log, 2);
    ::dup2(kept, 3);
    ::close_range(4, ~0U, 0);  // sockets of the test itself, which would outlive their end there
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(memory);
  ::close(in[0]);
  ::close(out[1]);
  lifeline_ = in[1];
  output_ = out[0];
  std::string line;
  char c = 0;
  while (::read(output_, &c, 1) == 1 && c != '\n') line += c;
  // The program's later output is of no interest, but a full pipe would stop the program.
  ::fcntl(output_, F_SETPIPE_SZ, 1 << 20);
  if (auto parsed = json::parse_text(line)) ready_ = *parsed;
  EXPECT_TRUE(ready_.is_object()) << words[0] << " said: " << line << "\n" << log();
}

Child::~Child() {
  if (lifeline_ >= 0) ::close(lifeline_);
  if (!status_) {
    ::kill(pid_, SIGCONT);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_);
}

std::string Child::log() const { return text_in_file(log_path_); }

void Child::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

bool Child::running() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return !status_;
}

int Child::wait(Duration limit) {
  eventually(limit, [&] { return !running(); });
  return status_.value_or(-1);
}

Reply Child::call(net::Method method, const std::string& target, const boost::json::value& body,
                  const Secret& token) const {
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, std::string_view(ready_.at("control").as_string()));
  WEIR_ASSERT(client);
  net::ClientRequest request;
  request.method = method;
  request.target = target;
  if (!body.is_null()) request.body = json::to_text(body);
  request.bearer = token;
  request.timeout = 30s;
  auto response = run(io, client->send(std::move(request)));
  if (!response) return {0, nullptr, response.error().message, {}};
  Reply reply{response->status, nullptr, response->body, response->headers};
  if (auto parsed = json::parse_text(reply.text)) reply.body = *parsed;
  return reply;
}

}  // namespace weir::test
