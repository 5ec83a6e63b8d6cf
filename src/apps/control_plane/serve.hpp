// The commands that serve: `weir control-plane`, and `weir up`, which is all of Weir on one machine.
// Plain values; main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

std::vector<Command> serve_commands();

}  // namespace weir::apps
