// PosixHousehold: the processes below this one, and their end.
//
// The workers of a manager that died become children of this process, if it is made their reaper
// (PR_SET_CHILD_SUBREAPER) before any of them is started. A process that was a child already when this object was
// made was started by the shell that became this program: the reader of its log, or something else that runs beside
// it; it is left alone. (Orphans of such a process cannot be told from a worker's, and are ended.) Main thread only.
#pragma once

#include "weir/ports/last_will.hpp"

#include <vector>

namespace weir::posix {

class PosixHousehold final : public Household {
 public:
  PosixHousehold();
  bool end_all() override;

 private:
  const std::vector<int> foreign_;  // children that somebody else started, before this program was
};

}  // namespace weir::posix
