// BootFile: whether this process continues the boot that its state folder names ("A boot is continued by one process"
// in docs/lease-protocol.md).
//
// The children of a supervisor outlive it, and the leases that they work under are its boot's. Its next start is the
// same holder only where nobody else can be: it has the lock of this file, which no child inherits, and the file says
// that it was written under this kernel's boot, in this pid namespace, and as this very file. Otherwise it is a new
// boot, which holds nothing, adopts nothing, and waits until the leases of the earlier one have expired: after a
// reboot, in another container, on another host, or in a copied folder, whose original may be in use. Main thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/posix/locked_file.hpp"

namespace weir::posix {

struct KernelFacts {
  std::string boot_id;        // of the kernel: another one each time that the machine is started
  std::string pid_namespace;  // process numbers mean something within one only
};
// Each is "" where the kernel does not tell.
KernelFacts kernel_facts();

class BootFile {
 public:
  // An error of class `conflict` while another process has the file: it is the one that continues the boot. A new boot
  // is on the disk when this returns.
  static Result<BootFile> take(const std::string& path, const KernelFacts& facts = kernel_facts());

  const BootId& boot() const { return boot_; }
  // False: `boot` is a new one.
  bool continued() const { return continued_; }

 private:
  BootFile(LockedFile file, BootId boot, bool continued)
      : file_(std::move(file)), boot_(std::move(boot)), continued_(continued) {}
  LockedFile file_;
  BootId boot_;
  bool continued_;
};

}  // namespace weir::posix
