// LastingHost: starts programs that outlive this one, and watches processes that this one did not start.
//
// A Child (process_host.hpp) ends with its parent. A lasting process does not: it has a session of its own, inherits
// no pipe and no lock, and its output goes to a file. The program that follows its parent finds it again by its
// ProcessMark and watches it. A watch owns nothing: when it is destroyed, the process runs on. Loop thread only.
#pragma once

#include "weir/ports/process_host.hpp"

#include <cstdint>
#include <optional>

namespace weir {

// Which process is meant, also after the kernel has given its number to another one: their starts tell them apart.
// Holds until the machine is started anew.
struct ProcessMark {
  int pid = 0;
  std::uint64_t started = 0;  // in ticks of the kernel since the machine was started
  friend bool operator==(const ProcessMark&, const ProcessMark&) = default;
};

class ProcessWatch {
 public:
  virtual ~ProcessWatch() = default;
  virtual ProcessMark mark() const = 0;
  // Returns when the process has ended: with its exit code (or 128 + the signal that ended it) where this process is
  // its parent, because the kernel tells only the parent.
  virtual boost::asio::awaitable<std::optional<int>> wait() = 0;
  virtual bool running() const = 0;
  // Signals the process that is meant; where that has ended, no other process gets the signal.
  virtual void signal(int number) const = 0;
};

class LastingHost {
 public:
  virtual ~LastingHost() = default;
  // The program's output is appended to the file `output`; where that is "", it is thrown away.
  virtual Result<ProcessMark> start_lasting(const Program& program, const std::string& output) = 0;
  // `not_found` where that process is gone.
  virtual Result<std::unique_ptr<ProcessWatch>> watch(const ProcessMark& mark) = 0;
};

}  // namespace weir
