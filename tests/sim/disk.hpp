// Disk: what a host keeps when its processes die: a folder of its own, in memory where the system has such a place.
// One thread.
#pragma once

#include "weir/ports/spool.hpp"

#include <memory>
#include <string>

namespace weir::sim {

class Disk {
 public:
  Disk();
  ~Disk();
  Disk(const Disk&) = delete;
  // One process's access to the disk; when it is destroyed, the locks that the process holds go with it.
  std::unique_ptr<Spool> spool() const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace weir::sim
