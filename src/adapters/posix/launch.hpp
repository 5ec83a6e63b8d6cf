// Launching a program: what every start of one has in common, whether it is a child or lasts. Loop thread only.
#pragma once

#include "weir/ports/process_host.hpp"

#include <string_view>
#include <utility>

#include <unistd.h>

namespace weir::posix {

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

// "cannot start /usr/bin/x: " and what errno says.
Error cannot(std::string_view what, const std::string& program);

// The same open file under a number above 9, out of the way of the descriptors that programs are given by number.
Descriptor lifted(const Descriptor& fd);

// Whom a process belongs to: a child shares its parent's session and what that lets it inherit; one that lasts has a
// session of its own and no descriptor but those that it is given, so that it holds no lock of its parent.
enum class Kin { child, lasting };

// What a program begins with.
struct Beginning {
  int in = -1, out = -1, error = -1;  // its first three descriptors; -1: as this process has it
  std::vector<int> more = {};         // its descriptors 4 and up; lifted, so that none is written over
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to what it inherits
};

struct Launched {
  int pid = 0;
  Descriptor watch;  // a pidfd: readable when the process has ended
};
// Where this fails, no process is left behind.
Result<Launched> launch(const Program& program, const Beginning& beginning, Kin kin);

}  // namespace weir::posix
