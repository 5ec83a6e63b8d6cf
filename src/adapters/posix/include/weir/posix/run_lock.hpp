// RunLock: the file by which a runner knows whether its earlier self is dead (rule 11 of the lease protocol).
//
// The lock belongs to an open file that parent, manager and workers inherit, so it is free only when all of them are
// gone. The file says which boot had it, that boot's last will, this kernel's boot and the file's own identity: whoever
// obtains the lock and finds the latter two equal to its own knows that the earlier boot is dead and may send its will;
// after a reboot, or in a copied folder, it may not. Main thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <optional>
#include <string>

namespace weir::posix {

struct Testament {
  RunnerId runner;
  BootId boot;
  Secret will;
};

class RunLock {
 public:
  // An error of class `conflict` while another process holds it.
  static Result<RunLock> take(const std::string& path);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

  // What an earlier boot left here, where it is certain to be dead.
  const std::optional<Testament>& left_behind() const { return left_behind_; }
  // Written and on the disk when this returns.
  Status write(const Testament& testament);
  Status clear();

 private:
  RunLock(int fd, std::string identity) : fd_(fd), identity_(std::move(identity)) {}
  Status store(const std::string& text);

  int fd_;
  std::string identity_;  // of the kernel's boot and of the file
  std::optional<Testament> left_behind_ = {};
};

}  // namespace weir::posix
