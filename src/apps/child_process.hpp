// ChildProcess: a helper program that Weir started, and what it needs to be sure of its end.
//
// The child gets its secrets through an inherited descriptor (never through its arguments or environment), and a pipe on
// its standard input whose end tells it that its parent is gone. It lives in a process group of its own, so that Ctrl-C
// in a terminal reaches the parent only, which then stops its children in order. Its exit is seen through a pidfd. The
// destructor kills and reaps what is still there. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <optional>
#include <string>
#include <vector>

namespace weir::apps {

// The helper `weir-NAME` beside this program.
std::string helper_path(std::string_view name);

class ChildProcess {
 public:
  // `document`, where not empty, can be read by the child at /dev/fd/3.
  static Result<ChildProcess> start(boost::asio::io_context& io, const std::string& program,
                                    std::vector<std::string> arguments, const Secret& document);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  int pid() const { return pid_; }
  // The next line of its standard output; an error when it ends before.
  boost::asio::awaitable<Result<std::string>> read_line();
  // Its exit code, or 128 + the signal that ended it.
  boost::asio::awaitable<int> wait();
  bool running();
  void signal(int number) const;

 private:
  ChildProcess(boost::asio::io_context& io, int pid, int pidfd, int lifeline, int output);
  void reap();

  int pid_;
  int lifeline_;
  std::optional<int> status_ = {};
  boost::asio::posix::stream_descriptor pidfd_;
  boost::asio::posix::stream_descriptor output_;
  std::string read_ = {};
};

}  // namespace weir::apps
