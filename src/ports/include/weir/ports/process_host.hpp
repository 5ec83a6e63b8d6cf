// ProcessHost: starts helper programs of this machine and tells about their end.
//
// A child gets its secrets through a descriptor, never through its arguments or environment; it notices the end of its
// parent by a pipe; it has a process group of its own. Its end is final when `wait` has answered: then no thread of it
// runs any more. The destructor of a child kills and reaps what is still there. Loop thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace weir {

class Child {
 public:
  virtual ~Child() = default;
  virtual int pid() const = 0;
  // The next line of its standard output; an error when it ends before.
  virtual boost::asio::awaitable<Result<std::string>> read_line() = 0;
  // Returns when the child has ended: its exit code, or 128 + the signal that ended it.
  virtual boost::asio::awaitable<int> wait() = 0;
  virtual bool running() = 0;
  virtual void signal(int number) const = 0;
  // The processor time that it has used so far; one that is stopped or frozen uses none.
  virtual Duration cpu_time() const = 0;
};

struct Program {
  std::string path;
  std::vector<std::string> arguments = {};
  Secret document = {};  // where not empty, the child reads it at /dev/fd/3
  int nice = 0;          // above 0: gives way to its parent when the machine is busy
  std::vector<std::string> unset = {};  // of the environment, which it otherwise inherits
};

class ProcessHost {
 public:
  virtual ~ProcessHost() = default;
  virtual Result<std::unique_ptr<Child>> start(const Program& program) = 0;
};

}  // namespace weir
