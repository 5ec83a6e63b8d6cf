// `weir runner`: a small parent and the manager below it.
//
// The parent is the last will (rule 11 of the lease protocol): it starts the manager, and when the manager has ended,
// however it ended, it makes sure that nothing of it is left running, then releases the boot's leases at once and exits
// with the manager's code. It holds no other logic. Main thread only.
#pragma once

#include "command.hpp"

namespace weir::apps {

std::vector<Command> runner_commands();

// What `weir runner` is called with when somebody else starts it: every setting of `from` that was given by a flag or
// file and that a program with the name `used_by` takes too.
std::vector<std::string> passed_on(const Settings& from, std::string_view used_by);

}  // namespace weir::apps
