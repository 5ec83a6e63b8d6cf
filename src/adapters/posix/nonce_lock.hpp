// NonceLock: the lock by which everybody below a keeper is known to live.
//
// It belongs to an open file that keeper, child and everything below inherit. While one of them lives the lock is held;
// where it is free, all are dead. A process that holds it can be found and signalled by this file alone, also when its
// keeper is dead. Loop thread only.
#pragma once

#include "launch.hpp"

namespace weir::posix {

class NonceLock {
 public:
  // Makes the file and locks it; the descriptor, a lifted one, is what a keeper inherits.
  static Result<Descriptor> make(const std::string& path);

  explicit NonceLock(std::string path) : path_(std::move(path)) {}
  // False where it is free or there is no such file.
  bool held() const;
  // Signals everybody who holds it; where a process that held it has ended, nobody else gets the signal.
  void signal_holders(int number) const;
  bool held_by(int pid) const;

 private:
  std::string path_;
};

}  // namespace weir::posix
