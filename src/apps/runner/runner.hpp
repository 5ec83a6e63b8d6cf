// `weir runner`: a small parent and the manager below it.
//
// The parent is the last will (weir/last_will/last_will.hpp): it starts the manager, and when the manager has ended,
// however it ended, it releases the boot's leases at once and exits with the manager's code. Main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

std::vector<Command> runner_commands();

// The arguments with which another program starts `weir runner`: every setting of `from` that was given by a flag or
// file and that a program with the name `used_by` takes too.
std::vector<std::string> passed_on(const Settings& from, std::string_view used_by);

}  // namespace weir::apps
