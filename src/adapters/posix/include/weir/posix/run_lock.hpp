// RunLock: the file by which a runner knows whether its earlier self is dead ("The last will" in
// docs/lease-protocol.md).
//
// The lock belongs to an open file that parent, manager and workers inherit, so it is free only when all of them are
// gone. The file says which boot had it, that boot's last will, this kernel's boot and the file's own identity: a
// process that obtains the lock and finds the latter two equal to its own knows that the earlier boot is dead and may
// send its will; after a reboot, or in a copied folder, it may not. Main thread only.
#pragma once

#include "weir/ports/last_will.hpp"
#include "weir/posix/locked_file.hpp"

#include <optional>
#include <string>

namespace weir::posix {

class RunLock final : public TestamentFile {
 public:
  // An error of class `conflict` while another process holds it.
  static Result<RunLock> take(const std::string& path);
  RunLock(RunLock&&) = default;

  const std::optional<Testament>& left_behind() const override { return left_behind_; }
  Status write(const Testament& testament) override;
  Status clear() override;

 private:
  RunLock(LockedFile file, std::string identity);

  LockedFile file_;
  std::string identity_;  // of the kernel's boot and of the file; "" where the kernel does not tell
  std::optional<Testament> left_behind_;
};

}  // namespace weir::posix
